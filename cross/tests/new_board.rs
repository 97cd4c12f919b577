//! The page `boards/README.md` is enough to add a board: with its blocks copied, and nothing else
//! done, everything that checks boards stays green.
//!
//! The steps run in a copy of this tree, without a network. Their builds are kept in `target/tmp`,
//! so that only the first run takes a minute or two.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo_testkit::{
    copied::{self, Copied, said},
    emulated,
};
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

const PAGE: &str = "boards/README.md";
/// The board that the page adds.
const NAME: &str = "acme-z1";
/// Set for the steps, which run this very test once more.
const INSIDE: &str = "CONTIGO_NEW_BOARD";
/// The files that may change beside the board's folder.
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

/// Runs a shell in the copy.
fn shell(copy: &Copied, text: &str) -> (bool, String) {
    let mut shell = copy.command("sh");
    shell.args(["-e", "-u", "-c", text]).env(INSIDE, "1").env_remove("CONTIGO_WRITE_BOARDS");
    said(&mut shell).unwrap()
}

#[test]
fn a_board_added_by_the_page_alone_leaves_everything_green() {
    let skipped = |why: &str| emulated::skipped("new_board::a_board_added_by_the_page_alone", why);
    if env::var_os(INSIDE).is_some() {
        return;
    }
    if let Some(why) = copied::why_not() {
        return skipped(why);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-board");
    let Some(copy) = Copied::new(&root, &scratch, &TABLES).unwrap() else { return skipped("this is no git checkout") };

    let steps = blocks(&fs::read_to_string(root.join(PAGE)).unwrap());
    assert!(steps.iter().filter(|block| matches!(block, Block::Steps(_))).count() >= 2, "{PAGE} has no steps: {steps:?}");
    for block in steps {
        match block {
            Block::File(path, text) => copy.write(&path, &text, None).unwrap(),
            Block::Steps(text) => {
                let (succeeded, said) = shell(&copy, &text);
                assert!(succeeded, "{PAGE}:\n{text}\n{said}");
            }
        }
    }

    // Nothing else was touched.
    let changed: BTreeSet<_> = copy.changed().unwrap().into_iter().filter(|file| !file.starts_with(format!("boards/{NAME}"))).collect();
    assert_eq!(changed, TABLES.map(PathBuf::from).into());

    // And everybody knows the board.
    for command in ["contigo-lab list --json", "contigo-cross build --board no-such-board"] {
        let (_, said) = shell(&copy, &format!("{}/debug/{command}", copy.target().display()));
        assert!(said.contains(NAME), "{command} does not name {NAME}: {said}");
    }
}
