#![forbid(unsafe_code)]
//! holm-import: makes a base. Started by `holm base import`, never by a person.
//!
//! It is a program of its own because composefs brings openssl, and the program that starts guests
//! must stay small. Progress goes to standard output, an error to standard error.

mod acl;
mod apt;
mod archive;
mod busybox;
mod debootstrap;
mod detect;
mod elf;
mod error;
mod folder;
mod objects;
mod pax;
mod report;
mod tar;
mod tree;
mod verity;
mod xattrs;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use holm::pool::{Name, Pool};
use holm::store::{BaseMeta, Phase, Source, Stage};
use rustix::fs::syncfs;
use rustix::process::{Signal, set_parent_process_death_signal};

use error::{Error, Result};
use objects::Objects;
use report::Report;
use tree::Tree;

fn main() -> ExitCode {
    // If `holm` is killed nobody waits for the base any more.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    match parse(std::env::args_os().skip(1)).and_then(|args| import(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", in_words(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error with its causes, and what to do when the disk is full.
fn in_words(error: &Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(e) = cause {
        words = format!("{words}: {e}");
        cause = e.source();
    }
    if error.is_full() {
        words +=
            "; nothing was kept: free some space, or put the Holm root on a larger disk (--root)";
    }
    words
}

struct Args {
    root: PathBuf,
    name: Name,
    mirror: Option<String>,
    source: Source,
}

fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Args> {
    let (mut root, mut name, mut mirror) = (None, None, None);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(Error::Usage("a value is missing"));
        match arg.to_str() {
            Some("--root") => root = Some(value()?.into()),
            Some("--name") => name = Some(value()?),
            Some("--mirror") => mirror = Some(value()?.to_string_lossy().into_owned()),
            Some("--") => {
                let source = Source::parse(&value()?)?;
                let root = root.ok_or(Error::Usage("no root"))?;
                let name = name.ok_or(Error::Usage("no name"))?;
                return Ok(Args {
                    root,
                    name: Name::new(&name.to_string_lossy())?,
                    mirror,
                    source,
                });
            }
            _ => return Err(Error::Usage("unknown option")),
        }
    }
    Err(Error::Usage("no source"))
}

/// Makes the base: into a stage, onto the disk, and only then in sight.
fn import(args: &Args) -> Result<()> {
    let pool = Pool::open(&args.root)?;
    let stage = Stage::new(&pool)?;
    let mut report = Report::new();
    let installed = match &args.source {
        Source::Debootstrap { suite, packages } => {
            // As long as one of its programs writes to the stage, nobody may take it away.
            stage.share_lock()?;
            let mirror = args.mirror.as_deref();
            Some(debootstrap::run(stage.dir(), suite, packages, mirror, &mut report)?)
        }
        _ => None,
    };
    let mut objects = Objects::open(pool.objects_dir(), stage.dir().join("new"))?;
    let mut tree = Tree::new();
    read(&args.source, installed.as_deref(), &mut tree, &mut objects, &mut report)?;
    if let Some(root) = installed {
        fs::remove_dir_all(&root).map_err(Error::io("remove", &root))?;
    }
    write(args, tree, &objects, &stage, &mut report)?;
    objects.publish()?;
    let new = stage.dir().join("new");
    fs::remove_dir_all(&new).map_err(Error::io("remove", &new))?;
    sync(stage.dir())?;
    stage.publish(&args.name)?;
    Ok(())
}

/// Reads the source into the tree, and its file bodies into the stage.
fn read(
    source: &Source,
    installed: Option<&Path>,
    tree: &mut Tree,
    objects: &mut Objects,
    report: &mut Report,
) -> Result<()> {
    let name = source.to_string();
    match source {
        Source::Debootstrap { .. } => {
            let root = installed.unwrap_or(Path::new(""));
            folder::Scan::new(tree, objects, report, &debootstrap::EMPTY).run(root)
        }
        Source::Busybox => busybox::run(tree, objects),
        Source::Stdin => {
            let stdin = std::io::stdin().as_fd().try_clone_to_owned();
            let file = File::from(stdin.map_err(Error::io("open", Path::new("standard input")))?);
            archive::Unpack { tree, objects, report }.run(file, "standard input")
        }
        Source::Path(path) if path.is_dir() => {
            folder::Scan::new(tree, objects, report, &[]).run(path)
        }
        Source::Path(path) => {
            let file = File::open(path).map_err(Error::io("open", path))?;
            archive::Unpack { tree, objects, report }.run(file, &name)
        }
    }
}

/// Writes the base's files into the stage and all that is new to the disk.
fn write(
    args: &Args,
    tree: Tree,
    objects: &Objects,
    stage: &Stage,
    report: &mut Report,
) -> Result<()> {
    let files = tree.count();
    if files == 0 {
        return Err(Error::source(args.source.to_string(), "there are no files in it"));
    }
    let system = detect::detect(&tree, objects);
    let (bytes, own_bytes) = objects.bytes();
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let meta = BaseMeta {
        source: args.source.to_string(),
        created: created.as_secs(),
        files,
        bytes,
        own_bytes,
        system_init: system.init,
        init_kind: system.kind,
        os: system.os,
        arch: system.arch,
    };
    let put = |name: &str, data: &[u8]| {
        let path = stage.dir().join(name);
        fs::write(&path, data).map_err(Error::io("write", &path))
    };
    put("image", &tree.image()?)?;
    put("objects", objects.list().as_bytes())?;
    put("base.toml", meta.to_text().as_bytes())?;
    report.step(Phase::Sync, 0, None, "");
    sync(stage.dir())
}

/// Brings everything written so far to the disk: one call is far quicker than one for each object.
fn sync(dir: &Path) -> Result<()> {
    let dir_file = File::open(dir).map_err(Error::io("open", dir))?;
    syncfs(dir_file).map_err(Error::io("write", dir))
}
