//! What a unification costs, beside programs that find equal files in a tree.

mod guests;
mod tools;

use crate::cost::{Cost, MIB, Tree, prepare_caches};
use crate::stage::Stage;
use crate::stats::Summary;
use guests::Guests;
use tools::{TOOLS, Tool};

/// A round makes the tree twice for each program, which takes minutes.
const ROUNDS: usize = 3;

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    guests::make(stage)?;
    let rounds = n.min(ROUNDS);
    let mut tree = Tree::default();
    let mut text = String::new();
    for cold in [true, false] {
        let mut holm = Vec::new();
        let mut others: Vec<Result<Vec<Cost>, String>> =
            TOOLS.iter().map(|_| Ok(Vec::new())).collect();
        for _ in 0..rounds {
            let guests = Guests::upgraded(stage)?;
            tree = Tree::of(&guests.upper_directories())?;
            for (tool, costs) in TOOLS.iter().zip(&mut others) {
                let Ok(so_far) = costs else { continue };
                match with_tool(stage, tool, &guests, cold) {
                    Ok(cost) => so_far.push(cost),
                    Err(why) => *costs = Err(why),
                }
            }
            prepare_caches(cold, &guests.upper_directories())?;
            holm.push(guests.unify()?);
        }
        text += &format!(
            "\n{}:\n\n",
            if cold { "Caches dropped before" } else { "All in the page cache" }
        );
        text += &head();
        text += &row("holm unify", &Ok(holm), &tree);
        for (tool, costs) in TOOLS.iter().zip(&others) {
            text += &row(tool.name, costs, &tree);
        }
    }
    let Tree { files, bytes } = tree;
    Ok(format!(
        "{} guests of a Debian with the same packages upgraded in each, and files of its own: {files:.0} \
         files of\n{:.0} MiB in their private layers. The others have a copy of these, all on \
         {}, and find equal\nfiles within it; Holm also those that a base has. duperemove shares \
         extents, on the disk alone; the last\nthree make hard links: a guest that writes to one changes \
         all. {rounds} rounds; medians (p10 to p90).\n`bytes per file`: the largest resident set, by \
         the number of files.\n{text}",
        guests::COUNT,
        bytes / MIB,
        stage.filesystem()
    ))
}

/// A run of one of the others, on a fresh copy of the guests' files.
fn with_tool(stage: &Stage, tool: &Tool, guests: &Guests, cold: bool) -> Result<Cost, String> {
    let copy = tools::Copy::new(stage, &guests.upper_directories())?;
    prepare_caches(cold, std::slice::from_ref(&copy.tree))?;
    let cost = copy.deduplicate(tool)?;
    eprintln!("holm-bench: {}: {} s", tool.name, cost.seconds);
    Ok(cost)
}

fn head() -> String {
    format!(
        "| | seconds | MiB/s | files/s | CPU seconds | peak MiB | bytes per file | saved MiB |\n|---|{}\n",
        "---:|".repeat(7)
    )
}

fn row(name: &str, costs: &Result<Vec<Cost>, String>, tree: &Tree) -> String {
    let costs = match costs {
        Ok(costs) => costs,
        Err(why) => return format!("| {name} | not measured: {} |\n", crate::rounds::cell(why)),
    };
    let all = |of: fn(&Cost) -> f64| Summary::of(&costs.iter().map(of).collect::<Vec<f64>>());
    let seconds = all(|cost| cost.seconds);
    let peak = all(|cost| cost.peak_kib).median * 1024.0;
    format!(
        "| {name} | {} | {:.0} | {:.0} | {} | {:.1} | {:.0} | {:.0} |\n",
        seconds.with_spread(),
        tree.bytes / MIB / seconds.median,
        tree.files / seconds.median,
        all(|cost| cost.cpu_seconds).with_spread(),
        peak / MIB,
        peak / tree.files,
        all(|cost| cost.saved).median / MIB
    )
}
