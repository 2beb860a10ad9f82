//! The steps of a start, as `HOLM_TRACE=1` tells them.

use std::process::{Command, Stdio};

use crate::stage::Stage;
use crate::stats::Summary;

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let mut steps: Vec<(String, Vec<f64>)> = Vec::new();
    let argv =
        stage.holm(&["run", "--base", "minimal", "--set", "net.mode=none", "--", "/bin/true"]);
    for _ in 0..n {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env("HOLM_TRACE", "1").stdin(Stdio::null());
        let output = command.output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        for (step, micros) in String::from_utf8_lossy(&output.stderr).lines().filter_map(parse) {
            match steps.iter_mut().find(|(known, _)| known == step) {
                Some((_, samples)) => samples.push(micros),
                None => steps.push((step.to_owned(), vec![micros])),
            }
        }
    }
    if steps.is_empty() {
        return Err("this holm prints no steps with HOLM_TRACE=1".to_owned());
    }
    let mut text = String::from(
        "`HOLM_TRACE=1 holm run --base minimal --set net.mode=none -- /bin/true`, microseconds:\n\n| step | median | p10 | p90 |\n|---|---:|---:|---:|\n",
    );
    let mut sum = 0.0;
    for (step, samples) in &steps {
        let Summary { median, p10, p90 } = Summary::of(samples);
        sum += median;
        text += &format!("| {step} | {median:.0} | {p10:.0} | {p90:.0} |\n");
    }
    Ok(text + &format!("| sum of the medians | {sum:.0} | | |\n"))
}

/// A line `trace STEP MICROSECONDS`.
fn parse(line: &str) -> Option<(&str, f64)> {
    let mut words = line.split_whitespace();
    let (word, step, micros) = (words.next()?, words.next()?, words.next()?);
    (word == "trace").then_some((step, micros.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lines() {
        assert_eq!(parse("trace clone 118.5"), Some(("clone", 118.5)));
        assert_eq!(parse("holm: trace clone 118"), None);
        assert_eq!(parse("trace clone"), None);
    }
}
