//! /proc/self/mountinfo.

#[derive(Debug, Clone)]
pub struct Mount {
    pub id: u64,
    pub parent: u64,
    pub point: String,
    pub options: Vec<String>,
    pub kind: String,
}

pub fn all() -> Vec<Mount> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mount> {
    let words: Vec<&str> = line.split(' ').collect();
    let dash = words.iter().position(|word| *word == "-")?;
    Some(Mount {
        id: words.first()?.parse().ok()?,
        parent: words.get(1)?.parse().ok()?,
        point: words.get(4)?.replace("\\040", " "),
        options: words.get(5)?.split(',').map(str::to_owned).collect(),
        kind: (*words.get(dash + 1)?).to_owned(),
    })
}
