//! The pages "power-on to first job": each command has a mark.
//!
//! Those with `[test]` do their work here, on a folder that stands for that board.

use super::{
    Outcome,
    overlay::{ZYNQ, ZYNQMP},
};
use contigo_bringup::{
    bitstream::Image,
    fpga::{Fpga, Options},
    machine::fake::Board,
};
use contigo_testkit::emulated;
use std::{error::Error, fs, os::unix::fs::FileExt, path::Path, process::Command};

#[path = "../../../bringup/tests/common/mod.rs"]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod files;
#[path = "../../../bringup/tests/common/machines.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod machines;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A file's name, and its bytes.
type Bitstream = (&'static str, fn() -> Vec<u8>);

/// A board: its page, its folder, the manager that its kernel has, and a file for its fabric.
struct Page {
    board: &'static str,
    machine: fn(&Path) -> machines::Root,
    manager: &'static str,
    bitstream: Option<Bitstream>,
    design: &'static str,
}

const PAGES: [Page; 4] = [
    Page {
        board: "pynq-z2",
        machine: machines::pynq,
        manager: "Xilinx Zynq FPGA Manager",
        bitstream: Some(("top.bit", files::zynq)),
        design: ZYNQ,
    },
    Page {
        board: "de10-nano",
        machine: machines::de10,
        manager: "Altera SOCFPGA FPGA Manager",
        bitstream: Some(("top.rbf", || files::rbf(4000))),
        design: ZYNQ,
    },
    Page {
        board: "kv260",
        machine: machines::kv260,
        manager: "Xilinx ZynqMP FPGA Manager",
        bitstream: Some(("top.bit", || files::bit("top", "xck26-sfvc784-2LV-c", &files::bin(&files::words(0x04a4_9093, 9))))),
        design: ZYNQMP,
    },
    Page { board: "jetson", machine: machines::orin, manager: "", bitstream: None, design: ZYNQMP },
];

/// The designs' clocks in Hz.
const CLOCKS: [(&str, u32); 4] = [("fclk0", 99_999_999), ("fclk1", 49_999_999), ("pl0_ref", 99_999_001), ("pl1_ref", 299_997_009)];

#[test]
fn each_command_of_a_boards_page_has_a_mark_and_does_what_it_says() -> Outcome {
    for page in &PAGES {
        let folder = tempfile::tempdir()?;
        (page.machine)(&folder.path().join("copy"));
        // All of the SoC's registers, each 0, in a file with holes.
        fs::create_dir_all(folder.path().join("copy/dev"))?;
        let registers = fs::File::create(folder.path().join("copy/dev/mem"))?;
        registers.set_len(1 << 32)?;
        // As U-Boot's `bridge enable` leaves Cyclone V's ports to the SDRAM.
        registers.write_all_at(&0x3fff_u32.to_ne_bytes(), 0xffc2_5080)?;
        // As Linux 6.12 lists them.
        let lines: String = CLOCKS.iter().map(|(name, hz)| format!(" {name} 1 1 0 {hz} 0 0 50000 Y\n")).collect();
        fs::create_dir_all(folder.path().join("copy/sys/kernel/debug/clk"))?;
        fs::write(folder.path().join("copy/sys/kernel/debug/clk/clk_summary"), format!("protect hardware\n---\n{lines}"))?;
        if let Some((name, bytes)) = page.bitstream {
            fs::write(folder.path().join(name), bytes())?;
        }
        fs::copy(page.design, folder.path().join("top.hwh"))?;
        let text = fs::read_to_string(format!("{ROOT}/docs/{}.md", page.board))?;
        let (mut shell, mut tried) = (false, 0);
        for line in text.lines() {
            if line.starts_with("```") {
                shell = line == "```sh";
            } else if shell {
                let (command, mark) = line.split_once(" # [").ok_or_else(|| format!("{}: no mark: {line}", page.board))?;
                match mark.split_once(']').map(|(mark, _)| mark) {
                    Some("test") => {
                        run(page, folder.path(), command.trim()).map_err(|error| format!("{}: {command}: {error}", page.board))?;
                        tried += 1;
                    }
                    Some("lab" | "board") => {}
                    _ => return Err(format!("{}: another mark: {line}", page.board).into()),
                }
            }
        }
        assert!(tried >= 3, "{}: {tried} commands", page.board);
    }
    Ok(())
}

fn run(page: &Page, folder: &Path, command: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = command.split_ascii_whitespace().skip_while(|word| ["ssh", "board", "sudo"].contains(word)).collect();
    let output = match words.as_slice() {
        // A load writes to the kernel: here to one that answers as Linux does.
        [_, "fpga", "load", file, "--board", board, rest @ ..] => {
            let root = tempfile::tempdir()?;
            let fake = Board::new(root.path(), page.manager)?;
            let fake = if page.board == "de10-nano" { fake.with_overlays()? } else { fake.with_sysfs()? };
            let options = Options { dry_run: rest == ["--dry-run"], ..Options::default() };
            let machine = fake.machine();
            Fpga::find(&machine, None, Some(board))?.load(&Image::new(fs::read(folder.join(file))?)?, &options)?;
            assert_eq!(fake.loaded().is_none(), options.dry_run);
            return Ok(());
        }
        ["contigo" | "./contigo", rest @ ..] => {
            let looks = [Some(&"doctor"), Some(&"board"), Some(&"power"), Some(&"clocks")].contains(&rest.first());
            let machine: &[_] = if looks { &["--machine", "copy"] } else { &[] };
            emulated::command(env!("CARGO_BIN_EXE_contigo")).args(rest).args(machine).current_dir(folder).output()?
        }
        ["dtc", rest @ ..] => {
            let rest = rest.iter().map(|word| if word.contains('/') { format!("{ROOT}/{word}") } else { (*word).to_owned() });
            match Command::new("dtc").args(rest).current_dir(folder).output() {
                // The tests of overlays say by name that they were skipped without it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                output => output?,
            }
        }
        _ => return Err("no test knows it".into()),
    };
    if output.status.success() { Ok(()) } else { Err(format!("{output:?}").into()) }
}
