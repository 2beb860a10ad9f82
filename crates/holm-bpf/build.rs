//! Compiles the BPF programs with clang, and writes their instructions as a Rust table.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolIndex};

/// The tables, and what they are made of.
const TABLES: [(&str, &[&str]); 4] = [
    ("programs.rs", &["calls", "packets"]),
    ("unix.rs", &["unix"]),
    ("port.rs", &["port"]),
    ("departures.rs", &["departures"]),
];
/// Each program is a section of this prefix.
const PROGRAM: &str = "program/";

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    let [native, unix, port, departures] =
        TABLES.map(|(file, sources)| (file, table(&out, sources)));
    let mut hasher = DefaultHasher::new();
    (&native.1, &unix.1).hash(&mut hasher);
    let name = format!("\"build-{:016x}\"\n", hasher.finish());
    for (file, text) in [native, unix, port, departures, ("build-name.rs", name)] {
        fs::write(out.join(file), text).expect("the build directory can be written to");
    }
}

fn table(out: &Path, sources: &[&str]) -> String {
    let mut table = String::from("&[\n");
    for source in sources {
        let object = out.join(source).with_extension("o");
        compile(&Path::new("src").join(format!("{source}.bpf.c")), &object);
        append_programs(&mut table, &fs::read(&object).expect("clang has written it"));
    }
    table + "]\n"
}

/// Without debugging information, so that the result depends on the source and clang alone.
fn compile(source: &Path, object: &Path) {
    let clang = env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let status = Command::new(&clang)
        .args(["-O2", "-mcpu=v3", "-target", "bpf", "-Wall", "-Wextra", "-Werror"])
        // Debian keeps <asm/types.h> apart for each architecture.
        .args(["-idirafter", "/usr/include/x86_64-linux-gnu"])
        .args(["-idirafter", "/usr/include/aarch64-linux-gnu"])
        .arg("-c")
        .args([source, Path::new("-o"), object])
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} could not compile {}: {status}", source.display()),
        Err(error) => panic!(
            "cannot run {clang}, which compiles BPF programs (Debian: apt install clang libbpf-dev): \
             {error}"
        ),
    }
}

fn append_programs(table: &mut String, object: &[u8]) {
    let object = ElfFile64::<LittleEndian>::parse(object).expect("an ELF file");
    for section in object.sections() {
        let section_name = section.name().expect("text");
        let Some(name) = section_name.strip_prefix(PROGRAM) else { continue };
        let code = section.data().expect("instructions");
        let _ = writeln!(table, "Program {{ name: {name:?}, instructions: &[");
        for instruction in code.chunks_exact(8) {
            let _ = writeln!(table, "{instruction:?},");
        }
        table.push_str("], maps: &[");
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                panic!("{name}: a relocation to no symbol");
            };
            let _ = write!(table, "({}, Map::{}), ", at / 8, variant(&object, symbol));
        }
        table.push_str("] },\n");
    }
}

/// The variant of `Map` with the name of a symbol.
fn variant(object: &ElfFile64<'_, LittleEndian>, symbol: SymbolIndex) -> String {
    let symbol = object.symbol_by_index(symbol).expect("a symbol");
    let name = symbol.name().expect("text");
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}
