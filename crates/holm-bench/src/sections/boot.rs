//! A Debian with systemd, from the fork until systemd says that the system is up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::peers::{self, Lxc};
use crate::rounds::{Case, cell, in_one_line, table, take_turns};
use crate::stage::Stage;

/// How long a boot may take.
const LIMIT: Duration = Duration::from_secs(90);
/// A boot takes long enough that a few rounds tell.
const ROUNDS: usize = 20;
/// The first round fills caches and is not counted.
const WARM_UP: usize = 1;

/// One way to boot the same files, and to end that again.
struct Boot {
    start: Case,
    /// Ends the guest; those in the foreground are killed.
    end: Option<Vec<String>>,
}

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    stage.debian()?;
    let shared = stage.path("bench");
    fs::create_dir_all(&shared)
        .and_then(|()| fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)))
        .map_err(|e| format!("{shared}: {e}"))?;
    for holm in &stage.holms {
        let name = holm.guest("debian");
        holm.remove_guests(std::slice::from_ref(&name));
        let mounts = format!("mounts={shared}:/bench");
        let settings = ["--set", "net.mode=none", "--set", &mounts];
        holm.run(&[&["create", &name, "--base", "debian"], &settings[..]].concat())?;
    }
    let result = measure(stage, n.min(ROUNDS), &shared);
    for holm in &stage.holms {
        holm.remove_guests(&[holm.guest("debian")]);
    }
    peers::clean_up(stage);
    result
}

/// All ways to boot; `shared` is the host directory that guests see at /bench.
fn boots(stage: &Stage, shared: &str) -> Result<Vec<Boot>, String> {
    let mut boots = Vec::new();
    for holm in &stage.holms {
        let name = holm.guest("debian");
        let start = Case::of(holm, "holm start", holm.argv(&["start", &name]));
        boots.push(Boot { start, end: Some(holm.argv(&["kill", &name])) });
    }
    let bind = format!("--bind={shared}:/bench");
    let nspawn = peers::nspawn(stage, "debian-shifted", &[&bind, "--boot"]);
    boots.push(Boot { start: Case::new("systemd-nspawn --boot", nspawn), end: None });
    let lxc = Lxc { bench: Some(shared), ..Lxc::default() };
    let config = peers::lxc_config(stage, "boot", "debian-shifted", lxc)?;
    let directory = stage.path("lxc");
    let owned = |argv: &[&str]| argv.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>();
    let start = owned(&["lxc-start", "-F", "-P", &directory, "-n", "boot", "-f", &config]);
    let end = owned(&["lxc-stop", "-k", "-P", &directory, "-n", "boot"]);
    boots.push(Boot { start: peers::lxc(stage, "lxc-start", &start)?, end: Some(end) });
    Ok(boots)
}

fn measure(stage: &Stage, n: usize, shared: &str) -> Result<String, String> {
    let boots = boots(stage, shared)?;
    let mut states: Vec<Vec<String>> = vec![Vec::new(); boots.len()];
    let rows = boots.iter().map(|boot| boot.start.row.clone()).collect();
    let outcomes = take_turns(rows, n, WARM_UP, |index| {
        let (took, system_state) =
            once(&boots[index], Path::new(shared), &stage.dir.join("messages"))?;
        if !states[index].contains(&system_state) {
            states[index].push(system_state);
        }
        Ok(took)
    });
    let mut text = format!(
        "Debian 13 with dbus and logind, the same files. A unit of the guest itself writes a file \
         when\n`systemctl is-system-running --wait` returns; the time is measured until then. {n} rounds in \
         turns.\n\n"
    );
    text += &table(&outcomes, "holm start");
    let ended: Vec<String> = boots
        .iter()
        .zip(states)
        .map(|(boot, states)| {
            let states = if states.is_empty() { "nothing".to_owned() } else { states.join(", ") };
            format!("{}: {}", boot.start.row.title(), cell(&states))
        })
        .collect();
    Ok(text + &format!("\nThe state that systemd reported in the end: {}.\n", ended.join("; ")))
}

/// Boots and ends a guest once: milliseconds, and the state that its systemd reported.
fn once(boot: &Boot, shared: &Path, messages: &Path) -> Result<(f64, String), String> {
    let ready = shared.join("ready");
    let _ = fs::remove_file(&ready);
    let begin = Instant::now();
    let child = boot.start.spawn(messages)?;
    let mut running = Running { child, end: boot.end.as_deref() };
    while !ready.exists() {
        if let Ok(Some(status)) = running.child.try_wait()
            && !status.success()
        {
            let text = fs::read_to_string(messages).unwrap_or_default();
            return Err(format!("it ended: {status}: {}", in_one_line(&text)));
        }
        if begin.elapsed() > LIMIT {
            let state = fs::read_to_string(shared.join("state")).unwrap_or_default();
            return Err(format!("not up after {} s ({})", LIMIT.as_secs(), state.trim()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = begin.elapsed().as_secs_f64() * 1e3;
    let state = fs::read_to_string(&ready).map_err(|e| format!("{}: {e}", ready.display()))?;
    Ok((took, state.trim().to_owned()))
}

/// A guest that is up; dropping this ends it.
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
            // A guest outlives a killed monitor, and uses up the inotify instances of the host's
            // root.
            let mut kill = Command::new("kill");
            kill.arg("-KILL").args(process_tree(self.child.id()));
            let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        let _ = self.child.wait();
        // What ends in the background should not disturb the next start.
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// A process and all its descendants, children before parents.
fn process_tree(pid: u32) -> Vec<String> {
    let list = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(list).unwrap_or_default();
    let mut all: Vec<String> = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .flat_map(process_tree)
        .collect();
    all.push(pid.to_string());
    all
}
