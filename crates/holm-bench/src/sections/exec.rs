//! `holm exec` and `holm enter` beside nsenter, into one and the same guest.

use crate::race::{Contestant, interleaved, table};
use crate::sections::guests::{Sleepers, init};
use crate::stage::Stage;

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let mut sleepers = Sleepers::new(stage);
    let names = sleepers.create_up_to(1)?;
    sleepers.start(&names)?;
    let pid = init(&names[0])?.to_string();
    let nsenter =
        ["nsenter", "-t", &pid, "-U", "-m", "-u", "-i", "-n", "-p", "-C", "--root", "--wd"];
    let commands = [
        Contestant::new("nsenter", nsenter.iter().copied().chain(["/bin/true"])),
        Contestant::new("holm exec", stage.holm(&["exec", &names[0], "--", "/bin/true"])),
    ];
    let mut text = String::from(
        "`/bin/true` in a running minimal guest. nsenter enters the same namespaces; it joins no cgroup and drops no \
         capabilities.\n\n",
    );
    text += &table(&interleaved(&commands, n), "nsenter");

    // Both want a terminal: script(1) gives each one, and its own cost.
    let on_a_terminal =
        |line: String| ["script".to_owned(), "-qec".to_owned(), line, "/dev/null".to_owned()];
    let enter = stage.holm(&["enter", &names[0]]).join(" ");
    let shells = [
        Contestant::new(
            "nsenter, a shell",
            on_a_terminal(format!("{} /bin/sh -l", nsenter.join(" "))),
        ),
        Contestant::new("holm enter", on_a_terminal(enter)),
    ];
    text += "\nA login shell that reads the end of its input, under `script` for a terminal:\n\n";
    text += &table(&interleaved(&shells, n), "nsenter, a shell");
    Ok(text)
}
