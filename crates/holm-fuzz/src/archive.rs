//! Archives.

use std::io::{Read, copy, sink};

use holm_image::{acl, elf, pax, sparse, tar};

/// A tar archive. Every entry can be read, and all of them together have no more data than the
/// archive.
pub fn tar(data: &[u8]) -> bool {
    let mut archive = tar::Reader::new(data);
    let mut total = 0;
    let whole = loop {
        match archive.next_entry() {
            Ok(None) => break true,
            Err(_) => break false,
            Ok(Some(entry)) => {
                let _ = entry.pax.xattrs(&entry.path);
                assert!(entry.mtime.1 < 1_000_000_000);
                if let Some(map) = entry.sparse {
                    check_map(&map);
                }
                let mut head = Vec::new();
                let read = archive.by_ref().take(64).read_to_end(&mut head).unwrap_or(0);
                let _ = (elf::machine(&head), elf::is_static(&head));
                total += read as u64 + copy(&mut archive, &mut sink()).unwrap_or(0);
            }
        }
    };
    assert!(total <= data.len() as u64, "{total} bytes out of an archive of {}", data.len());
    whole
}

/// The records of an extended header, and an access control list as text.
pub fn pax(data: &[u8]) -> bool {
    let list = acl::encode(&String::from_utf8_lossy(data));
    let Some(pax) = pax::parse(data) else { return list.is_ok() };
    let _ = pax.xattrs(b"file");
    if let Some(map) = pax.sparse_map(&mut &data[..]) {
        check_map(&map);
    }
    true
}

/// The pieces of a file with holes are in ascending order, and within the file.
fn check_map(map: &sparse::Map) {
    let mut end = 0;
    for (offset, length) in &map.data {
        assert!(*offset >= end && offset + length <= map.size, "{map:?}");
        end = offset + length;
    }
}
