//! Bases that many tests share: imported once, into a Holm root of their own.

use crate::command;
use crate::options::{Lane, Options};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// Names of the shared bases and the source that each is imported from.
const SOURCES: &[(&str, &str)] = &[
    ("busybox", "busybox"),
    (
        "debian11",
        "debootstrap:bullseye+systemd-sysv,dbus,libpam-systemd,iproute2,procps,cron,openssh-server",
    ),
    (
        "debian12",
        "debootstrap:bookworm+systemd-sysv,dbus,libpam-systemd,iproute2,procps,cron,openssh-server",
    ),
    (
        "debian13",
        "debootstrap:trixie+systemd-sysv,dbus,libpam-systemd,iproute2,procps,cron,openssh-server",
    ),
    ("debian13-nginx", "debootstrap:trixie+openssh-server,nginx"),
    ("debian13-sysvinit", "debootstrap:trixie+sysvinit-core,cron,openssh-server"),
    ("debian13-openrc", "debootstrap:trixie+openrc,cron,openssh-server"),
    ("debian13-runit", "debootstrap:trixie+runit-init,cron,openssh-server"),
    ("debian13-ifupdown", "debootstrap:trixie+ifupdown,dhcpcd-base"),
    ("debian13-networkmanager", "debootstrap:trixie+network-manager"),
];

/// A Debian base is fetched over the network.
pub const IMPORT_LIMIT: Duration = Duration::from_mins(10);

/// One import at a time: the tests of one run ask for the same bases at once.
static IMPORTING: Mutex<()> = Mutex::new(());

/// The shared base that is imported from `source`.
pub fn made_from(source: &str) -> Option<&'static str> {
    SOURCES.iter().find(|(_, other)| *other == source).map(|(name, _)| *name)
}

/// Makes sure that the shared base `name` exists and was made from its source in [`SOURCES`].
pub fn base(options: &Options, name: &str) -> Result<(), String> {
    let _lock = IMPORTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (_, source) =
        SOURCES.iter().find(|(known, _)| *known == name).ok_or(format!("no shared base {name}"))?;
    let stamp = options.fixtures.join(format!("{name}.source"));
    if std::fs::read_to_string(&stamp).is_ok_and(|made| made == *source) {
        return Ok(());
    }
    if options.lane == Lane::Vm {
        return Err(format!(
            "the shared base {name} was not handed in: holm-tests --prepare makes it"
        ));
    }
    std::fs::create_dir_all(&options.fixtures)
        .map_err(|error| format!("{}: {error}", options.fixtures.display()))?;
    let holm = |args: &[&str]| {
        let mut command = Command::new(&options.holm);
        command.env("HOLM_ROOT", &options.fixtures).env("HOLM_IMPORT", &options.import).args(args);
        command::run(&mut command, b"", IMPORT_LIMIT)
    };
    if options.fixtures.join("bases").join(name).exists() {
        holm(&["base", "rm", name]);
    }
    let outcome = holm(&["base", "import", name, source]);
    if !outcome.status.success() {
        return Err(outcome.to_string());
    }
    std::fs::write(&stamp, source).map_err(|error| format!("{}: {error}", stamp.display()))
}
