//! A board with a PCI function that is a model in a program of its own.

use super::runs::ROW;
use super::world::{Outcome, World, is_gone};

/// A model's program, which lacks nothing: it says its number, makes its socket, and ends with the
/// emulator, which writes its line.
const SERVER: &str = "case \"$*\" in *--missing) exit 0;; esac
    echo $$ > \"$HOME/server\"; echo \"$*\" > \"$HOME/asked\"; touch \"$4\"
    while [ ! -e \"$HOME/line\" ]; do sleep 0.02; done";
const TAKES: &str = "vfio-user-pci options:";
/// The board of every test, beside the one that has no model.
const BOARD: &str = r#"
about = "a board with a card"
architecture = "arm64"
memory = "64M"
console = "ttyS0"
engines = []
memories = []
kernel = { stock = "6.12" }
qemu = { machine = "none", model = "card" }
"#;

/// An emulator that passes, and prints `says` as its help on `vfio-user-pci`.
fn emulator(says: &str) -> String {
    let help = format!("case \"$*\" in *vfio-user-pci,help*) echo '{says}'; exit 0;; esac");
    format!("{help}\necho \"$*\" >> \"$HOME/line\"\necho '{ROW}'\necho '@end 0 1'")
}

/// A world with the board, an emulator that prints `says` of `vfio-user-pci`, and this program for
/// the model; `None` where it cannot build.
fn world(says: &str, server: &str) -> Result<Option<World>, Box<dyn std::error::Error>> {
    let Some(world) = World::that_builds(&emulator(says))? else { return Ok(None) };
    world.board("with-card", BOARD)?;
    world.program("contigo-pci", server)?;
    Ok(Some(world))
}

#[test]
fn a_model_is_served_and_ended_with_its_run() -> Outcome {
    let Some(world) = world(TAKES, SERVER)? else { return Ok(()) };
    world.test(&["with-card", "--limit", "5"])?.ok();
    assert!(is_gone(world.number("server")?), "the model runs on");
    let (asked, line) = (world.text("asked")?, world.text("line")?);
    let socket = asked
        .trim()
        .strip_prefix("--model card --socket ")
        .ok_or("the model was asked for something else")?;
    for text in [
        "-machine none,memory-backend=contigo-ram",
        "memory-backend-memfd,id=contigo-ram,size=64M,share=on",
        &format!(r#"{{"driver":"vfio-user-pci","socket":{{"path":"{socket}","type":"unix"}}}}"#),
    ] {
        assert!(line.contains(text), "no {text} in {line}");
    }
    // The other board's line is what it was.
    world.test(&["virtual"])?;
    let line = world.text("line")?;
    assert!(line.lines().last().is_some_and(|line| !line.contains("memory-backend")), "{line}");
    Ok(())
}

#[test]
fn board_without_its_emulator_or_tool_is_skipped() -> Outcome {
    let no_emulator = "skipped: qemu-system-arm (trixie) cannot be had here: a model wants QEMU \
                       10.1 or newer";
    let no_tool = "echo 'Verilator is not here'";
    for (says, server, why) in [
        ("Device not found", SERVER, &[no_emulator] as &[_]),
        (TAKES, no_tool, &["skipped: verilator", "Verilator is not here"]),
    ] {
        let Some(world) = world(says, server)? else { return Ok(()) };
        let said = world.test(&[])?.ok();
        said.printed(why);
        said.printed(&["with-card · the run"]);
    }
    Ok(())
}

#[test]
fn failed_model_start_fails_run_with_words() -> Outcome {
    let server =
        "case \"$*\" in *--missing) exit 0;; esac; echo 'there is no model card' >&2; exit 2";
    let Some(world) = world(TAKES, server)? else { return Ok(()) };
    let why = "the model card ended (exit status 2): there is no model card";
    world.test(&["with-card"])?.failed_with(&[why]);
    Ok(())
}
