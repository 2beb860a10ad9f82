//! Plots in SVG, drawn by gnuplot.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// A curve: its name and its points.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// What a plot is called and what its axes are.
pub struct Axes<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
}

/// Draws the curves into `file`.
pub fn draw(file: &Path, axes: &Axes<'_>, curves: &[Curve]) -> Result<(), String> {
    let fail = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let data = file.with_extension("dat");
    let mut text = String::new();
    for Curve { points, .. } in curves {
        text.extend(points.iter().map(|(x, y)| format!("{x} {y}\n")));
        // Two empty lines part the blocks that `index` counts.
        text += "\n\n";
    }
    fs::write(&data, text).map_err(|error| fail(&data, error))?;
    let script = file.with_extension("gnuplot");
    fs::write(&script, commands(&data, axes, curves)).map_err(|error| fail(&script, error))?;
    let svg = File::create(file).map_err(|error| fail(file, error))?;
    let status = Command::new("gnuplot")
        .arg(&script)
        .stdin(Stdio::null())
        .stdout(svg)
        .status()
        .map_err(|error| format!("gnuplot: {error}"))?;
    for temporary in [&data, &script] {
        fs::remove_file(temporary).map_err(|error| fail(temporary, error))?;
    }
    if status.success() { Ok(()) } else { Err(format!("gnuplot: {status}")) }
}

fn commands(data: &Path, axes: &Axes<'_>, curves: &[Curve]) -> String {
    let Axes { title, x, y } = axes;
    let data = data.display();
    let plots: Vec<String> = curves
        .iter()
        .enumerate()
        .map(|(index, Curve { name, .. })| {
            format!("'{data}' index {index} with lines linewidth 2 title '{name}'")
        })
        .collect();
    format!(
        "set terminal svg size 720,420 font 'sans-serif,12' background 'white'\n\
         set title '{title}'\nset xlabel '{x}'\nset ylabel '{y}'\n\
         set key left top\nset grid\nset yrange [0:*]\nplot {}\n",
        plots.join(", ")
    )
}
