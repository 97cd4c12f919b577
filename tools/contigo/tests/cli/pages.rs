//! The page "power-on to first job": each command of a board has a mark.
//!
//! Those with `[test]` do their work here, on a folder that stands for that board.

use super::Outcome;
use super::overlay::{ZYNQ, ZYNQMP};
use contigo_bringup::bitstream::Image;
use contigo_bringup::fpga::{Fpga, Options, State};
use contigo_bringup::machine::fake::Board;
use contigo_testkit::emulated;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

#[path = "../../../bringup/tests/common/mod.rs"]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod files;
#[path = "../../../bringup/tests/common/machines.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is its purpose"
)]
pub(super) mod machines;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file's name, and its bytes.
type Bitstream = (&'static str, fn() -> Vec<u8>);

/// A board: its section of `docs/boards.md`, its folder, the manager that its kernel has, and a
/// file for its fabric.
struct Page {
    board: &'static str,
    section: &'static str,
    machine: fn(&Path) -> machines::Root,
    manager: &'static str,
    bitstream: Option<Bitstream>,
    design: &'static str,
    /// The registers that `board prepare --yes` sets.
    sets: &'static [(u64, u32)],
}

const PAGES: [Page; 4] = [
    Page {
        board: "pynq-z2",
        section: "PYNQ-Z2",
        machine: machines::pynq,
        manager: "Xilinx Zynq FPGA Manager",
        bitstream: Some(("top.bit", files::zynq)),
        design: ZYNQ,
        sets: &[(0xf800_0900, 0xf)],
    },
    Page {
        board: "de10-nano",
        section: "DE10-Nano",
        machine: machines::de10,
        manager: "Altera SOCFPGA FPGA Manager",
        bitstream: Some(("top.rbf", || files::rbf(4000))),
        design: ZYNQ,
        sets: &[],
    },
    Page {
        board: "kv260",
        section: "KV260",
        machine: machines::kv260,
        manager: "Xilinx ZynqMP FPGA Manager",
        bitstream: Some(("top.bit", || {
            files::bit("top", "xck26-sfvc784-2LV-c", &files::bin(&files::words(0x04a4_9093, 9)))
        })),
        design: ZYNQMP,
        sets: &[
            (0xfd61_5000, 0x600),
            (0xfd37_0000, 1),
            (0xfd37_0014, 1),
            (0xff9b_0000, 2),
            (0xff9b_0014, 2),
        ],
    },
    Page {
        board: "jetson",
        section: "Jetson",
        machine: machines::orin,
        manager: "",
        bitstream: None,
        design: ZYNQMP,
        sets: &[],
    },
];

/// The designs' clocks in Hz.
const CLOCKS: [(&str, u32); 4] = [
    ("fclk0", 99_999_999),
    ("fclk1", 49_999_999),
    ("pl0_ref", 99_999_001),
    ("pl1_ref", 299_997_009),
];

#[test]
fn board_page_commands_do_what_it_says() -> Outcome {
    let mut wrong = Vec::new();
    for page in &PAGES {
        let folder = tempfile::tempdir()?;
        (page.machine)(&folder.path().join("copy"));
        // All of the SoC's registers, each 0, in a file with holes.
        fs::create_dir_all(folder.path().join("copy/dev"))?;
        let registers = fs::File::create(folder.path().join("copy/dev/mem"))?;
        registers.set_len(1 << 32)?;
        // As Linux 6.12 lists them.
        let own =
            CLOCKS.iter().filter(|(name, _)| name.starts_with("pl") == (page.design == ZYNQMP));
        let lines: String =
            own.map(|(name, hz)| format!(" {name} 1 1 0 {hz} 0 0 50000 Y\n")).collect();
        fs::create_dir_all(folder.path().join("copy/sys/kernel/debug/clk"))?;
        fs::write(
            folder.path().join("copy/sys/kernel/debug/clk/clk_summary"),
            format!("protect hardware\n---\n{lines}"),
        )?;
        if let Some((name, bytes)) = page.bitstream {
            fs::write(folder.path().join(name), bytes())?;
        }
        fs::copy(page.design, folder.path().join("top.hwh"))?;
        let text = fs::read_to_string(format!("{ROOT}/docs/boards.md"))?;
        let (mut inside, mut shell, mut tried) = (false, false, 0);
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                inside = heading == page.section;
            } else if line.starts_with("```") {
                shell = inside && line == "```sh";
            } else if shell {
                let (command, mark) = line
                    .split_once(" # [")
                    .ok_or_else(|| format!("{}: no mark: {line}", page.board))?;
                match mark.split_once(']').map(|(mark, _)| mark) {
                    Some("test") => {
                        wrong.extend(
                            run(page, folder.path(), command.trim())
                                .err()
                                .map(|error| format!("{}: {command}: {error}", page.board)),
                        );
                        tried += 1;
                    }
                    Some("lab" | "board") => {}
                    _ => return Err(format!("{}: another mark: {line}", page.board).into()),
                }
            }
        }
        assert!(tried >= 3, "{}: {tried} commands", page.board);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn run(page: &Page, folder: &Path, command: &str) -> Outcome {
    let words: Vec<_> = command
        .split_ascii_whitespace()
        .skip_while(|word| ["ssh", "board", "sudo"].contains(word))
        .collect();
    let output = match words.as_slice() {
        // A load writes to the kernel: here to one that answers as Linux does.
        [_, "fpga", "load", file, "--board", board, rest @ ..] => {
            let root = tempfile::tempdir()?;
            let fake = Board::new(root.path(), page.manager);
            let fake =
                if page.board == "de10-nano" { fake.with_overlays() } else { fake.with_sysfs() };
            let options = Options { dry_run: rest == ["--dry-run"], ..Options::default() };
            let machine = fake.machine();
            let fpga = Fpga::find(&machine, None, Some(board))?;
            fpga.load(&Image::new(fs::read(folder.join(file))?)?, &options)?;
            assert_eq!(
                (fake.loaded().is_none(), fpga.state() != State::Operating),
                (options.dry_run, options.dry_run)
            );
            return Ok(());
        }
        [_, "fpga", "status"] => {
            let root = tempfile::tempdir()?;
            let machine = Board::new(root.path(), page.manager).with_overlays().machine();
            let bridges = Fpga::find(&machine, None, None)?.bridges();
            assert!(
                bridges
                    .iter()
                    .any(|bridge| bridge.name == "lwhps2fpga" && bridge.open == Some(false)),
                "{bridges:?}"
            );
            return Ok(());
        }
        ["contigo" | "./contigo", rest @ ..] => {
            // A copy is not written. The registers become as the tool's own tests show.
            let rest: Vec<_> = rest.iter().copied().filter(|word| *word != "--yes").collect();
            let sets = rest.starts_with(&["board", "prepare"]);
            let looks = [Some(&"doctor"), Some(&"board"), Some(&"power"), Some(&"clocks")]
                .contains(&rest.first());
            let machine: &[_] = if looks { &["--machine", "copy"] } else { &[] };
            let output = emulated::command(env!("CARGO_BIN_EXE_contigo"))
                .args(rest)
                .args(machine)
                .current_dir(folder)
                .output()?;
            for (addr, value) in page.sets.iter().filter(|_| sets) {
                let memory =
                    fs::OpenOptions::new().write(true).open(folder.join("copy/dev/mem"))?;
                memory.write_all_at(&value.to_ne_bytes(), *addr)?;
            }
            output
        }
        ["dtc", rest @ ..] => {
            let rest = rest.iter().map(|word| {
                if word.contains('/') { format!("{ROOT}/{word}") } else { (*word).to_owned() }
            });
            match Command::new("dtc").args(rest).current_dir(folder).output() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    contigo_testkit::skipped(
                        &format!("pages::{}: {command}", page.board),
                        "dtc is not here",
                    );
                    return Ok(());
                }
                output => output?,
            }
        }
        _ => return Err("no test knows it".into()),
    };
    if output.status.success() { Ok(()) } else { Err(format!("{output:?}").into()) }
}
