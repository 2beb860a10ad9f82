//! A Debian with systemd, from the first fork until systemd says that all is up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::peers::{self, Lxc};
use crate::race::{Outcome, cell, table};
use crate::stage::Stage;

/// How long a boot may take.
const LIMIT: Duration = Duration::from_secs(90);
/// A boot takes long enough that a few rounds tell.
const ROUNDS: usize = 20;
const NAME: &str = "bench-debian";

/// One way to boot the same files, and to end that again.
struct Boot {
    name: &'static str,
    start: Vec<String>,
    /// Ends the guest; those in the foreground are killed.
    end: Option<Vec<String>>,
}

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    stage.debian()?;
    let folder = stage.path("bench");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)))
        .map_err(|e| format!("{folder}: {e}"))?;
    let names = [NAME.to_owned()];
    stage.drop_guests(&names);
    let mounts = format!("mounts={folder}:/bench");
    stage.run_holm(&[
        "create",
        NAME,
        "--base",
        "debian",
        "--set",
        "net.mode=none",
        "--set",
        &mounts,
    ])?;
    let result = boots(stage, n.min(ROUNDS), &folder);
    stage.drop_guests(&names);
    peers::clean_up(stage);
    result
}

fn boots(stage: &Stage, n: usize, folder: &str) -> Result<String, String> {
    let config = peers::lxc_config(
        stage,
        "boot",
        "debian-shifted",
        Lxc { limits: false, bench: Some(folder) },
    )?;
    let lxc = stage.path("lxc");
    let words = |line: &[&str]| line.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let boots = [
        Boot {
            name: "holm start",
            start: stage.holm(&["start", NAME]),
            end: Some(stage.holm(&["kill", NAME])),
        },
        Boot {
            name: "systemd-nspawn --boot",
            start: peers::nspawn(
                stage,
                "debian-shifted",
                &[&format!("--bind={folder}:/bench"), "--boot"],
            ),
            end: None,
        },
        Boot {
            name: "lxc-start",
            start: words(&["lxc-start", "-F", "-P", &lxc, "-n", "boot", "-f", &config]),
            end: Some(words(&["lxc-stop", "-k", "-P", &lxc, "-n", "boot"])),
        },
    ];
    let mut outcomes: Vec<Outcome> = boots
        .iter()
        .map(|boot| Outcome { name: boot.name.to_owned(), samples: Ok(Vec::new()) })
        .collect();
    let mut states: Vec<Vec<String>> = vec![Vec::new(); boots.len()];
    // The first round fills caches and is not counted.
    for round in 0..=n {
        for (index, boot) in boots.iter().enumerate() {
            let Ok(samples) = &mut outcomes[index].samples else { continue };
            match once(boot, Path::new(folder)) {
                Ok((took, said)) => {
                    if round > 0 {
                        samples.push(took);
                    }
                    if !states[index].contains(&said) {
                        states[index].push(said);
                    }
                }
                Err(reason) => outcomes[index].samples = Err(reason),
            }
        }
    }
    let mut text = format!(
        "Debian 13 with dbus and logind, the same files. A unit of the guest itself writes a file when `systemctl \
         is-system-running --wait` returns; until then it counts. {n} rounds in turns.\n\n"
    );
    text += &table(&outcomes, "holm start");
    text += "\nWhat systemd said in the end:";
    for (boot, states) in boots.iter().zip(states) {
        text += &format!(
            " {}: {};",
            boot.name,
            if states.is_empty() { "nothing".to_owned() } else { cell(&states.join(", ")) }
        );
    }
    Ok(text.trim_end_matches(';').to_owned() + ".\n")
}

/// Boots and ends a guest once: milliseconds, and what its systemd said.
fn once(boot: &Boot, folder: &Path) -> Result<(f64, String), String> {
    let ready = folder.join("ready");
    let _ = fs::remove_file(&ready);
    let mut command = Command::new(&boot.start[0]);
    command.args(&boot.start[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let child = command.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => "not installed".to_owned(),
        _ => e.to_string(),
    })?;
    let mut running = Running { child, end: boot.end.as_deref() };
    while !ready.exists() {
        if let Ok(Some(status)) = running.child.try_wait()
            && !status.success()
        {
            return Err(format!("it ended: {status}"));
        }
        if begin.elapsed() > LIMIT {
            let state = fs::read_to_string(folder.join("state"));
            return Err(format!(
                "not up after {} s ({})",
                LIMIT.as_secs(),
                state.unwrap_or_default().trim()
            ));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = begin.elapsed().as_secs_f64() * 1e3;
    let state = fs::read_to_string(&ready).map_err(|e| format!("{}: {e}", ready.display()))?;
    Ok((took, state.trim().to_owned()))
}

/// A guest that is up, ended when this goes.
struct Running<'a> {
    child: Child,
    end: Option<&'a [String]>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            let mut command = Command::new(&end[0]);
            let _ = command.args(&end[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        } else {
            // A guest outlives a keeper that is killed, and takes what the host's root has of inotify.
            let mut kill = Command::new("kill");
            kill.arg("-KILL").args(family(self.child.id()));
            let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        let _ = self.child.wait();
        // What dies in the background should not meet the next one's start.
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// A process and all that it and its children started, youngest first.
fn family(pid: u32) -> Vec<String> {
    let list = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(list).unwrap_or_default();
    let mut all: Vec<String> =
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).flat_map(family).collect();
    all.push(pid.to_string());
    all
}
