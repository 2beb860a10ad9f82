//! Names of guests (`net.names`), which those that have theirs resolve for one another.
//!
//! ```text
//! /run/holm/INSTANCE/hosts    mounted at /etc/hosts of each guest with net.names
//!   10.97.0.5 web.holm web    for each of their addresses; '#' where one was
//! ```
//!
//! It is changed in place, as a file that is mounted can only be: a line is made a comment before
//! another takes its room, so that whoever reads meanwhile finds no address that is not the name's.
//! It is there while one of these guests runs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::lock;
use crate::record::Network;
use crate::step;

/// What every host's has.
const HEAD: &str = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n\
                    # Guests of Holm with net.names:\n";
/// The domain of all names.
const DOMAIN: &str = "holm";
/// What is left of a line.
const BLANK: u8 = b'#';

/// The file of an instance.
pub fn file(instance: u8) -> PathBuf {
    PathBuf::from(format!("/run/holm/{instance}/hosts"))
}

fn fail(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Setting { what, path, source }
}

fn lock(instance: u8) -> Result<File, Error> {
    lock::lock(lock::path(instance, "names"), &"the names of guests")
}

/// The lines of a guest.
fn lines(network: &Network, name: &str) -> String {
    let line = |address| format!("{address} {name}.{DOMAIN} {name}\n");
    network.own_addresses().into_iter().map(line).collect()
}

/// Tells the name of a guest, if it has one: before it runs, and when its addresses change.
pub fn add(network: &Network) -> Result<(), Error> {
    let Some(name) = &network.name else { return Ok(()) };
    let _lock = lock(network.instance)?;
    let path = file(network.instance);
    let mut options = OpenOptions::new();
    let open = options.read(true).write(true).create(true).truncate(false);
    let mut file = open.open(&path).map_err(fail("open", &path))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(fail("read", &path))?;
    let written = if text.is_empty() {
        // Also where umask would keep it from the guests' users.
        file.set_permissions(Permissions::from_mode(0o644))
            .and_then(|()| file.write_all(format!("{HEAD}{}", lines(network, name)).as_bytes()))
    } else {
        change(&file, &text, name, &lines(network, name))
    };
    written.map_err(fail("write", &path))?;
    step::done("names");
    Ok(())
}

/// Removes the name of a guest whose processes have ended; succeeds if it is not there.
pub fn remove(network: &Network) -> Result<(), Error> {
    let Some(name) = &network.name else { return Ok(()) };
    let _lock = lock(network.instance)?;
    let path = file(network.instance);
    let file = match OpenOptions::new().read(true).write(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(fail("open", &path))?,
    };
    let mut text = String::new();
    (&file).read_to_string(&mut text).map_err(fail("read", &path))?;
    change(&file, &text, name, "").map_err(fail("write", &path))?;
    if spans(&text).all(|(_, line)| is_free(line) || is_of(line, name)) {
        fs::remove_file(&path).map_err(fail("remove", &path))?;
    }
    Ok(())
}

/// Removes what an instance without running guests may have left.
pub fn destroy(instance: u8) -> Result<(), Error> {
    let path = file(instance);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fail("remove", &path)(error)),
        _ => Ok(()),
    }
}

/// The lines of guests, and where each begins.
fn spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    let place = move |line: &str| {
        let begin = next;
        next += line.len();
        begin
    };
    let lines = text.split_inclusive('\n').scan(place, |place, line| Some((place(line), line)));
    lines.filter(|(begin, _)| *begin >= HEAD.len())
}

fn is_free(line: &str) -> bool {
    line.trim_end().bytes().all(|byte| byte == BLANK)
}

fn is_of(line: &str, name: &str) -> bool {
    line.split_whitespace().next_back() == Some(name)
}

/// Removes the lines of a name and writes others, where there is room or at the end.
fn change(file: &File, text: &str, name: &str, new: &str) -> io::Result<()> {
    let mut free = Vec::new();
    for (begin, line) in spans(text) {
        let length = line.trim_end().len();
        if is_of(line, name) {
            file.write_all_at(&vec![BLANK; length], begin as u64)?;
        }
        if is_of(line, name) || is_free(line) {
            free.push((begin, length));
        }
    }
    let mut end = text.len();
    for line in new.lines() {
        if let Some(at) = free.iter().position(|&(_, length)| length >= line.len()) {
            let (begin, length) = free.remove(at);
            // The rest first: the line is a comment until its first byte is written.
            let line = format!("{line:length$}").into_bytes();
            file.write_all_at(&line[1..], begin as u64 + 1)?;
            file.write_all_at(&line[..1], begin as u64)?;
        } else {
            file.write_all_at(format!("{line}\n").as_bytes(), end as u64)?;
            end += line.len() + 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of names in memory's place.
    struct Hosts(File);

    impl Hosts {
        fn new(text: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("holm-hosts-{:?}", std::thread::current().id()));
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(true).open(&path);
            fs::remove_file(&path).unwrap();
            let file = file.unwrap();
            file.write_all_at(format!("{HEAD}{text}").as_bytes(), 0).unwrap();
            Self(file)
        }

        fn text(&self) -> String {
            let mut bytes = vec![0; usize::try_from(self.0.metadata().unwrap().len()).unwrap()];
            self.0.read_exact_at(&mut bytes, 0).unwrap();
            String::from_utf8(bytes).unwrap()
        }

        fn change(&self, name: &str, new: &str) -> String {
            change(&self.0, &self.text(), name, new).unwrap();
            self.text().strip_prefix(HEAD).unwrap().to_owned()
        }
    }

    #[test]
    fn a_name_takes_the_room_of_one_that_is_gone() {
        let hosts = Hosts::new("10.97.0.1 web.holm web\nfd00::1 web.holm web\n");
        assert_eq!(
            hosts.change("db", "10.97.0.2 db.holm db\n"),
            "10.97.0.1 web.holm web\nfd00::1 web.holm web\n10.97.0.2 db.holm db\n"
        );
        assert_eq!(
            hosts.change("web", ""),
            "######################\n####################\n10.97.0.2 db.holm db\n"
        );
        assert_eq!(
            hosts.change("sql", "10.97.0.3 sql.holm sql\nfd00::3 sql.holm sql\n"),
            "10.97.0.3 sql.holm sql\nfd00::3 sql.holm sql\n10.97.0.2 db.holm db\n"
        );
        assert_eq!(
            hosts.change("longer", "10.97.0.4 longer.holm longer\n"),
            "10.97.0.3 sql.holm sql\nfd00::3 sql.holm sql\n10.97.0.2 db.holm db\n\
             10.97.0.4 longer.holm longer\n"
        );
    }

    #[test]
    fn a_name_with_other_addresses_has_those_alone() {
        let hosts = Hosts::new("10.97.0.1 web.holm web\nfd00::1 web.holm web\n");
        assert_eq!(
            hosts.change("web", "10.9.0.7 web.holm web\n"),
            "10.9.0.7 web.holm web \n####################\n"
        );
        assert_eq!(hosts.change("eb", ""), "10.9.0.7 web.holm web \n####################\n");
    }
}
