#![forbid(unsafe_code)]
//! Fuzz targets. Each takes arbitrary bytes, panics if the parser does or its result is
//! inconsistent, and otherwise returns whether the parser accepted the bytes.
//!
//! The binaries in `fuzz/` run them with libFuzzer, which needs a nightly compiler.
//! `tests/bounded.rs` replays the corpus in `fuzz/corpus` and a bounded number of mutations of it,
//! with any compiler.

mod archive;
mod flows;
mod host_files;
mod managed_block;
mod netlink;
mod responder;
mod settings;
mod terminal;

pub use archive::{pax, tar};
pub use flows::flows;
pub use host_files::{cgroup_files, mountinfo, nft_chains, proc_files, proc_net};
pub use managed_block::managed_block;
pub use netlink::netlink;
pub use responder::responder;
pub use settings::{guest_changes, guest_toml};
pub use terminal::escape_filter;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its corpus directory and of its file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Runs it on one input.
    pub run: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: [Target; 14] = [
    Target { name: "cgroup_files", run: cgroup_files },
    Target { name: "escape_filter", run: escape_filter },
    Target { name: "flows", run: flows },
    Target { name: "guest_changes", run: guest_changes },
    Target { name: "guest_toml", run: guest_toml },
    Target { name: "managed_block", run: managed_block },
    Target { name: "mountinfo", run: mountinfo },
    Target { name: "netlink", run: netlink },
    Target { name: "nft_chains", run: nft_chains },
    Target { name: "pax", run: pax },
    Target { name: "proc_files", run: proc_files },
    Target { name: "proc_net", run: proc_net },
    Target { name: "responder", run: responder },
    Target { name: "tar", run: tar },
];
