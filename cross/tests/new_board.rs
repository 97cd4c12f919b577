//! The page `boards/README.md` is enough to add a board: with its blocks copied, and nothing else
//! done, everything that checks boards stays green.
//!
//! The steps run in a copy of this tree, without a network. Their builds are kept in `target/tmp`,
//! so that only the first run takes a minute or two.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo_testkit::emulated;
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const PAGE: &str = "boards/README.md";
/// The board that the page adds.
const NAME: &str = "acme-z1";
/// Set for the steps, which run this very test once more.
const INSIDE: &str = "CONTIGO_NEW_BOARD";
/// What may change beside the board's folder.
const TABLES: [&str; 2] = ["boards/src/generated.rs", "cross/src/bin/cross/boards/table.rs"];

/// A block of the page: a file to write, or lines for a shell.
#[derive(Debug)]
enum Block {
    File(String, String),
    Steps(String),
}

/// The blocks of a page. One that opens with a language and a path is that file; one that opens
/// with `sh` is steps.
fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None::<(&str, String)>);
    for line in page.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => open = Some((info, String::new())),
            (None, None) => {}
            // The page's lists indent their blocks by three.
            (Some((_, text)), None) => *text += &format!("{}\n", line.strip_prefix("   ").unwrap_or(line)),
            (Some(_), Some(_)) => match open.take().unwrap() {
                ("sh", text) => blocks.push(Block::Steps(text)),
                (info, text) => blocks.extend(info.split_once(' ').map(|(_, path)| Block::File(path.to_owned(), text))),
            },
        }
    }
    blocks
}

/// The files of this tree: those that git knows or would add. `None` where git does not know the
/// tree.
fn files(root: &Path) -> Option<BTreeSet<PathBuf>> {
    let listed =
        Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root).output().ok()?;
    let names = String::from_utf8(listed.stdout).ok().filter(|_| listed.status.success())?;
    Some(names.split('\0').filter(|name| root.join(name).is_file()).map(PathBuf::from).collect())
}

/// The file with its time, by which cargo knows that it need not be compiled again; a table
/// without, because an earlier run may have compiled another.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
    if TABLES.iter().any(|table| to.ends_with(table)) {
        return;
    }
    let time = fs::metadata(from).unwrap().modified().unwrap();
    fs::File::options().append(true).open(to).unwrap().set_modified(time).unwrap();
}

/// Every file under a folder.
fn walk(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, found) } else { assert!(found.insert(path)) }
    }
}

/// Runs a shell in the copy, as a person would.
fn shell(copy: &Path, target: &Path, text: &str) -> Output {
    let cargo = PathBuf::from(env!("CARGO"));
    let path = format!("{}:{}", cargo.parent().unwrap().display(), env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-u", "-c", text]).current_dir(copy).env("PATH", path).env("CARGO_TARGET_DIR", target);
    shell.env("CARGO_NET_OFFLINE", "true").env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    shell.env(INSIDE, "1").env_remove("CONTIGO_WRITE_BOARDS").output().unwrap()
}

#[test]
fn a_board_added_by_the_page_alone_leaves_everything_green() {
    let skipped = |why: &str| emulated::skipped("new_board::a_board_added_by_the_page_alone", why);
    if env::var_os(INSIDE).is_some() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Some(files) = files(&root) else { return skipped("this is no git checkout, and a copy would have everything that was built") };
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-board");
    let (tree, target) = (scratch.join("tree"), scratch.join("target"));
    if tree.exists() {
        fs::remove_dir_all(&tree).unwrap();
    }
    files.iter().for_each(|file| copy(&root.join(file), &tree.join(file)));

    let steps = blocks(&fs::read_to_string(root.join(PAGE)).unwrap());
    assert!(steps.iter().filter(|block| matches!(block, Block::Steps(_))).count() >= 2, "{PAGE} has no steps: {steps:?}");
    for block in steps {
        match block {
            Block::File(path, text) => {
                let path = tree.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Block::Steps(text) => {
                let Output { status, stdout, stderr } = shell(&tree, &target, &text);
                let said = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n");
                assert!(status.success(), "{PAGE}:\n{text}{status}:\n{said}");
            }
        }
    }

    // Nothing else was touched.
    let mut after = BTreeSet::new();
    walk(&tree, &mut after);
    let same = |file: &PathBuf| fs::read(root.join(file)).is_ok_and(|bytes| bytes == fs::read(tree.join(file)).unwrap());
    let after = after.iter().map(|path| path.strip_prefix(&tree).unwrap().to_owned());
    let changed: BTreeSet<_> = after.filter(|file| !same(file) && !file.starts_with(format!("boards/{NAME}"))).collect();
    assert_eq!(changed, TABLES.map(PathBuf::from).into());

    // And everybody knows the board.
    for command in ["contigo-lab list --json", "contigo-cross build --board no-such-board"] {
        let Output { stdout, stderr, .. } = shell(&tree, &target, &format!("{}/debug/{command}", target.display()));
        let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        assert!(said.contains(NAME), "{command} does not name {NAME}: {said}");
    }
}
