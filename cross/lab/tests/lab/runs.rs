//! Runs of a board: what passes, and everything that must not.

use super::world::{Elf, Outcome, RELEASE, World, is_gone, wait, write};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use object::Architecture;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

pub(crate) const ROW: &str = concat!(
    r#"@row {"kind":"jobs","name":"huge/edu/polled","memory":"huge","engine":"edu","mode":"polled","#,
    r#""user":"0","jobs":12000,"bytes":99,"mismatches":0,"canary_hits":0,"allocations":0,"#,
    r#""syscalls":0,"status":"passed","reason":""}"#
);
const SKIPPED: &str = r#"@row {"kind":"check","name":"u-dma-buf","user":"0","status":"skipped","reason":"no module u-dma-buf"}"#;

/// The emulator keeps the initramfs, which is not compressed.
const KEEP: &str = r#"while [ "$1" != -initrd ]; do shift; done; cp "$2" "$HOME/initramfs"; "#;

/// An emulator that prints these lines and ends with this status.
fn prints(lines: &[&str], status: u8) -> String {
    let lines: String = lines.iter().map(|line| format!("echo '{line}'\n")).collect();
    format!("{lines}exit {status}")
}

/// A world whose emulator prints these lines and ends with this status; `None` where it cannot
/// build.
fn world(lines: &[&str], status: u8) -> Result<Option<World>, Box<dyn std::error::Error>> {
    World::that_builds(&prints(lines, status))
}

#[test]
fn passing_run_prints_table_and_last_line() -> Outcome {
    let Some(world) = world(&["booting", ROW, SKIPPED, "@end 0 2"], 0)? else { return Ok(()) };
    let said = world.test(&[])?.ok();
    said.printed(&["virtual", "12,000", "skipped: no module u-dma-buf\n    virtual · u-dma-buf\n"]);
    said.printed(&["test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out;"]);
    let has_sizes = said.err.contains("contigo-lab-exit") && said.err.contains("KiB");
    assert!(has_sizes, "{}", said.err);
    let summary: Value = serde_json::from_str(&world.test(&["--json"])?.out)?;
    assert_eq!((&summary["passed"], &summary["skipped"]), (&1.into(), &1.into()));
    assert_eq!(summary["rows"][0]["board"], "virtual");
    Ok(())
}

#[test]
fn board_command_line_is_printed() -> Outcome {
    let Some(world) = World::that_builds("exit 1")? else { return Ok(()) };
    let [out, tests] =
        ["out/virtual", "tests"].map(|name| world.path(name).to_string_lossy().into_owned());
    let args = ["command", "virtual", "--out", &out, "--program", &tests, "--json"];
    let command: Value = serde_json::from_str(&world.run(&args)?.ok().out)?;
    assert_eq!(command["kernel"], RELEASE);
    let argv = command["argv"].as_array().ok_or("no argv")?;
    let program = argv[0].as_str().unwrap_or_default();
    assert!(program.ends_with("qemu-system-aarch64") && !argv.contains(&"-serial".into()));
    let initramfs = &command["initramfs"];
    assert!(argv.contains(initramfs), "{argv:?}");
    assert!(fs::metadata(initramfs.as_str().unwrap_or_default())?.len() > 0);
    world.run(&["command", "nowhere", "--out", &out])?.failed_with(&["there is no board nowhere"]);
    Ok(())
}

#[test]
fn a_soak_is_one_row_and_has_a_limit_of_its_own() -> Outcome {
    let row = r#"@row {"kind":"check","name":"soak","status":"passed","reason":"ended by time after 60 s"}"#;
    let Some(world) = world(&["   60 s  5 jobs", row, "@end 0 1"], 0)? else { return Ok(()) };
    world.test(&["--soak", "1"])?.ok().printed(&["test result: ok. 1 passed"]);
    assert_eq!(world.test(&["--soak", "1", "--filter", "x"])?.status, Some(2));
    Ok(())
}

#[test]
fn a_row_that_failed_fails_the_run() -> Outcome {
    let failed = r#"@row {"kind":"check","name":"a fault is decoded","user":"0","status":"failed","reason":"it was not"}"#;
    let Some(world) = world(&[ROW, failed, "@end 1 2"], 1)? else { return Ok(()) };
    let said = world.test(&[])?;
    assert_eq!(said.status, Some(1), "{said:?}");
    said.printed(&["FAILED: virtual · a fault is decoded\n    it was not\n"]);
    said.printed(&["FAILED. 1 passed; 1 failed"]);
    Ok(())
}

#[test]
fn hung_guest_is_ended_and_its_end_shown() -> Outcome {
    let lines: Vec<String> =
        (1..=30).map(|number| format!("line {number} of the console")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let hang = prints(&lines, 0).replace("exit 0", "sleep 600 & echo $! > \"$HOME/inside\"; wait");
    let Some(world) = World::that_builds(&hang)? else { return Ok(()) };
    let begun = Instant::now();
    let said = world.test(&["--limit", "2"])?;
    assert!(begun.elapsed() < Duration::from_secs(15), "ended only after {:?}", begun.elapsed());
    said.failed_with(&["did not end within 2 s", "console-virtual.log"]);
    said.failed_with(&["line 30 of the console", "line 11 of the console"]);
    assert!(!said.err.contains("line 10 of"), "twenty lines are enough: {}", said.err);
    said.printed(&["test result: FAILED. 0 passed; 1 failed"]);
    assert!(is_gone(world.number("inside")?), "a program that the emulator started runs on");
    assert_eq!(world.cached("unfinished"), [""; 0]);
    Ok(())
}

/// The other ends of a run are cases of a table in `emulator/run.rs`.
#[test]
fn failed_emulator_start_is_told_in_words() -> Outcome {
    let Some(world) = World::that_builds("echo 'could not open disk' >&2; exit 1")? else {
        return Ok(());
    };
    world.test(&[])?.failed_with(&["QEMU ended (exit status 1)", "could not open disk"]);
    Ok(())
}

#[test]
fn emulator_ends_when_the_tool_is_killed() -> Outcome {
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let Some(world) = World::that_builds("echo $$ > \"$HOME/emulator\"; exec sleep 600")?
        else {
            return Ok(());
        };
        let program = world.path("tests").display().to_string();
        let lab = world.lab(&["test", "--program", &program]).spawn()?;
        let emulator = world.number("emulator")?;
        kill(Pid::from_raw(i32::try_from(lab.id())?), signal)?;
        let said = wait(lab)?;
        assert_eq!(said.status, (signal == Signal::SIGINT).then_some(130), "{said:?}");
        assert!(is_gone(emulator), "{signal}: the emulator runs on");
    }
    Ok(())
}

#[test]
fn program_for_other_cpu_is_refused_early() -> Outcome {
    let world = World::with_emulator("touch \"$HOME/was-run\"")?;
    let foreign = "tests is a program for x86-64, board virtual runs arm64";
    for (program, why) in [
        (Elf::static_program(Architecture::X86_64), [foreign, "(aarch64-unknown-linux-gnu)"]),
        (Elf::program(Architecture::Aarch64, true), ["wants shared libraries", "+crt-static"]),
        (b"#!/bin/sh\n".to_vec(), ["tests", "is no ELF program"]),
    ] {
        world.elf("tests", program)?;
        world.test(&[])?.failed_with(&why);
    }
    fs::remove_file(world.path("tests"))?;
    world.test(&[])?.failed_with(&["cannot read", "tests"]);
    assert!(!world.path("was-run").exists());
    Ok(())
}

#[test]
fn module_for_other_kernel_is_refused_early() -> Outcome {
    let Some(world) = World::that_builds("touch \"$HOME/was-run\"")? else { return Ok(()) };
    let (arm64, magic) = (Architecture::Aarch64, format!("{RELEASE} SMP"));
    let old = "mine.ko is for kernel 6.1.0-9-arm64, board virtual runs 6.12.1+deb12-arm64";
    for (module, why) in [
        (Elf::module(arm64, "6.1.0-9-arm64 SMP mod_unload aarch64", "")?, old),
        (
            Elf::module(Architecture::X86_64, &magic, "")?,
            "mine.ko is for x86-64, board virtual runs arm64",
        ),
        (Elf::module(arm64, &magic, "uio,no_such_thing")?, "no module no_such_thing"),
        (Elf::static_program(arm64), "mine.ko is no kernel module"),
    ] {
        world.elf("modules/mine.ko", module)?;
        world.test_with_modules()?.failed_with(&[why]);
    }
    assert!(!world.path("was-run").exists());
    Ok(())
}

#[test]
fn fitting_modules_are_packed_by_name_order() -> Outcome {
    let Some(world) = World::that_builds(&(KEEP.to_owned() + &prints(&[ROW, "@end 0 1"], 0)))?
    else {
        return Ok(());
    };
    for name in ["b-second.ko", "a-first.ko"] {
        // The folder of the board's name goes before the files beside it.
        let module = Elf::module(Architecture::Aarch64, &format!("{RELEASE} SMP"), "uio")?;
        world.elf(&format!("modules/virtual/{name}"), module)?;
    }
    world.elf("modules/wrong.ko", Elf::module(Architecture::Aarch64, "5.4 SMP", "")?)?;
    world.test_with_modules()?.ok();
    let image = String::from_utf8_lossy(&fs::read(world.path("initramfs"))?).into_owned();
    let list = "/lib/modules/00-a-first.ko a-first \n/lib/modules/01-b-second.ko b-second \n";
    assert!(image.contains(list));
    assert!(image.contains("a-first\nb-second\n"), "the names for the tests");
    Ok(())
}

#[test]
fn with_files_are_packed_for_their_board() -> Outcome {
    let Some(world) = World::that_builds(&(KEEP.to_owned() + &prints(&[ROW, "@end 0 1"], 0)))?
    else {
        return Ok(());
    };
    let with = world.path("with").display().to_string();
    write(&world.path("with/other/run"), b"for another board")?;
    world
        .test(&["--with", &with])?
        .failed_with(&["with has a folder for none of these boards: virtual"]);
    write(&world.path("with/virtual/run"), b"#!/usr/bin/own\n")?;
    world.test(&["--with", &with])?.failed_with(&["with/virtual/run is no program"]);
    assert!(!world.path("initramfs").exists(), "it was not run");

    fs::set_permissions(world.path("with/virtual/run"), fs::Permissions::from_mode(0o755))?;
    write(&world.path("with/virtual/usr/lib/libown.so.1"), b"a library")?;
    symlink("libown.so.1", world.path("with/virtual/usr/lib/libown.so"))?;
    world.test(&["--with", &with])?.ok();
    let image = fs::read(world.path("initramfs"))?;
    // A header of newc has 110 bytes up to the name: six of magic, eight digits of the inode, eight
    // of the mode.
    let mode = |name: &str| {
        let name = format!("{name}\0");
        let at = image.windows(name.len()).position(|bytes| bytes == name.as_bytes())?;
        image
            .get(at.checked_sub(96)?..at.checked_sub(88)?)
            .map(|mode| String::from_utf8_lossy(mode).to_lowercase())
    };
    for (name, expected) in [
        ("with/run", "000081ed"),
        ("with/usr/lib", "000041ed"),
        ("with/usr/lib/libown.so.1", "000081a4"),
        ("with/usr/lib/libown.so", "0000a1ff"),
    ] {
        assert_eq!(mode(name).as_deref(), Some(expected), "{name}");
    }
    assert!(!String::from_utf8_lossy(&image).contains("for another board"));
    Ok(())
}

#[test]
fn boards_run_at_once_are_all_counted() -> Outcome {
    let Some(world) = world(&[ROW, "@end 0 1"], 0)? else { return Ok(()) };
    let [virt, other] =
        ["virtual", "other"].map(|name| world.path(&format!("boards/virtual/lab/{name}.toml")));
    fs::copy(virt, other)?;
    let said = world.test(&["--jobs", "2"])?.ok();
    said.printed(&["2 passed; 0 failed; 0 ignored;", " on 2 boards"]);
    Ok(())
}
