//! Lists of objects.
//!
//! Whatever refers to objects keeps a list of them, with a line for each: its path below `objects`
//! and its length in bytes.
//!
//! ```text
//! ab/cdef... 4711
//! ```

use std::fmt;
use std::fs;
use std::path::Path;

use super::error::Error;

/// One line of a list of objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Its path below `objects`: `ab/cdef...`, 65 bytes.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.size)
    }
}

/// Parses a list of objects; the error is the number of the first invalid line.
pub fn parse(text: &str) -> Result<Vec<Object>, usize> {
    let object = |line: &str| {
        let (path, size) = line.split_once(' ')?;
        let hex = |s: &str| s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let (dir, file) = path.split_once('/')?;
        let good = dir.len() == 2 && file.len() == 62 && hex(dir) && hex(file);
        good.then_some(Object { path: path.into(), size: size.parse().ok()? })
    };
    text.lines().enumerate().map(|(n, line)| object(line).ok_or(n + 1)).collect()
}

/// Reads the list in the file `path`.
pub(super) fn read(path: &Path) -> Result<Vec<Object>, Error> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    parse(&text).map_err(|line| Error::Objects { path: path.to_owned(), line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let name = format!("ab/{}", "0".repeat(62));
        let good = format!("{name} 65\n{name} 18446744073709551615\n");
        let objects = parse(&good).unwrap();
        assert_eq!(objects[0], Object { path: name.clone(), size: 65 });
        assert_eq!(objects[1].size, u64::MAX);
        let lines: Vec<String> = objects.iter().map(ToString::to_string).collect();
        assert_eq!(lines.join("\n") + "\n", good);
        assert_eq!(parse("").unwrap(), []);
        for (text, line) in [
            (format!("{name} 1\n\n"), 2),
            (format!("{name}\n"), 1),
            (format!("{name} x\n"), 1),
            (format!("{name}0 1\n"), 1),
            (format!("../{} 1\n", "0".repeat(62)), 1),
            (format!("ab/../{} 1\n", "0".repeat(59)), 1),
        ] {
            assert_eq!(parse(&text), Err(line), "{text}");
        }
    }
}
