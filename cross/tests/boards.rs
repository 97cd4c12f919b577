//! The tables of the boards are what their folders say: `boards/src/generated.rs` for programs, and
//! `cross/src/bin/cross/boards/table.rs` for `cargo cross`.
//!
//! `CONTIGO_WRITE_BOARDS=1 cargo test -p contigo-cross --test boards` writes them anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo_cross::boards::Board;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tempfile::TempDir;

const HEAD: &str =
    "Made from the folders of boards/, and never written by hand: see boards/README.md.";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file of `boards/soc/`, and whether it has a `SOC`.
fn socs(boards: &Path) -> Vec<(String, bool)> {
    let files = fs::read_dir(boards.join("soc")).unwrap().map(|entry| entry.unwrap().path());
    let soc = |file: PathBuf| {
        let is_whole = fs::read_to_string(&file).unwrap().contains("pub const SOC: Soc");
        (file.file_stem().unwrap().to_str().unwrap().to_owned(), is_whole)
    };
    let mut socs: Vec<_> = files.map(soc).collect();
    socs.sort();
    socs
}

/// A number as Rust's sources have it: 33_333_333.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join("_")
}

fn programs(folder: &Path, boards: &[Board]) -> String {
    let mut text = format!(
        "//! {HEAD}\n\n#![allow(clippy::doc_markdown, reason = \"names of products\")]\n\nuse crate::{{Board, Soc}};\n\n"
    );
    let socs = socs(folder);
    for (soc, _) in &socs {
        writeln!(text, "#[path = \"../soc/{soc}.rs\"]\npub mod {soc};").unwrap();
    }
    let known: Vec<_> =
        boards.iter().filter_map(|board| Some((board, board.soc.as_ref()?))).collect();
    for (board, soc) in &known {
        let ports: Vec<_> = board.ports.iter().map(|port| format!("{soc}::{port}")).collect();
        writeln!(text, "\n/// {}.\n///\n/// - Processor: {}", board.about, board.chip).unwrap();
        let memory = board.memory.clone().unwrap_or_default();
        for (what, said) in [("Memory", memory), ("Images", board.images.join(", "))] {
            if !said.is_empty() {
                writeln!(text, "/// - {what}: {said}").unwrap();
            }
        }
        writeln!(
            text,
            "#[rustfmt::skip]\npub const {}: Board = Board {{\n    name: {:?},\n    title: {:?},\n    soc: {:?},\n    ports: &[{}],\n    manual: {:?},\n    compatible: &{:?},\n    facts: {:?},\n    crystal_hz: {},\n}};",
            constant(&board.name),
            board.name,
            board.about,
            board.chip,
            ports.join(", "),
            board.manual,
            board.compatible,
            board.facts,
            board.crystal_hz.map_or_else(|| "None".to_owned(), |hz| format!("Some({})", grouped(hz)))
        )
        .unwrap();
    }
    let all: String =
        known.iter().map(|(board, _)| format!("    {},\n", constant(&board.name))).collect();
    let socs: String = socs
        .iter()
        .filter(|(_, whole)| *whole)
        .map(|(soc, _)| format!("    {soc}::SOC,\n"))
        .collect();
    text + &format!(
        "\n/// Every board here, by name.\n#[rustfmt::skip]\npub const ALL: &[Board] = &[\n{all}];\n\n/// Every system on chip here.\n#[rustfmt::skip]\npub const SOCS: &[Soc] = &[\n{socs}];\n"
    )
}

fn processors(boards: &[Board]) -> String {
    let rows: String = Board::targets(boards)
        .unwrap()
        .iter()
        .map(|(name, target)| format!("    ({name:?}, &{}),\n", target.constant()))
        .collect();
    format!(
        "//! {HEAD}\n\nuse contigo_cross::targets::{{AARCH64, ARMV7, Target}};\n\n\
         /// Every board, and every family of boards, by name.\n#[rustfmt::skip]\npub(super) const BOARDS: &[(&str, &Target)] = &[\n{rows}];\n"
    )
}

/// `pynq-z2` is `PYNQ_Z2`.
fn constant(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

#[test]
fn the_tables_are_what_the_folders_say() {
    let folder = root().join("boards");
    let boards = Board::all(&folder).unwrap_or_else(|error| panic!("{error:#}"));
    for (file, new) in [
        ("boards/src/generated.rs", programs(&folder, &boards)),
        ("cross/src/bin/cross/boards/table.rs", processors(&boards)),
    ] {
        let path = root().join(file);
        if env::var_os("CONTIGO_WRITE_BOARDS").is_some() {
            fs::write(&path, &new).unwrap();
        }
        let old = fs::read_to_string(&path).unwrap();
        assert!(
            old == new,
            "{file} is not what the folders of boards/ say: CONTIGO_WRITE_BOARDS=1 writes it anew"
        );
    }
}

/// Each mistake in a folder is a sentence that names it.
#[test]
fn a_wrong_folder_is_refused_by_name() {
    const RIGHT: &str = "about = \"x\"\nsoc = \"one\"\nchip = \"1\"\nmanual = \"m\"\nports = [\"A\"]\ntarget = \"aarch64-unknown-linux-gnu\"\n";
    let world = TempDir::new().unwrap();
    let write = |file: &str, text: &str| {
        let path = world.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let refused = |text: &str| {
        write("board/board.toml", text);
        let boards = Board::all(world.path());
        let targets = boards.and_then(|boards| Board::targets(&boards).map(drop));
        targets.map_or_else(|error| format!("{error:#}"), |()| String::new())
    };
    write("soc/one.rs", "/// A port.\npub const A: Port = plain(\"a\");\n");
    assert!(refused(RIGHT).contains("no README.md"));
    write("board/README.md", "");
    assert_eq!(refused(RIGHT), "");
    for (right, wrong, said) in [
        ("about", "abuot", "unknown field `abuot`"),
        ("\"one\"", "\"two\"", "`soc` is a file of boards/soc/"),
        ("\"A\"", "\"A\", \"B\"", "has no port B; it has A"),
        ("aarch64", "aarch65", "no target"),
        ("soc = \"one\"\n", "", "want a `soc`"),
        ("manual = \"m\"\n", "", "wants `chip` and `manual`"),
    ] {
        let got = refused(&RIGHT.replace(right, wrong));
        assert!(got.contains(said) && got.starts_with("board board: "), "{wrong}: {got}");
    }
    let overlay =
        |trees: &str| refused(&format!("{RIGHT}[[overlay]]\ntrees = {trees}\nhas = []\n"));
    assert!(overlay("[]").contains("there is no overlay.dtso"));
    write("board/overlay.dtso", "");
    assert!(overlay("[\"t\"]").contains("wants `trees`"));
    write("other/README.md", "");
    let armv7 = "armv7-unknown-linux-gnueabihf\"\nfamilies = [\"board\"]";
    write("other/board.toml", &RIGHT.replace("aarch64-unknown-linux-gnu\"", armv7));
    assert!(refused(RIGHT).contains("board has another processor"), "{}", refused(RIGHT));
}
