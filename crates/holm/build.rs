//! Builds holm-init, which the library carries inside itself (`monitor::IMAGE`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-musl";

fn main() {
    let workspace = Path::new(&var("CARGO_MANIFEST_DIR")).join("../..");
    for input in [
        "crates/holm-init",
        "crates/holm-proto",
        "crates/holm-sys/Cargo.toml",
        "crates/holm-sys/src/lib.rs",
        "crates/holm-sys/src/bare",
        "crates/holm-sys/src/bare.rs",
        "Cargo.toml",
        ".cargo/config.toml",
    ] {
        println!("cargo:rerun-if-changed={}", workspace.join(input).display());
    }
    // A target directory of its own: the outer cargo holds the lock of the usual one.
    let target_dir = PathBuf::from(var("OUT_DIR")).join("init");
    let mut cargo = Command::new(var("CARGO"));
    cargo
        .current_dir(&workspace)
        .args([
            "build",
            "--quiet",
            "--package",
            "holm-init",
            "--features",
            "program",
            "--profile",
            "init",
            "--target",
            TARGET,
        ])
        .arg("--target-dir")
        .arg(&target_dir);
    // What the outer build wants of its compiler (flags, clippy, coverage) is not meant for this
    // program.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_BUILD_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CLIPPY_ARGS",
    ] {
        cargo.env_remove(name);
    }
    let status = cargo.status().expect("cannot run cargo for holm-init");
    assert!(status.success(), "building holm-init failed: {status}");
    let program = target_dir.join(TARGET).join("init/holm-init");
    println!("cargo:rustc-env=HOLM_INIT_IMAGE={}", program.display());
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo did not set {name}"))
}
