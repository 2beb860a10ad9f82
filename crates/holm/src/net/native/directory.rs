//! The bpf filesystem with an instance's maps, programs and links.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use holm_bpf::{BUILD, BUILD_PREFIX, Map, PROGRAMS, Program, UNIX_PROGRAMS};
use holm_sys::bpf::{self, Hook, Target};
use rustix::io::Errno;

use super::kinds::{STEER, hook, map_kind, used};
use super::unix;
use crate::net::classifier::{self, Packets};
use crate::net::error::Error;
use crate::net::netlink::Socket;

/// Is there when datagrams are steered at all interfaces.
pub const EVERYWHERE: &str = "everywhere";

pub fn fail<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Programs { what, object: path.display().to_string(), source }
}

/// A directory in a bpf filesystem, and what its programs are attached to besides this network
/// namespace.
pub struct Directory<'a> {
    pub at: PathBuf,
    /// The cgroup of the Holm root.
    pub pool: BorrowedFd<'a>,
}

impl Directory<'_> {
    /// Makes the maps, and loads and attaches all programs.
    pub fn fill(&self) -> Result<(), Error> {
        let maps = self.maps()?;
        for program in PROGRAMS {
            self.attach(&load(program, &maps)?, program)?;
        }
        // Not when programs are replaced: sockets of guests that run already are not marked.
        if let Some(kernel) = unix::Kernel::look()? {
            for program in UNIX_PROGRAMS {
                let loaded = load_unix(&kernel, program, &maps)?;
                self.pin_link(&loaded, program, Hook::LsmCgroup, self.pool)?;
            }
        }
        self.mark()
    }

    /// Replaces the programs of another build of Holm, in each link at once: neither a connection
    /// nor a socket notices. If this is killed, the next start does all of it again.
    pub fn replace(&self) -> Result<(), Error> {
        let maps = self.maps()?;
        for program in PROGRAMS {
            let loaded = load(program, &maps)?;
            let name = self.at.join(program.name);
            if !is_there(&name)? {
                self.attach(&loaded, program)?;
            } else if program.name == STEER {
                for link in self.named(|name| name.strip_prefix(STEER)?.strip_prefix('-'))? {
                    replace_steer(&link, &loaded)?;
                }
                fs::remove_file(&name).map_err(fail("remove", &name))?;
                self.attach(&loaded, program)?;
            } else {
                replace(&name, &loaded).map_err(fail("replace the program of", &name))?;
            }
        }
        if let Some(kernel) = unix::Kernel::look()? {
            for program in UNIX_PROGRAMS {
                let name = self.at.join(program.name);
                if is_there(&name)? {
                    let loaded = load_unix(&kernel, program, &maps)?;
                    replace(&name, &loaded).map_err(fail("replace the program of", &name))?;
                }
            }
        }
        // The next start replaces those of private guests' interfaces.
        let everywhere = self.at.join(EVERYWHERE);
        if is_there(&everywhere)? {
            fs::remove_dir(&everywhere).map_err(fail("remove", &everywhere))?;
        }
        for other in self.named(|name| name.strip_prefix(BUILD_PREFIX))? {
            fs::remove_dir(&other).map_err(fail("remove", &other))?;
        }
        self.mark()
    }

    /// Notes whose programs these are.
    fn mark(&self) -> Result<(), Error> {
        let mark = self.at.join(BUILD);
        fs::create_dir(&mark).map_err(fail("make", &mark))
    }

    /// The maps. Those that an older version of Holm did not have are made.
    fn maps(&self) -> Result<Vec<(Map, bpf::Map)>, Error> {
        let map = |kind: Map| {
            let path = self.at.join(kind.name());
            if !is_there(&path)? {
                let made = bpf::Map::create(kind.name(), map_kind(kind), kind.sizes())
                    .map_err(fail("make the map", Path::new(kind.name())))?;
                bpf::pin(made.as_fd(), &path).map_err(fail("pin", Path::new(kind.name())))?;
                return Ok((kind, made));
            }
            let map = bpf::Map::open(&path).map_err(fail("open", &path))?;
            if map.sizes() != kind.sizes() {
                return Err(Error::OtherPrograms { map: kind.name() });
            }
            Ok((kind, map))
        };
        Map::ALL.into_iter().map(map).collect()
    }

    fn attach(&self, loaded: &OwnedFd, program: &Program) -> Result<(), Error> {
        let (name, path) = (Path::new(program.name), self.at.join(program.name));
        let Some(hook) = hook(program.name) else { return Ok(()) };
        let namespace;
        let target = match hook {
            // It stays there to be attached to interfaces, one by one.
            Hook::TcxIngress => {
                return bpf::pin(loaded.as_fd(), &path).map_err(fail("pin", name));
            }
            Hook::SkLookup => {
                let this = Path::new("/proc/self/ns/net");
                namespace = File::open(this).map_err(fail("open", this))?;
                namespace.as_fd()
            }
            _ => self.pool,
        };
        self.pin_link(loaded, program, hook, target)
    }

    /// Attaches a program to a cgroup or network namespace, as long as the directory is there.
    fn pin_link(
        &self,
        loaded: &OwnedFd,
        program: &Program,
        hook: Hook,
        target: BorrowedFd<'_>,
    ) -> Result<(), Error> {
        bpf::link(loaded.as_fd(), hook, Target::Directory(target))
            .and_then(|link| bpf::pin(link.as_fd(), &self.at.join(program.name)))
            .map_err(fail("attach the program", Path::new(program.name)))
    }

    /// What is in it with a name that `is_meant` makes something of.
    fn named(&self, is_meant: impl Fn(&str) -> Option<&str>) -> Result<Vec<PathBuf>, Error> {
        let read = |entry: io::Result<fs::DirEntry>| Ok(entry?.path());
        let all: io::Result<Vec<_>> =
            fs::read_dir(&self.at).and_then(|entries| entries.map(read).collect());
        let mut all = all.map_err(fail("read", &self.at))?;
        all.retain(|path| path.file_name().and_then(|it| is_meant(it.to_str()?)).is_some());
        Ok(all)
    }
}

/// Loads a program that uses these maps.
fn load(program: &Program, maps: &[(Map, bpf::Map)]) -> Result<OwnedFd, Error> {
    let used = used(program, maps);
    // Each has one; there is a test.
    let hook = hook(program.name).unwrap_or(Hook::SkLookup);
    bpf::load_with_maps(hook, program.name, program.instructions, &used)
        .map_err(fail("load the program", Path::new(program.name)))
}

fn load_unix(
    kernel: &unix::Kernel,
    program: &Program,
    maps: &[(Map, bpf::Map)],
) -> Result<OwnedFd, Error> {
    unix::load(kernel, program, maps).map_err(fail("load the program", Path::new(program.name)))
}

/// Has datagrams that arrive at an interface steered to sockets bound to "any". Does nothing if
/// they are already, or if the interface is gone.
pub fn steer(directory: &Path, interface: u32) -> Result<(), Error> {
    let link = directory.join(format!("{STEER}-{interface}"));
    if is_there(&link)? {
        return Ok(());
    }
    let program = directory.join(STEER);
    let attached = bpf::open_pinned(&program)
        .and_then(|it| bpf::link(it.as_fd(), Hook::TcxIngress, Target::Interface(interface)));
    match attached {
        Err(error) if is(&error, Errno::NODEV) => Ok(()),
        attached => attached
            .and_then(|attached| bpf::pin(attached.as_fd(), &link))
            .map_err(fail("attach to an interface", &link)),
    }
}

/// The same for what comes by the interface of a private guest, as a classifier, which the kernel
/// attaches at once. Does nothing if another program is one there, or if the interface or the
/// programs are gone.
pub fn steer_from(directory: &Path, socket: &Socket, interface: u32) -> Result<(), Error> {
    let pinned = directory.join(STEER);
    let program = match bpf::open_pinned(&pinned) {
        Err(error) if is(&error, Errno::NOENT) => return Ok(()),
        opened => opened.map_err(fail("open", &pinned))?,
    };
    match classifier::replace(socket, interface, Packets::Received, STEER, program.as_fd()) {
        Err(error) if is(&error, Errno::NODEV) || is(&error, Errno::EXIST) => Ok(()),
        attached => attached.map_err(fail("attach to an interface", &pinned)),
    }
}

/// Ends that.
pub fn stop_steering_from(socket: &Socket, interface: u32) -> Result<(), Error> {
    if classifier::id(socket, interface, Packets::Received, STEER)?.is_some() {
        classifier::detach(socket, interface, Packets::Received)?;
    }
    Ok(())
}

fn replace(link: &Path, program: &OwnedFd) -> io::Result<()> {
    bpf::replace(bpf::open_pinned(link)?.as_fd(), program.as_fd())
}

/// Replaces the program of an interface, or removes its link if the interface is gone.
fn replace_steer(link: &Path, program: &OwnedFd) -> Result<(), Error> {
    match replace(link, program) {
        Err(error) if is(&error, Errno::NOLINK) => {
            fs::remove_file(link).map_err(fail("remove", link))
        }
        replaced => replaced.map_err(fail("replace the program of", link)),
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn is_there(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(fail("look at", path))
}
