//! Everything that can be seen of a tree, to compare two trees.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{lgetxattr, llistxattr};

/// A tree: each path below its root with what is there.
pub type Listing = BTreeMap<PathBuf, Entry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub mode: u32,
    pub owner: (u32, u32),
    pub mtime: (i64, i64),
    /// Target of a link, size and hash of a file's contents.
    pub content: String,
    pub xattrs: BTreeMap<OsString, Vec<u8>>,
    /// For a file with several names, the first of them, and how many.
    pub names: Option<(PathBuf, u64)>,
}

/// Lists the tree at `root`, without sockets, which a base does not take.
pub fn list(root: &Path) -> Listing {
    let mut listing = Listing::new();
    let mut todo = vec![PathBuf::new()];
    let mut links = HashMap::new();
    while let Some(below) = todo.pop() {
        // With an empty path `join` would add a slash, which follows links.
        let path = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(&below) };
        let found =
            fs::symlink_metadata(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if found.file_type().is_socket() {
            continue;
        }
        if found.is_dir() {
            let entries = fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
            names.sort_by(|a, b| b.cmp(a)); // the last is popped first
            todo.extend(names.iter().map(|name| below.join(name)));
        }
        let several = !found.is_dir() && found.nlink() > 1;
        let names = several.then(|| {
            let first = links.entry((found.dev(), found.ino())).or_insert_with(|| below.clone());
            (first.clone(), found.nlink())
        });
        let entry = Entry {
            mode: found.mode(),
            owner: (found.uid(), found.gid()),
            mtime: (found.mtime(), found.mtime_nsec()),
            content: content(&path, &found),
            xattrs: xattrs(&path),
            names,
        };
        listing.insert(below, entry);
    }
    listing
}

fn content(path: &Path, found: &fs::Metadata) -> String {
    if found.is_symlink() {
        let target = fs::read_link(path).unwrap();
        return format!("-> {}", target.as_os_str().as_encoded_bytes().escape_ascii());
    }
    if !found.is_file() {
        return String::new();
    }
    let mut file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut size = 0;
    loop {
        // Whole pieces, so that equal contents are hashed equally.
        let mut filled = 0;
        while filled < buffer.len() {
            match file
                .read(&mut buffer[filled..])
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
            {
                0 => break,
                n => filled += n,
            }
        }
        if filled == 0 {
            assert_eq!(size, found.len(), "{}: another size than it says", path.display());
            return format!("{size} bytes, hash {:x}", hasher.finish());
        }
        size += filled as u64;
        hasher.write(&buffer[..filled]);
    }
}

fn xattrs(path: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let mut buffer = vec![0; 1 << 16];
    let length =
        llistxattr(path, &mut buffer).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let names = buffer[..length].split(|b| *b == 0).filter(|name| !name.is_empty());
    let mut value = vec![0; 1 << 16];
    names
        .map(|name| {
            let name = OsString::from_vec(name.to_vec());
            let length = lgetxattr(path, &name, &mut value)
                .unwrap_or_else(|e| panic!("{} {}: {e}", path.display(), name.display()));
            (name, value[..length].to_vec())
        })
        .collect()
}

/// Panics with the first differences of two trees.
#[track_caller]
pub fn assert_same(source: &Listing, base: &Listing) {
    let mut wrong = Vec::new();
    for (path, want) in source {
        match base.get(path) {
            None => wrong.push(format!("{} is missing", path.display())),
            Some(have) if have != want => {
                wrong.push(format!("{}:\n  was {want:?}\n  is  {have:?}", path.display()));
            }
            Some(_) => {}
        }
    }
    let more = base.keys().filter(|path| !source.contains_key(*path));
    wrong.extend(more.map(|path| format!("{} is new", path.display())));
    let shown: Vec<String> = wrong.iter().take(8).cloned().collect();
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), shown.join("\n"));
    assert!(source.len() > 1, "two empty trees are no test");
}
