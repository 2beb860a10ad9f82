//! Link options that keep the program to a few pages.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The standard library would bring it along.
    println!("cargo:rustc-link-arg-bins=-lc");
    for arg in
        ["-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,--build-id=none", "-Wl,--gc-sections"]
    {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
}
