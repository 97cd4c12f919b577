//! The runtime's wings import one way. Its sources are read here, and an import of a wing that
//! comes later is named with its file and line. The same reading draws the picture in
//! `ARCHITECTURE.md`: `CONTIGO_WRITE_PICTURE=1 cargo test -p contigo-tests --test wings` writes it
//! anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that panics has failed, which is its purpose")]

mod source;

use source::{built, root, sources};
use std::{collections::BTreeSet, env, fmt::Write as _, fs, path::Path};

/// A wing imports only from wings before it.
const WINGS: [&str; 12] = ["types", "trace", "mem", "hw", "job", "sim", "design", "drivers", "linux", "cuda", "dlpack", "names"];
/// The same inside `linux`. Files of the wing itself come first: what all of these may need.
const LINUX: [&str; 5] = ["os", "device", "guard", "memory", "vfio"];

fn place(order: &[&str], name: &str) -> Option<usize> {
    order.iter().position(|wing| *wing == name)
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
            let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
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
/// wing's module.
fn beside(code: &str, depth: usize) -> impl Iterator<Item = (usize, &str)> {
    let up = "super::".repeat(depth);
    let found: Vec<_> = code.match_indices(&up).map(|(at, _)| (at, code.get(at + up.len()..).unwrap())).collect();
    found.into_iter().filter(move |(at, rest)| depth > 0 && !code.get(..*at).unwrap().ends_with("super::") && !rest.starts_with("super::"))
}

/// How many folders the module in a file is below the crate's root.
fn depth(names: &[&str]) -> usize {
    names.len() - usize::from(names.last() == Some(&"mod.rs"))
}

/// The rooms of its wing that `code`, a file at `names`, imports, and where.
fn rooms(names: &[&str], code: &str) -> Vec<(usize, String)> {
    let wing = names.first().copied().unwrap_or_default();
    let named = imports(code).flat_map(|(at, _)| heads(code.get(at + "crate::".len()..).unwrap()).into_iter().map(move |head| (at, head)));
    let named = named.filter(|(_, (to, _))| to == wing).map(|(at, (_, room))| (at, room));
    let up = beside(code, depth(names) - 1).flat_map(|(at, rest)| heads(rest).into_iter().map(move |(room, _)| (at, room)));
    named.chain(up).collect()
}

/// The forbidden imports of `code`, a file at `path` below `runtime/src`.
fn upward(path: &Path, code: &str) -> Vec<String> {
    let names: Vec<_> = path.iter().map(|name| name.to_str().unwrap()).collect();
    let (wing, room) = (names.first().copied().unwrap_or_default(), names.get(1).copied().unwrap_or_default());
    let mut refused = Vec::new();
    let mut refuse = |at: usize, why: String| {
        let line = code.get(..at).unwrap().matches('\n').count() + 1;
        refused.push(format!("runtime/src/{}:{line}: {why}", path.display()));
    };
    let Some(here) = place(&WINGS, wing) else {
        refuse(0, format!("{wing} is no wing"));
        return refused;
    };
    for (at, _) in imports(code) {
        for (to, inner) in heads(code.get(at + "crate::".len()..).unwrap()) {
            match place(&WINGS, &to) {
                None => refuse(at, format!("crate::{to} names the crate's root: name its wing")),
                Some(there) if there > here => refuse(at, format!("{wing} -> {to}::{inner} points upward")),
                Some(_) => {}
            }
        }
    }
    if let Some(here) = place(&LINUX, room).filter(|_| wing == "linux") {
        for (at, inner) in rooms(&names, code) {
            if place(&LINUX, &inner) > Some(here) {
                refuse(at, format!("linux/{room} -> linux/{inner} points upward"));
            }
        }
    }
    // As many steps up as there are folders lead to the crate's root, past the wing.
    if let Some(at) = code.find(&"super::".repeat(depth(&names))) {
        refuse(at, "leaves its wing by super".to_owned());
    }
    refused
}

#[test]
fn no_import_points_upward() {
    let folder = root().join("runtime/src");
    let files: Vec<_> = sources(&folder).into_iter().filter(|path| !path.ends_with("src/lib.rs")).collect();
    assert!(files.len() > 100, "all of the sources are found: {}", files.len());
    let mut refused = Vec::new();
    for path in files {
        refused.extend(upward(path.strip_prefix(&folder).unwrap(), &built(&fs::read_to_string(&path).unwrap())));
    }
    assert!(refused.is_empty(), "\n{}\n", refused.join("\n"));
}

/// For each of `order`, what its files import of those before it: `read` says of a file, and its
/// code, where it is and what it imports. (An arrow upward is refused above.)
fn arrows(order: &[&str], read: impl Fn(&[&str], &str) -> (String, Vec<String>)) -> Vec<BTreeSet<usize>> {
    let folder = root().join("runtime/src");
    let mut arrows = vec![BTreeSet::new(); order.len()];
    // The barrier's tests are built for tests alone, and need the simulated board.
    for path in sources(&folder).into_iter().filter(|path| !path.ends_with("barrier_tests.rs")) {
        let below = path.strip_prefix(&folder).unwrap();
        let names: Vec<_> = below.iter().map(|name| name.to_str().unwrap()).collect();
        let (here, imported) = read(&names, &built(&fs::read_to_string(&path).unwrap()));
        let Some(from) = place(order, &here) else { continue };
        arrows[from].extend(imported.iter().filter_map(|name| place(order, name)).filter(|to| *to < from));
    }
    arrows
}

/// A table as text: a row imports from each column with a dot.
fn matrix(order: &[&str], arrows: &[BTreeSet<usize>]) -> String {
    let width = order.iter().map(|name| name.len()).max().unwrap();
    let mut text = format!("{:width$}", "");
    let columns = order.get(..order.len() - 1).unwrap();
    columns.iter().for_each(|name| write!(text, "  {name}").unwrap());
    for (name, imported) in order.iter().zip(arrows).skip(1) {
        write!(text, "\n{name:width$}").unwrap();
        let mut line = String::new();
        for (to, column) in columns.iter().enumerate() {
            let dot = if imported.contains(&to) { "●" } else { "" };
            write!(line, "  {dot:^0$}", column.len()).unwrap();
        }
        text += line.trim_end();
    }
    text + "\n"
}

/// A drawing of the same: of the arrows only those that no other way leads along.
fn drawing(order: &[&str], arrows: &[BTreeSet<usize>]) -> String {
    fn reaches(arrows: &[BTreeSet<usize>], from: usize, to: usize) -> bool {
        arrows[from].iter().any(|next| *next == to || reaches(arrows, *next, to))
    }
    let mut text = "flowchart TD\n".to_owned();
    for (from, name) in order.iter().enumerate().rev() {
        let direct = |to: &&usize| !arrows[from].iter().any(|by| reaches(arrows, *by, **to));
        let ends: Vec<_> = arrows[from].iter().filter(direct).map(|to| order[*to]).collect();
        if !ends.is_empty() {
            writeln!(text, "    {name} --> {}", ends.join(" & ")).unwrap();
        }
    }
    text
}

/// The arrows between wings, and those between the rooms of `linux`.
fn pictures() -> [Vec<BTreeSet<usize>>; 2] {
    let wings = arrows(&WINGS, |names, code| {
        let found = imports(code).flat_map(|(at, _)| heads(code.get(at + "crate::".len()..).unwrap()));
        (names.first().copied().unwrap_or_default().to_owned(), found.map(|(wing, _)| wing).collect())
    });
    let linux = arrows(&LINUX, |names, code| match names {
        ["linux", room, ..] => ((*room).to_owned(), rooms(names, code).into_iter().map(|(_, room)| room).collect()),
        _ => (String::new(), Vec::new()),
    });
    [wings, linux]
}

#[test]
fn each_wing_says_what_it_imports() {
    let [arrows, _] = pictures();
    for (wing, imported) in WINGS.into_iter().zip(arrows) {
        let text = fs::read_to_string(root().join("runtime/src").join(wing).join("mod.rs")).unwrap();
        let said = text.lines().find_map(|line| line.strip_prefix("//! Imports: "));
        let said: Vec<_> = said.into_iter().flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
        let imported: Vec<_> = imported.into_iter().map(|to| WINGS[to]).collect();
        assert_eq!(said, imported, "{wing}/mod.rs says the first, and its files import the second");
    }
}

#[test]
fn the_picture_has_every_arrow() {
    const NAMES: [&str; 2] = ["<!-- The picture of the wings: tests/tests/wings.rs writes it. -->\n", "<!-- Its end. -->\n"];
    let [wings, linux] = pictures();
    let picture = format!(
        "\n```mermaid\n{}```\n\n```text\n{}\n{}```\n\n",
        drawing(&WINGS, &wings),
        matrix(&WINGS, &wings),
        matrix(&LINUX, &linux).replacen("      ", "linux/", 1)
    );
    let path = root().join("ARCHITECTURE.md");
    let page = fs::read_to_string(&path).unwrap();
    let [begin, end] = NAMES.map(|name| page.find(name).unwrap_or_else(|| panic!("ARCHITECTURE.md has no line {name}")));
    let begin = begin + NAMES[0].len();
    if env::var_os("CONTIGO_WRITE_PICTURE").is_some() {
        fs::write(&path, format!("{}{picture}{}", page.get(..begin).unwrap(), page.get(end..).unwrap())).unwrap();
        return;
    }
    let old = page.get(begin..end).unwrap();
    assert!(old == picture, "ARCHITECTURE.md has another picture: CONTIGO_WRITE_PICTURE=1 writes it anew\n{picture}");
}

#[test]
fn the_drawing_itself_is_right() {
    // c imports a and b, b imports a: the arrow from c to a says nothing new.
    let (order, arrows) = (["a", "bb", "c"], [BTreeSet::new(), BTreeSet::from([0]), BTreeSet::from([0, 1])]);
    assert_eq!(matrix(&order, &arrows), "    a  bb\nbb  ●\nc   ●  ●\n");
    assert_eq!(drawing(&order, &arrows), "flowchart TD\n    c --> bb\n    bb --> a\n");
}

#[test]
fn the_reading_itself_is_right() {
    let one = |path: &str, code: &str| upward(Path::new(path), code);
    assert_eq!(one("mem/port.rs", "\nuse crate::linux::Spin;\n"), ["runtime/src/mem/port.rs:2: mem -> linux::Spin points upward"]);
    assert_eq!(one("mem/buf/cpu.rs", "use crate::{\n    types::{Error, Result},\n    job::{self, Engine as E},\n};").len(), 2);
    assert_eq!(one("linux/guard/arm.rs", "fn f() -> crate::linux::vfio::Vfio {}").len(), 1);
    for (path, code) in [
        ("linux/os/fd.rs", "use super::super::vfio::Vfio;"),
        ("linux/os/mod.rs", "use super::vfio::Vfio;"),
        ("linux/guard/mod.rs", "use super::{os::fd::Fd, vfio::Vfio};"),
    ] {
        assert_eq!(one(path, code).len(), 1, "{path}: {code}");
    }
    assert!(one("linux/os/fd.rs", "use super::vfio::Vfio;").is_empty(), "a file of the room itself");
    assert_eq!(one("linux/mod.rs", "use crate::Region;").len(), 1, "the root's names hide where they come from");
    assert_eq!(one("hw/wait.rs", "use super::super::job::Engine;").len(), 1);
    assert_eq!(one("hw/mod.rs", "use super::job::Engine;").len(), 1);
    assert_eq!(one("alloc/mod.rs", "").len(), 1, "each folder is a wing");
    for right in ["use crate::{types::*, mem::{self, Region}};", "use super::device::Uio;", "use crate::linux::os::fd::Fd;"] {
        assert!(one("linux/vfio/mod.rs", right).is_empty(), "{right}");
    }
}
