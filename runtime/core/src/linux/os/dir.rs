//! The names in a directory under `/sys`, read without a heap.

use super::fd::Fd;
use crate::types::Error;

/// Where the entry's length and the name's letters are in an entry (`struct linux_dirent64`, man 2
/// getdents). An inode and an offset of 8 bytes each come first. 2 bytes of the entry's length, 1
/// of its type, and the name with a NUL follow.
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;

/// The bytes that one call fills. Entries begin at multiples of 8.
#[repr(align(8))]
struct Buffer([u8; 2_048]);

/// Calls to the end of a directory. The longest that is read here has a link for each PCI function,
/// 32 bytes each: 64 calls are 4,096 functions, and a PC has some tens.
const MAX_CALLS: u32 = 64;

/// Gives `each` every name in `folder` that is text, except for `.` and `..`, in the kernel's
/// order. `name` is the folder's name, for errors.
///
/// # Errors
/// The error of `each`, at once; [`Error::AttributeUnreadable`]; [`Error::Unexpected`] where the
/// directory does not end.
pub fn each_name(
    folder: &Fd,
    name: &'static str,
    mut each: impl FnMut(&str) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = Buffer([0; 2_048]);
    for _ in 0..MAX_CALLS {
        let count = folder
            .next_entries(&mut buffer.0)
            .map_err(|errno| Error::AttributeUnreadable { name, errno })?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = buffer.0.get(..count).unwrap_or(&[]);
        while let Some((entry, after)) = first(rest) {
            match entry {
                b"." | b".." => {}
                entry => core::str::from_utf8(entry).map_or(Ok(()), &mut each)?,
            }
            rest = after;
        }
    }
    Err(Error::Unexpected { name, value: MAX_CALLS.into() })
}

/// The first entry's name, and what comes after the entry; `None` where no whole entry is left.
fn first(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = entries.get(LENGTH_AT..LENGTH_AT + 2)?;
    let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
    // An entry has at least its fixed part, so each round shortens the rest.
    let name = entries.get(NAME_AT..length)?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Some((name.get(..end)?, entries.get(length..)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::linux::os::path::Path;
    use nix::libc::{O_DIRECTORY, O_RDONLY};
    use std::collections::BTreeSet;
    use std::fs;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn every_name_is_given_once() {
        let here = Fd::open(c"/proc/self/task", O_RDONLY | O_DIRECTORY).unwrap();
        let mut threads = Vec::new();
        each_name(&here, "task", |name| {
            threads.push(name.parse::<u32>().unwrap());
            Ok(())
        })
        .unwrap();
        assert!(threads.contains(&std::process::id()), "{threads:?}");

        // More than fit in one buffer.
        let path =
            std::env::temp_dir().join(std::format!("contigo-entries-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let expected: BTreeSet<_> = (0..200).map(|index| std::format!("uio{index}")).collect();
        expected.iter().for_each(|name| fs::write(path.join(name), []).unwrap());
        let folder = Path::join(&[path.to_str().unwrap()]).unwrap();
        let folder = Fd::open(folder.as_c_str(), O_RDONLY | O_DIRECTORY).unwrap();
        let mut names = BTreeSet::new();
        let read = each_name(&folder, "200", |name| {
            assert!(names.insert(name.to_string()), "{name} came twice");
            Ok(())
        });
        fs::remove_dir_all(&path).unwrap();
        assert_eq!((read, names), (Ok(()), expected));
    }

    #[test]
    fn an_error_ends_it() {
        let here = Fd::open(c"/proc/self", O_RDONLY | O_DIRECTORY).unwrap();
        let mut given = 0;
        let ended = each_name(&here, "self", |_| {
            given += 1;
            Err(Error::Busy)
        });
        assert_eq!((ended, given), (Err(Error::Busy), 1));
        let file = Fd::open(c"/proc/self/stat", O_RDONLY).unwrap();
        let refused = Error::AttributeUnreadable { name: "stat", errno: nix::libc::ENOTDIR };
        assert_eq!(each_name(&file, "stat", |_| Ok(())), Err(refused));
    }

    #[test]
    fn what_is_no_entry_ends_the_list() {
        let mut entry = [0; 24];
        entry[NAME_AT..NAME_AT + 3].copy_from_slice(b"uio");
        for (length, expected) in [
            (24, Some((&b"uio"[..], &[][..]))),
            (25, None),
            (19, Some((&[][..], &entry[19..]))),
            (18, None),
            (0, None),
        ] {
            let mut entry = entry;
            entry[LENGTH_AT..LENGTH_AT + 2].copy_from_slice(&u16::to_ne_bytes(length));
            assert_eq!(first(&entry), expected, "{length}");
        }
        assert_eq!(first(&[0; 17]), None);
    }
}
