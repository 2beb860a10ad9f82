//! `disk.kind = "read-only"`: only volumes and what is in memory can be written to.

use super::filesystem::fails;
use crate::guest::{exec, launch_idle};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(only_its_volumes_can_be_written_to).bases(&["busybox"])];

fn only_its_volumes_can_be_written_to(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--set", "disk.kind=read-only", "-v", "data:/var/data"]);
    let id = exec(sandbox, "box", "cat /etc/machine-id; hostname").ok().stdout;
    fails(sandbox, "box", "echo x >/file");
    fails(sandbox, "box", "chmod 700 /etc");
    fails(sandbox, "box", "rm /bin/busybox");
    // [read-only] The mount is the host's: guest root can change its flags as little as unmount it.
    fails(sandbox, "box", "mount -o remount,rw /; mount -o remount,bind,rw /; echo x >/file");
    exec(sandbox, "box", "echo x >/run/file; echo kept >/var/data/file").ok();
    sandbox.holm(&["restart", "box"]).ok();
    let after = exec(sandbox, "box", "cat /etc/machine-id; hostname").ok().stdout;
    assert_eq!(after, id, "its identity stays");
    exec(sandbox, "box", "[ ! -e /run/file ] && [ \"$(cat /var/data/file)\" = kept ]").ok();
    sandbox.holm(&["set", "box", "disk.kind=overlay"]).refused(&["disk.kind is fixed"]);
    sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
}
