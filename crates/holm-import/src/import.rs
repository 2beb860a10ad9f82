//! Making a base: into a stage, onto the disk, and only then in sight.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use holm::pool::Pool;
use holm::store::{BaseMeta, Object, Phase, Source, Stage};
use holm_image::source::{archive, busybox, debootstrap, directory};
use holm_image::{Objects, System, Tree};
use rustix::fs::syncfs;

use crate::args::Args;
use crate::error::{Error, Result};
use crate::report::Report;

/// Makes the base.
pub fn import(args: &Args) -> Result<()> {
    let pool = Pool::open(&args.root)?;
    let stage = Stage::new(&pool)?;
    let mut report = Report::new();
    let installed = install(args, &stage, &mut report)?;
    let new = stage.dir().join("new");
    let mut objects = Objects::open(pool.objects_dir(), new.clone())?;
    let mut tree = Tree::new();
    read(&args.source, installed.as_deref(), &mut tree, &mut objects, &mut report)?;
    if let Some(root) = installed {
        fs::remove_dir_all(&root).map_err(Error::io("remove", &root))?;
    }
    write(args, tree, &objects, &stage)?;
    report.step(Phase::Sync, 0, None, "");
    sync(stage.dir())?;
    objects.publish()?;
    fs::remove_dir_all(&new).map_err(Error::io("remove", &new))?;
    sync(stage.dir())?;
    stage.publish(&args.name)?;
    Ok(())
}

/// Installs a source that has to be installed into the stage; returns where it is.
fn install(args: &Args, stage: &Stage, report: &mut Report) -> Result<Option<PathBuf>> {
    let Source::Debootstrap { suite, packages } = &args.source else { return Ok(None) };
    // As long as one of its programs writes to the stage, nobody may take it away.
    stage.share_lock()?;
    let mirror = args.mirror.as_deref();
    let mut progress = report.of(Phase::Install);
    let root = debootstrap::install(stage.dir(), suite, packages, mirror, &mut progress)?;
    Ok(Some(root))
}

/// Reads the source into the tree, and its file bodies into the stage.
fn read(
    source: &Source,
    installed: Option<&Path>,
    tree: &mut Tree,
    objects: &mut Objects,
    report: &mut Report,
) -> Result<()> {
    let progress = &mut report.of(Phase::Read);
    match source {
        Source::Debootstrap { .. } => {
            let root = installed.unwrap_or(Path::new(""));
            directory::read(root, &debootstrap::EMPTY, tree, objects, progress)?;
        }
        Source::Busybox => busybox::read(tree, objects)?,
        Source::Stdin => {
            let stdin = std::io::stdin().as_fd().try_clone_to_owned();
            let file = File::from(stdin.map_err(Error::io("open", Path::new("standard input")))?);
            archive::read(file, "standard input", tree, objects, progress)?;
        }
        Source::Path(path) if path.is_dir() => {
            directory::read(path, &[], tree, objects, progress)?;
        }
        Source::Path(path) => {
            let file = File::open(path).map_err(Error::io("open", path))?;
            archive::read(file, &source.to_string(), tree, objects, progress)?;
        }
    }
    Ok(())
}

/// Writes the base's files into the stage.
fn write(args: &Args, tree: Tree, objects: &Objects, stage: &Stage) -> Result<()> {
    let files = tree.count();
    if files == 0 {
        return Err(Error::Empty(args.source.to_string()));
    }
    let system = System::detect(&tree, objects);
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
    let line = |(path, size): (&str, u64)| format!("{}\n", Object { path: path.into(), size });
    put("objects", objects.bodies().map(line).collect::<String>().as_bytes())?;
    put("base.toml", meta.to_text().as_bytes())
}

/// Brings everything written so far to the disk: one call is far quicker than one for each object.
fn sync(dir: &Path) -> Result<()> {
    let dir_file = File::open(dir).map_err(Error::io("open", dir))?;
    syncfs(dir_file).map_err(Error::io("write", dir))
}
