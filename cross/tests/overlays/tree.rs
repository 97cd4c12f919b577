//! A device tree as text, and what must be true of any tree with these overlays, as Linux reads it.

use super::{Outcome, run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A device tree: each node by its path, each property as dtc prints it.
pub(crate) type Tree = BTreeMap<String, BTreeMap<String, String>>;

/// A blob as text, and what dtc warns of in it, without the file's name before each line.
pub(crate) fn read(blob: &Path) -> Outcome<(Tree, BTreeSet<String>)> {
    let text = blob.with_extension("text");
    let warnings =
        run(Command::new("dtc").args(["-I", "dtb", "-O", "dts", "-o"]).arg(&text).arg(blob))?;
    let warnings = warnings
        .lines()
        .map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest).to_owned())
        .collect();
    Ok((parse(&fs::read_to_string(text)?), warnings))
}

/// dtc's own output has one node or property a line.
pub(crate) fn parse(text: &str) -> Tree {
    let mut tree = Tree::new();
    let mut path: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {") {
            path.push(if name == "/" { "" } else { name });
            tree.entry(path.join("/")).or_default();
        } else if line == "};" {
            path.pop();
        } else if let Some(property) = line.strip_suffix(';') {
            let (name, value) = property.split_once(" = ").unwrap_or((property, ""));
            tree.entry(path.join("/")).or_default().insert(name.to_owned(), numbers(value));
        }
    }
    tree
}

/// Some versions print `0x00`, others `0x0`.
pub(crate) fn numbers(value: &str) -> String {
    let Some(cells) = value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else {
        return value.to_owned();
    };
    let cell = |cell: &str| {
        u32::from_str_radix(cell.strip_prefix("0x").unwrap_or(cell), 16)
            .map_or(cell.to_owned(), |number| format!("{number:#x}"))
    };
    format!("<{}>", cells.split_whitespace().map(cell).collect::<Vec<_>>().join(" "))
}

pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

pub(crate) fn property<'tree>(tree: &'tree Tree, path: &str, name: &str) -> Outcome<&'tree str> {
    let node = tree.get(path).ok_or_else(|| format!("there is no {path}"))?;
    Ok(node.get(name).ok_or_else(|| format!("{path} has no {name}"))?)
}

/// The path with what its `*` stands for.
pub(crate) fn named<'tree>(tree: &'tree Tree, path: &'tree str) -> &'tree str {
    let Some((before, after)) = path.split_once('*') else { return path };
    let fits = |own: &&String| {
        parent(own) == parent(path) && own.starts_with(before) && own.ends_with(after)
    };
    tree.keys().find(fits).map_or(path, String::as_str)
}

pub(crate) fn pointed<'tree>(tree: &'tree Tree, path: &str, name: &str) -> Outcome<&'tree str> {
    let phandle = property(tree, path, name)?;
    let found = tree.iter().find(|(_, node)| node.get("phandle").is_some_and(|own| own == phandle));
    Ok(found.ok_or_else(|| format!("{name} of {path} points nowhere"))?.0)
}

/// Whether `dma-coherent` holds for a node: Linux looks upwards (of_dma_is_coherent).
pub(crate) fn coherent(tree: &Tree, path: &str) -> bool {
    let mut at = path;
    loop {
        if tree.get(at).is_some_and(|node| node.contains_key("dma-coherent")) {
            return true;
        }
        if at.is_empty() {
            return false;
        }
        at = parent(at);
    }
}

/// Every engine is one device of Linux, with registers and whole interrupts, and no other driver
/// takes it. of_platform_populate makes devices of the children of the root, and of buses all the
/// way up. A node that says `arm,primecell` becomes an AMBA device instead, which the module does
/// not bind.
pub(crate) fn check_engines(tree: &Tree) -> Outcome {
    let like = |node: &BTreeMap<String, String>, what: &str| {
        node.get("compatible").is_some_and(|names| names.contains(what))
    };
    let mut names = BTreeSet::new();
    for (path, node) in tree.iter().filter(|(_, node)| like(node, "\"contigo,engine\"")) {
        property(tree, path, "reg")?;
        let others = ["arm,primecell", "generic-uio", "simple-bus"];
        if let Some(other) = others.into_iter().find(|other| like(node, other)) {
            return Err(format!("{path} says {other} too").into());
        }
        let mut bus = parent(path);
        let is_bus = |node: &BTreeMap<_, _>| like(node, "simple-bus") || like(node, "arm,amba-bus");
        while !bus.is_empty() {
            if !tree.get(bus).is_some_and(is_bus) {
                return Err(format!("{bus} is no bus: Linux makes no device of {path}").into());
            }
            bus = parent(bus);
        }
        if !names.insert(path.rsplit('/').next()) {
            return Err(format!("another engine is called as {path} is").into());
        }
        let controller = pointed_or_above(tree, path)?;
        if !tree[controller].contains_key("interrupt-controller") {
            let why = format!("{path}: {controller} is no interrupt controller");
            return Err(why.into());
        }
        let cells = property(tree, path, "interrupts")?.split_whitespace().count();
        if cells % 3 != 0 || node.get("status").is_some_and(|status| status != "\"okay\"") {
            let why =
                format!("{path} has {cells} cells of interrupts, or a status other than okay");
            return Err(why.into());
        }
    }
    match tree.iter().find(|(_, node)| like(node, "contigo,dma-port")) {
        Some((path, _)) => Err(format!("{path} is a second node, which no driver binds").into()),
        None => Ok(()),
    }
}

pub(crate) fn pointed_or_above<'tree>(tree: &'tree Tree, path: &str) -> Outcome<&'tree str> {
    let mut at = path;
    while !tree.get(at).is_some_and(|node| node.contains_key("interrupt-parent")) && !at.is_empty()
    {
        at = parent(at);
    }
    pointed(tree, at, "interrupt-parent")
}

/// A block of u-dma-buf has its size, its name, and a pool that exists where it names one.
pub(crate) fn check_blocks(tree: &Tree) -> Outcome {
    let is_block = |node: &BTreeMap<String, String>| {
        node.get("compatible").is_some_and(|names| names == "\"ikwzm,u-dma-buf\"")
    };
    for (path, node) in tree.iter().filter(|(_, node)| is_block(node)) {
        property(tree, path, "size")?;
        if Some(property(tree, path, "device-name")?.trim_matches('"')) != path.strip_prefix('/') {
            return Err(format!("{path} is called otherwise in /dev").into());
        }
        if !node.contains_key("memory-region") {
            continue;
        }
        let pool = pointed(tree, path, "memory-region")?;
        if parent(pool) != "/reserved-memory" || !tree[pool].contains_key("reusable") {
            return Err(format!("{path} has {pool} for its pool").into());
        }
        property(tree, "/reserved-memory", "ranges")?;
    }
    Ok(())
}
