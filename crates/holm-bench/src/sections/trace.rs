//! The steps of a start, as `HOLM_TRACE=1` tells them.

use std::process::{Command, Stdio};

use crate::build::Holm;
use crate::stage::Stage;
use crate::stats::Summary;

const COMMAND: [&str; 7] =
    ["run", "--base", "minimal", "--set", "net.mode=none", "--", "/bin/true"];

/// The steps of one build, each with its microseconds in every round.
type Steps = Vec<(String, Vec<f64>)>;

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let mut builds: Vec<Steps> = vec![Vec::new(); stage.holms.len()];
    for _ in 0..n {
        for (holm, steps) in stage.holms.iter().zip(&mut builds) {
            trace(holm, steps)?;
        }
    }
    let (now, before) = (&builds[0], builds.get(1));
    if now.is_empty() {
        return Err("this holm prints no steps with HOLM_TRACE=1".to_owned());
    }
    let mut text = format!(
        "`HOLM_TRACE=1 holm {}`, microseconds:\n\n\
         | step | median | p10 | p90 |\n|---|---:|---:|---:|\n",
        COMMAND.join(" ")
    );
    for (step, samples) in now {
        text += &row(step, samples);
        if let Some((_, samples)) = before.and_then(|steps| steps.iter().find(|(of, _)| of == step))
        {
            text += &row(&format!("{step}, before"), samples);
        }
    }
    // Steps that only the previous build has.
    for (step, samples) in before.into_iter().flatten() {
        if !now.iter().any(|(of, _)| of == step) {
            text += &row(&format!("{step}, before"), samples);
        }
    }
    for (title, steps) in [("sum of the medians", Some(now)), ("the sum before", before)] {
        let Some(steps) = steps else { continue };
        let sum: f64 = steps.iter().map(|(_, samples)| Summary::of(samples).median).sum();
        text += &format!("| {title} | {sum:.0} | | |\n");
    }
    Ok(text)
}

fn row(title: &str, samples: &[f64]) -> String {
    let Summary { median, p10, p90 } = Summary::of(samples);
    format!("| {title} | {median:.0} | {p10:.0} | {p90:.0} |\n")
}

/// Runs the command once and adds what each step took.
fn trace(holm: &Holm, steps: &mut Steps) -> Result<(), String> {
    let argv = holm.argv(&COMMAND);
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env("HOLM_TRACE", "1").stdin(Stdio::null());
    let output = command.output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(text.trim().to_owned());
    }
    for (step, micros) in text.lines().filter_map(parse) {
        match steps.iter_mut().find(|(known, _)| known == step) {
            Some((_, samples)) => samples.push(micros),
            None => steps.push((step.to_owned(), vec![micros])),
        }
    }
    Ok(())
}

/// A line `trace STEP MICROSECONDS`.
fn parse(line: &str) -> Option<(&str, f64)> {
    let mut fields = line.split_whitespace();
    let (first, step, micros) = (fields.next()?, fields.next()?, fields.next()?);
    (first == "trace").then_some((step, micros.parse().ok()?))
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
