//! Link options that keep the program to a few pages.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=discard.ld");
    // The standard library would bring it along.
    println!("cargo:rustc-link-arg-bins=-lc");
    for arg in
        ["-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,--build-id=none", "-Wl,--gc-sections"]
    {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-arg-bins=-Wl,--no-eh-frame-hdr,-T,{directory}/discard.ld");
}
