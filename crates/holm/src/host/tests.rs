use std::path::Path;

use super::features::FEATURES;
use super::finding::{Answer, State};
use super::probe::is_listed;
use super::{access, core_dumps, disk, ids, kernel, layers, network, process, tools};

fn state(answer: &Answer) -> &'static str {
    match answer {
        Answer::Yes(_) => "yes",
        Answer::Partly(_) => "partly",
        Answer::No(_) => "no",
        Answer::Untried(_) => "untried",
    }
}

#[test]
fn kernels() {
    let cases = [
        ("6.12.107+deb13-cloud-amd64", "yes"),
        ("7.3.4+deb13-amd64", "yes"),
        ("6.18.44-fc-v595", "yes"),
        ("6.12-rc1", "yes"),
        ("6.11.12", "no"),
        ("5.15.0-1-generic", "no"),
        ("mainline", "partly"),
        ("", "partly"),
    ];
    for (release, expected) in cases {
        assert_eq!(state(&kernel::judge(release)), expected, "{release}");
    }
}

#[test]
fn criu_versions() {
    let cases = [
        ("Version: 4.1.1\n", "yes"),
        ("Version: 4.2\nGitID: v4.2-1-g0\n", "yes"),
        ("Version: 3.17.1\n", "partly"),
        ("usage: criu\n", "no"),
        ("", "no"),
    ];
    for (text, expected) in cases {
        assert_eq!(state(&tools::judge_criu(text)), expected, "{text}");
    }
}

#[test]
fn capability_lines() {
    let cases = [
        ("Name:\tholm\nCapEff:\t000001ffffffffff\n", "yes"),
        ("CapEff:\t000001fffeffffff\n", "partly"), // no CAP_SYS_RESOURCE
        ("CapEff:\t00000000a80425fb\n", "no"),     // Docker's default
        ("CapEff:\t0000000000000000\n", "no"),
        ("CapEff:\twhat\n", "partly"),
        ("", "partly"),
    ];
    for (text, expected) in cases {
        assert_eq!(state(&access::judge_capabilities(text)), expected, "{text}");
    }
    let Answer::Partly(text) = access::judge_capabilities("CapEff:\t000001fffeffffff\n") else {
        unreachable!()
    };
    assert_eq!(text, "without CAP_SYS_RESOURCE");
}

#[test]
fn subordinate_ids() {
    let clean = "alice:100000:65536\nbob:165536:65536\n# a comment\nbroken\ncarol:x:y\n";
    assert!(ids::overlapping(clean).is_empty());
    let cases = [
        "dave:67108864:1",
        "erin:60000000:10000000",
        "frank:1879048191:65536",
        "1000:100000:4000000000",
    ];
    for line in cases {
        assert_eq!(ids::overlapping(&format!("{clean}{line}\n")), [line]);
    }
    assert!(ids::overlapping("grace:1879048192:65536\nheidi:67043328:65536\n").is_empty());
}

const MOUNTS: &str = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw,prjquota
22 21 8:2 / /srv rw,relatime shared:2 - xfs /dev/vdb rw,attr2,prjquota,noquota
23 21 8:3 / /data rw - btrfs /dev/vdc rw,space_cache=v2
24 21 0:30 / /run rw,nosuid - tmpfs tmpfs rw,size=1k
25 21 8:4 / /mnt/with\\040space rw - ext4 /dev/vdd rw
26 22 8:4 / /srv rw - xfs /dev/vde rw,noquota
";

#[test]
fn filesystems() {
    let kinds = [
        ("/", "ext4"),
        ("/srv/x", "xfs"), // by the later mount
        ("/srvother", "ext4"),
        ("/data/holm", "btrfs"),
        ("/run/holm", "tmpfs"),
    ];
    for (path, expected) in kinds {
        let found = disk::filesystem(MOUNTS, Path::new(path)).map(|(kind, _)| kind);
        assert_eq!(found, Some(expected), "{path}");
    }
    assert_eq!(disk::filesystem("", Path::new("/")), None);
    assert_eq!(disk::filesystem(MOUNTS, Path::new("/mnt/with space/x")), Some(("ext4", "rw")));
}

#[test]
fn own_cgroups() {
    let cases = [
        ("0::/user.slice/session-1.scope\n", Some("user.slice/session-1.scope")),
        ("12:pids:/x\n1:name=systemd:/y\n0::/\n", Some("")),
        ("0::/gone (deleted)\n", Some("gone")),
        ("12:pids:/x\n", None),
    ];
    for (text, expected) in cases {
        assert_eq!(process::own_cgroup(text), expected.map(Path::new), "{text}");
    }
}

#[test]
fn netlink_answers() {
    let answer = |kind: u16, error: i32| {
        let mut bytes = vec![0; 20];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[16..20].copy_from_slice(&error.to_ne_bytes());
        network::judge_reply(&bytes)
    };
    assert_eq!(answer(2, 0), Ok(()));
    assert_eq!(answer(0x0a0f, -1), Ok(()));
    assert!(answer(2, -1).unwrap_err().contains("not permitted"));
    assert!(network::judge_reply(&[0; 3]).is_err());
}

#[test]
fn forced_answers() {
    assert!(is_listed("erofs,overlay", "overlay"));
    assert!(is_listed(" erofs , overlay", "erofs"));
    assert!(!is_listed("cgroup-v2", "cgroup"));
    assert!(!is_listed("", "overlay"));
}

#[test]
fn every_feature_says_what_it_costs_and_what_mends_it() {
    for feature in FEATURES {
        let finding = feature.finding(Answer::No("so".to_owned()));
        assert_ne!(finding.state, State::Ok, "{}", feature.name);
        assert!(!finding.cost.is_empty() && !finding.remedy.is_empty(), "{}", feature.name);
        assert!(!feature.needed || feature.without == State::Missing, "{}", feature.name);
        let finding = feature.finding(Answer::Yes("so".to_owned()));
        assert_eq!((finding.state, finding.cost, finding.remedy), (State::Ok, "", ""));
        let named = FEATURES.iter().filter(|other| other.name == feature.name).count();
        assert_eq!(named, 1, "{} stands twice", feature.name);
    }
}

#[test]
fn limits_are_compared() {
    let file = std::env::temp_dir().join(format!("holm-limit-{}", std::process::id()));
    for (text, expected) in [("128\n", "yes"), ("127\n", "partly"), ("many", "partly")] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(
            state(&ids::at_least(file.to_str().unwrap(), 128, "of them")),
            expected,
            "{text}"
        );
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(state(&ids::at_least(file.to_str().unwrap(), 128, "of them")), "partly");
}

#[test]
fn programs_for_crashes_are_bounded() {
    let state = |pattern, limit| state(&core_dumps::judge(pattern, limit));
    assert_eq!(state("core", "0"), "yes");
    assert_eq!(state("/var/crash/core.%p", "0"), "yes");
    assert_eq!(state("|/usr/lib/systemd/systemd-coredump %P %u", "16"), "yes");
    assert_eq!(state("|/usr/lib/systemd/systemd-coredump %P %u", "0"), "partly");
}

#[test]
fn the_probe_image_is_one_block() {
    let image = layers::empty_image();
    assert_eq!(image.len(), 4096);
    assert_eq!(image[1024..1028], 0xe0f5_e1e2_u32.to_le_bytes());
}

#[test]
fn the_manual_has_every_feature() {
    let manual = include_str!("../../../../docs/doctor.md");
    for feature in FEATURES {
        assert!(
            manual.contains(&format!("| `{}` |", feature.name)),
            "docs/doctor.md lacks {}",
            feature.name
        );
    }
}
