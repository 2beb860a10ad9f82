//! Building a base in a staging directory, which is synced to disk before it becomes the base.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use holm::pool::Pool;
use holm::store::{BaseMeta, Object, Phase, Remarks, Source, Staging};
use holm_image::source::{archive, busybox, debootstrap, directory};
use holm_image::{Objects, System, Tree, check};
use rustix::fs::syncfs;

use crate::args::Import;
use crate::error::{Error, Result};
use crate::report::{self, Report};

/// Imports the base.
pub fn import(pool: &Pool, args: &Import) -> Result<()> {
    let staging = Staging::new(pool)?;
    let mut report = Report::new();
    let mirror = args.mirror.as_deref();
    let installed = install(&args.source, mirror, &staging, &mut report)?;
    let new = staging.dir().join("new");
    let objects = Objects::open(pool.objects_dir(), new.clone())?;
    let mut tree = Tree::new();
    read(&args.source, installed.as_deref(), &mut tree, &objects, &mut report)?;
    if let Some(root) = installed {
        fs::remove_dir_all(&root).map_err(Error::io("remove", &root))?;
    }
    let devices = tree.left_out();
    write(args, tree, &objects, &staging)?;
    report.step(Phase::Sync, 0, None, "");
    sync(staging.dir())?;
    objects.commit()?;
    fs::remove_dir_all(&new).map_err(Error::io("remove", &new))?;
    sync(staging.dir())?;
    staging.commit(&args.name)?;
    report::line(&Remarks { restored_objects: objects.restored(), left_out_devices: devices });
    Ok(())
}

/// Installs a source that needs it, and returns the directory with the result.
pub fn install(
    source: &Source,
    mirror: Option<&str>,
    staging: &Staging,
    report: &mut Report,
) -> Result<Option<PathBuf>> {
    let Source::Debootstrap { suite, packages } = source else { return Ok(None) };
    // The staging directory must not be removed while one of the installer's programs writes there.
    staging.share_lock()?;
    let mut progress = report.of(Phase::Install);
    let root = debootstrap::install(staging.dir(), suite, packages, mirror, &mut progress)?;
    Ok(Some(root))
}

/// Reads the source into the tree, and its file bodies into the staging directory.
pub fn read(
    source: &Source,
    installed: Option<&Path>,
    tree: &mut Tree,
    objects: &Objects,
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
        Source::Path(path) => {
            let look = fs::metadata(path).map_err(Error::io("open", path))?;
            if look.is_dir() {
                directory::read(path, &[], tree, objects, progress)?;
            } else {
                let file = File::open(path).map_err(Error::io("open", path))?;
                archive::read(file, &source.to_string(), tree, objects, progress)?;
            }
        }
    }
    Ok(())
}

/// Writes the base's files into the staging directory.
fn write(args: &Import, tree: Tree, objects: &Objects, staging: &Staging) -> Result<()> {
    let files = tree.count();
    if files == 0 {
        return Err(Error::Empty(args.source.to_string()));
    }
    let system = System::detect(&tree, objects);
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let image = tree.image()?;
    let meta = BaseMeta {
        source: args.source.to_string(),
        created: created.as_secs(),
        files,
        bytes: objects.bytes(),
        own_bytes: objects.new_bytes(),
        system_init: system.init,
        init_kind: system.kind,
        os: system.os,
        arch: system.arch,
        image_digest: check::image_digest(&image),
    };
    let put = |name: &str, data: &[u8]| {
        let path = staging.dir().join(name);
        fs::write(&path, data).map_err(Error::io("write", &path))
    };
    objects.check_room(image.len() as u64)?;
    put("image", &image)?;
    let line = |(path, size)| format!("{}\n", Object { path, size });
    put("objects", objects.bodies().into_iter().map(line).collect::<String>().as_bytes())?;
    put("base.toml", meta.to_text().as_bytes())
}

/// Syncs the filesystem: one call is far faster than one for each object.
pub fn sync(dir: &Path) -> Result<()> {
    let dir_file = File::open(dir).map_err(Error::io("open", dir))?;
    syncfs(dir_file).map_err(Error::io("sync the filesystem of", dir))
}
