//! `holm edit`.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use clap::Args;
use holm::Code;
use holm::config;
use holm::guest::{self, Guest};

use crate::context::{self, Context};
use crate::failure::Failure;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{settings, term};

pub const VERB: Verb = Verb::new::<Edit>(
    Group::Settings,
    "edit",
    "Edit a guest's guest.toml; it is checked before it counts",
)
.examples("holm edit web\nEDITOR=nano holm edit web");

/// Arguments.
#[derive(Debug, Args)]
pub struct Edit {
    /// The guest
    name: String,
}

impl Run for Edit {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.pool()?;
        let guest = context::guest(&pool, &self.name)?;
        let path = Guest::new(&pool, &guest).config_path();
        let before = config::load(&path)?;
        // Beside the original, which nobody but root can reach, and with the same ending for
        // editors.
        let draft = path.with_file_name(format!("edit-{}.toml", std::process::id()));
        remove_orphans(&draft);
        std::fs::write(&draft, &before)?;
        let after = edit_until_valid(context, &draft);
        let removed = std::fs::remove_file(&draft);
        let after = after?;
        removed?;
        // A program gets the document that says so.
        if after == before && !context.json {
            if !context.quiet {
                term::print_error("nothing changed\n");
            }
            return Ok(0);
        }
        let changed = guest::replace(&Guest::new(&pool, &guest), &before, &after)?;
        settings::report(context, &guest, &changed);
        Ok(0)
    }
}

/// Removes the drafts of edits that were killed: their process ids are in the names.
fn remove_orphans(draft: &Path) {
    let directory = draft.parent().unwrap_or(draft);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix("edit-")?.strip_suffix(".toml"));
        if pid.and_then(|pid| pid.parse::<u32>().ok()).is_some_and(is_dead) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_dead(pid: u32) -> bool {
    matches!(Path::new("/proc").join(pid.to_string()).try_exists(), Ok(false))
}

/// Runs the editor until the text is valid or the user gives up.
fn edit_until_valid(context: &Context, draft: &Path) -> Result<String, Failure> {
    loop {
        run_editor(draft)?;
        let text = std::fs::read_to_string(draft)?;
        match config::parse(&text, "guest.toml") {
            Ok(_) => return Ok(text),
            Err(error) => {
                let failure = Failure::from(error);
                if !std::io::stdin().is_terminal() {
                    return Err(failure.help("nothing was changed"));
                }
                term::print_error(&failure.text(context.colour_errors));
                if !ask_again()? {
                    return Err(Failure::new(
                        Code::EditFailed,
                        "the edit was given up; nothing was changed",
                    ));
                }
            }
        }
    }
}

fn ask_again() -> Result<bool, Failure> {
    term::print_error("Edit again? [Y/n] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer)?;
    Ok(read > 0 && !answer.trim().to_lowercase().starts_with('n'))
}

/// Runs the first editor that is configured or installed.
fn run_editor(draft: &Path) -> Result<(), Failure> {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|v| std::env::var_os(v).filter(|e| !e.is_empty()));
    let editors = named.map_or_else(|| vec!["sensible-editor".into(), "vi".into()], |e| vec![e]);
    for editor in &editors {
        // An editor may come with options ("code --wait"), so a shell takes it apart, as git does.
        let mut line = OsString::from(editor);
        line.push(" \"$@\"");
        let status = Command::new("/bin/sh").arg("-c").arg(line).arg("sh").arg(draft).status()?;
        match status.code() {
            Some(0) => return Ok(()),
            Some(127) => {}
            _ => {
                let editor = editor.display();
                let message =
                    format!("the editor {editor} ended with {status}; nothing was changed");
                return Err(Failure::new(Code::EditFailed, message).object(editor));
            }
        }
    }
    Err(Failure::new(Code::EditFailed, "there is no editor")
        .help("set EDITOR, or use holm set NAME KEY=VALUE"))
}
