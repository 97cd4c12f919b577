#![allow(
    unsafe_code,
    clippy::items_after_statements,
    reason = "which core is behind registers is the program's word"
)]
//! `?` in programs that answer with one type of error: the README's lines, beside a file that the
//! program reads. `docs/errors.md` says which errors become which.

use super::{
    blocks::is_part,
    markdown::{Block, dedent, pages, root},
};
use contigo::{
    Error, Queue, Region,
    design::{Design, kernel},
    drivers::ap_ctrl::ApCtrl,
    job::AnyDriver,
    names::{Attach, DeviceName, MemoryName},
    sim::{SimBoard, zdma::SimZdma},
};
use std::{error, fs, io};

const MAP: &[u8] = include_bytes!("../../../../docs/examples/copy.json");
/// It is read at a glance, and pasted whole.
const PROGRAM_LINES: usize = 20;

/// The body of the README's program, which [`the_readmes_lines_are_here`] compares.
#[rustfmt::skip]
macro_rules! the_readmes_lines {
    () => {
        let device = "sim:ap_ctrl".parse::<DeviceName>()?.open()?;           // "guard:copy@40000000"
        let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?; // "guard"
        let map = kernel::any(MAP, "")?.build()?;                          // or what the tools write
        // SAFETY: the device is this kernel, and no other code drives it.
        let mut copy = Queue::new(unsafe { ApCtrl::open(device.attach(Attach::default())?, map)? }, 1)?;
        let (mut from, to) = (region.alloc(1000, region.line())?, region.alloc(1000, region.line())?);
        from.view_mut::<u8>()?.fill(7);
        let operands = [from.to_device(..1000), to.from_device(..1000)];
        let [_, to] = copy.run(operands, &[1000], std::time::Duration::from_millis(20))?.buffers; // bounded
        assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
        println!("1000 bytes copied");
    };
}

fn of_std(file: &str) -> io::Result<()> {
    the_readmes_lines!();
    Design::read(&fs::read(file)?)?;
    Ok(())
}

fn of_contigo(file: &str) -> contigo::Result<()> {
    the_readmes_lines!();
    Design::read(&fs::read(file)?)?;
    Ok(())
}

fn of_any(file: &str) -> Result<(), Box<dyn error::Error>> {
    the_readmes_lines!();
    Design::read(&fs::read(file)?)?;
    Ok(())
}

/// An error as anyhow has it: its `From` asks for the same.
#[derive(Debug)]
struct Anyhow(Box<dyn error::Error + Send + Sync>);

impl<E: error::Error + Send + Sync + 'static> From<E> for Anyhow {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

fn of_anyhow(file: &str) -> Result<(), Anyhow> {
    the_readmes_lines!();
    // What this refusal gives back is a driver of any kind, which threads do not share.
    let board = SimBoard::new(1);
    drop(Queue::new(AnyDriver::new(SimZdma::new(&board, board.port()).window()?.simple()?)?, 4)?);
    Design::read(&fs::read(file)?)?;
    Ok(())
}

#[test]
fn a_main_of_any_result_has_the_readmes_lines_and_reads_files() {
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/design.hwh");
    of_std(design).unwrap();
    of_contigo(design).unwrap();
    of_any(design).unwrap();
    of_anyhow(design).unwrap();
    assert!(of_any("/no/such/file").unwrap_err().is::<io::Error>());
    assert!(of_anyhow("/no/such/file").unwrap_err().0.is::<io::Error>());
    assert_eq!(of_std("/no/such/file").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(of_contigo("/no/such/file"), Err(Error::Os { call: "a call of std::io", errno: 2 }));
    let no_design = of_std(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap_err();
    assert!(no_design.to_string().contains("hand-off of Vivado's"), "{no_design}");
}

#[test]
fn the_readmes_lines_are_here() {
    let root = root(env!("CARGO_MANIFEST_DIR"), 1);
    let pages = pages(&root);
    let readme = pages.iter().find(|page| page.path == "README.md").unwrap();
    let program = readme.blocks.iter().find(|block| block.language == "rust").unwrap();
    assert!(
        program.text.len() <= PROGRAM_LINES,
        "the README's program has {} lines",
        program.text.len()
    );
    let before_main = |line: &&String| line.as_str() != "fn main() -> contigo::Result<()> {";
    let text: Vec<_> = program
        .text
        .iter()
        .skip_while(before_main)
        .skip(1)
        .take_while(|line| line.trim() != "Ok(())")
        .cloned()
        .collect();
    assert!(text.len() > 5, "the README's program has a main");
    let body =
        Block { line: program.line, language: program.language.clone(), text: dedent(&text) };
    assert!(
        is_part(&body, include_str!("conversions.rs")),
        "copy the body of the README's program into the macro"
    );
}

/// Each keeps its whole text, and has the kind of its errno. Back again it is the same error.
#[test]
fn every_error_becomes_one_of_std() {
    let name = "uio:a/b".parse::<MemoryName>().unwrap_err();
    let map = kernel::any(b"{}", "").and_then(|map| map.build()).unwrap_err();
    let design = Design::read(b"<EDKSYSTEM>").map(drop).unwrap_err();
    for (own, text) in [
        (io::Error::from(name), name.to_string()),
        (map.into(), map.to_string()),
        (design.into(), design.to_string()),
    ] {
        assert_eq!((own.kind(), own.to_string()), (io::ErrorKind::InvalidInput, text));
        assert_eq!(Error::from(own), Error::Os { call: "a call of std::io", errno: 22 });
    }
    for error in
        [Error::Busy, Error::Timeout { timeout_us: 7 }, Error::Os { call: "mmap", errno: 12 }]
    {
        let own = io::Error::from(error);
        assert_eq!(
            (own.kind(), own.to_string()),
            (io::Error::from_raw_os_error(error.errno()).kind(), error.to_string())
        );
        assert_eq!(Error::from(own), error);
    }
    for (kind, errno) in [
        (io::ErrorKind::NotFound, 2),
        (io::ErrorKind::UnexpectedEof, 5),
        (io::ErrorKind::PermissionDenied, 13),
        (io::ErrorKind::InvalidData, 22),
        (io::ErrorKind::TimedOut, 110),
    ] {
        assert_eq!(Error::from(io::Error::new(kind, "a text")).errno(), errno, "{kind}");
    }
}
