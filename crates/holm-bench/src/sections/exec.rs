//! `holm exec` and `holm enter` beside nsenter, into minimal guests that run.

use std::fs;

use crate::rounds::{Case, run as measure, table};
use crate::sections::guests::{Sleepers, init};
use crate::stage::Stage;

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let guests = Sleepers::one_of_each(stage)?;
    let pid = init(&guests[0].names[0])?.to_string();
    let nsenter =
        ["nsenter", "-t", &pid, "-U", "-m", "-u", "-i", "-n", "-p", "-C", "--root", "--wd"];
    let mut commands = vec![Case::new("nsenter", nsenter.iter().copied().chain(["/bin/true"]))];
    commands.extend(guests.iter().map(|guest| {
        Case::of(
            guest.holm,
            "holm exec",
            guest.holm.argv(&["exec", &guest.names[0], "--", "/bin/true"]),
        )
    }));
    let mut text = String::from(
        "`/bin/true` in a running minimal guest. nsenter enters the same namespaces; it joins no \
         cgroup and\ndrops no capabilities.\n\n",
    );
    text += &table(&measure(&commands, n), "nsenter");

    let shell = format!("{} /bin/sh -l", nsenter.join(" "));
    let exit = stage.dir.join("exit");
    fs::write(&exit, "exit\n").map_err(|e| format!("{}: {e}", exit.display()))?;
    let mut shells =
        vec![Case::new("nsenter, a shell", on_a_terminal(shell)).with_input(exit.clone())];
    shells.extend(guests.iter().map(|guest| {
        let enter = guest.holm.argv(&["enter", &guest.names[0]]).join(" ");
        Case::of(guest.holm, "holm enter", on_a_terminal(enter).to_vec()).with_input(exit.clone())
    }));
    text += "\nA login shell that reads `exit`, under `script` for a terminal:\n\n";
    text += &table(&measure(&shells, n), "nsenter, a shell");
    Ok(text)
}

/// Both want a terminal: script(1) gives each one, and adds its own cost.
fn on_a_terminal(line: String) -> [String; 4] {
    ["script".to_owned(), "-qec".to_owned(), line, "/dev/null".to_owned()]
}
