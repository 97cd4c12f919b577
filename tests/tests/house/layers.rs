//! The folders of `contigo-core` import one way. Its sources are read here, and an import of a
//! folder that comes later is named with its file and line.

use super::source::{built, root, sources};
use std::{fs, path::Path};

/// A folder imports only from those before it.
const FOLDERS: [&str; 8] = ["types", "trace", "mem", "hw", "job", "linux", "cuda", "dlpack"];
/// The same inside `linux`. Files of the folder itself come first: what all of these may need.
const LINUX: [&str; 5] = ["os", "device", "guard", "memory", "vfio"];

fn place(order: &[&str], name: &str) -> Option<usize> {
    order.iter().position(|folder| *folder == name)
}

/// The first two names of each path that a `use` tree has at the beginning of `text`.
fn heads(text: &str) -> Vec<(String, String)> {
    /// Reads one tree, whose names so far are `outer`, and gives what follows it.
    fn tree<'t>(mut text: &'t str, outer: &[String], found: &mut Vec<(String, String)>) -> &'t str {
        let mut names = outer.to_vec();
        loop {
            text = text.trim_start();
            if let Some(inside) = text.strip_prefix('{') {
                text = inside.trim_start();
                while !text.is_empty() && !text.starts_with('}') {
                    text = tree(text, &names, found).trim_start();
                    text = text.strip_prefix(',').unwrap_or(text).trim_start();
                }
                return text.get(1..).unwrap_or_default();
            }
            let end = text
                .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .unwrap_or(text.len());
            let (name, rest) = text.split_at(end);
            names.push(name.to_owned());
            match rest.strip_prefix("::") {
                Some(rest) if !name.is_empty() => text = rest,
                _ => break,
            }
        }
        let name = |at: usize| names.get(at).cloned().unwrap_or_default();
        found.push((name(0), name(1)));
        // `as name`, `*`: as far as the tree's end.
        let end = text.find([',', '}', ';']).unwrap_or(text.len());
        text.get(end..).unwrap_or_default()
    }
    let mut found = Vec::new();
    tree(text, &[], &mut found);
    found
}

/// Where `code` names the crate: a macro's `$crate` is the user's view of it.
fn imports(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices("crate::").filter(|(at, _)| !code.get(..*at).unwrap().ends_with('$'))
}

/// Where `code` names a room beside its own by `super`: its file lies `depth` folders below the
/// folder's module.
fn beside(code: &str, depth: usize) -> impl Iterator<Item = (usize, &str)> {
    let up = "super::".repeat(depth);
    let found: Vec<_> =
        code.match_indices(&up).map(|(at, _)| (at, code.get(at + up.len()..).unwrap())).collect();
    found.into_iter().filter(move |(at, rest)| {
        depth > 0 && !code.get(..*at).unwrap().ends_with("super::") && !rest.starts_with("super::")
    })
}

/// How many folders the module in a file is below the crate's root.
fn depth(names: &[&str]) -> usize {
    names.len() - usize::from(names.last() == Some(&"mod.rs"))
}

/// The rooms of its folder that `code`, a file at `names`, imports, and where.
fn rooms(names: &[&str], code: &str) -> Vec<(usize, String)> {
    let folder = names.first().copied().unwrap_or_default();
    let named = imports(code).flat_map(|(at, _)| {
        heads(code.get(at + "crate::".len()..).unwrap()).into_iter().map(move |head| (at, head))
    });
    let named = named.filter(|(_, (to, _))| to == folder).map(|(at, (_, room))| (at, room));
    let up = beside(code, depth(names) - 1)
        .flat_map(|(at, rest)| heads(rest).into_iter().map(move |(room, _)| (at, room)));
    named.chain(up).collect()
}

/// The forbidden imports of `code`, a file at `path` below `runtime/core/src`.
fn upward(path: &Path, code: &str) -> Vec<String> {
    let names: Vec<_> = path.iter().map(|name| name.to_str().unwrap()).collect();
    let (folder, room) =
        (names.first().copied().unwrap_or_default(), names.get(1).copied().unwrap_or_default());
    let mut refused = Vec::new();
    let mut refuse = |at: usize, why: String| {
        let line = code.get(..at).unwrap().matches('\n').count() + 1;
        refused.push(format!("runtime/core/src/{}:{line}: {why}", path.display()));
    };
    let Some(here) = place(&FOLDERS, folder) else {
        refuse(0, format!("{folder} is no folder of the core"));
        return refused;
    };
    for (at, _) in imports(code) {
        for (to, inner) in heads(code.get(at + "crate::".len()..).unwrap()) {
            match place(&FOLDERS, &to) {
                None => refuse(at, format!("crate::{to} names the crate's root: name its folder")),
                Some(there) if there > here => {
                    refuse(at, format!("{folder} -> {to}::{inner} points upward"))
                }
                Some(_) => {}
            }
        }
    }
    if let Some(here) = place(&LINUX, room).filter(|_| folder == "linux") {
        for (at, inner) in rooms(&names, code) {
            if place(&LINUX, &inner) > Some(here) {
                refuse(at, format!("linux/{room} -> linux/{inner} points upward"));
            }
        }
    }
    // As many steps up as there are folders lead to the crate's root, past the folder.
    if let Some(at) = code.find(&"super::".repeat(depth(&names))) {
        refuse(at, "leaves its folder by super".to_owned());
    }
    refused
}

#[test]
fn no_import_points_upward() {
    let folder = root().join("runtime/core/src");
    let files: Vec<_> =
        sources(&folder).into_iter().filter(|path| !path.ends_with("src/lib.rs")).collect();
    assert!(files.len() > 90, "all of the sources are found: {}", files.len());
    let mut refused = Vec::new();
    for path in files {
        refused.extend(upward(
            path.strip_prefix(&folder).unwrap(),
            &built(&fs::read_to_string(&path).unwrap()),
        ));
    }
    assert!(refused.is_empty(), "\n{}\n", refused.join("\n"));
}

#[test]
fn the_reading_itself_is_right() {
    let one = |path: &str, code: &str| upward(Path::new(path), code);
    assert_eq!(
        one("mem/port.rs", "\nuse crate::linux::Spin;\n"),
        ["runtime/core/src/mem/port.rs:2: mem -> linux::Spin points upward"]
    );
    assert_eq!(
        one(
            "mem/buf/cpu.rs",
            "use crate::{\n    types::{Error, Result},\n    job::{self, Engine as E},\n};"
        )
        .len(),
        2
    );
    assert_eq!(one("linux/guard/arm.rs", "fn f() -> crate::linux::vfio::Vfio {}").len(), 1);
    for (path, code) in [
        ("linux/os/fd.rs", "use super::super::vfio::Vfio;"),
        ("linux/os/mod.rs", "use super::vfio::Vfio;"),
        ("linux/guard/mod.rs", "use super::{os::fd::Fd, vfio::Vfio};"),
    ] {
        assert_eq!(one(path, code).len(), 1, "{path}: {code}");
    }
    assert!(
        one("linux/os/fd.rs", "use super::vfio::Vfio;").is_empty(),
        "a file of the room itself"
    );
    assert_eq!(
        one("linux/mod.rs", "use crate::Region;").len(),
        1,
        "the root's names hide where they come from"
    );
    assert_eq!(one("hw/wait.rs", "use super::super::job::Engine;").len(), 1);
    assert_eq!(one("hw/mod.rs", "use super::job::Engine;").len(), 1);
    assert_eq!(one("alloc/mod.rs", "").len(), 1, "each folder is a folder");
    for right in [
        "use crate::{types::*, mem::{self, Region}};",
        "use super::device::Uio;",
        "use crate::linux::os::fd::Fd;",
    ] {
        assert!(one("linux/vfio/mod.rs", right).is_empty(), "{right}");
    }
}
