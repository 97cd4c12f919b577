//! Runs of a board: what passes, and everything that must not.

use super::world::{Elf, Outcome, RELEASE, World, is_gone, wait, write};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use object::Architecture;
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

#[test]
fn passing_run_prints_table_and_last_line() -> Outcome {
    let Some(world) = World::that_builds(&prints(&["booting", ROW, SKIPPED, "@end 0 2"], 0))?
    else {
        return Ok(());
    };
    let said = world.test(&[])?;
    assert_eq!(said.status, Some(0), "{said:?}");
    for text in [
        "virtual",
        "12,000",
        "skipped: no module u-dma-buf\n    virtual · u-dma-buf\n",
        "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in",
    ] {
        assert!(said.out.contains(text), "no {text} in\n{}", said.out);
    }
    assert!(
        said.err.contains("contigo-lab-exit") && said.err.contains("KiB"),
        "sizes: {}",
        said.err
    );
    let said = world.test(&["--json"])?;
    let summary: serde_json::Value = serde_json::from_str(&said.out)?;
    assert_eq!((summary.get("passed"), summary.get("skipped")), (Some(&1.into()), Some(&1.into())));
    assert_eq!(summary.pointer("/rows/0/board"), Some(&"virtual".into()));
    Ok(())
}

#[test]
fn board_command_line_is_printed() -> Outcome {
    let Some(world) = World::that_builds("exit 1")? else { return Ok(()) };
    let (out, tests) = (world.path("out/virtual"), world.path("tests"));
    let [out, tests] = [&out, &tests].map(|path| path.to_string_lossy().into_owned());
    let said = world.run(&["command", "virtual", "--out", &out, "--program", &tests, "--json"])?;
    assert_eq!(said.status, Some(0), "{said:?}");
    let command: serde_json::Value = serde_json::from_str(&said.out)?;
    assert_eq!(command.get("kernel"), Some(&RELEASE.into()));
    let argv: Vec<_> = command
        .get("argv")
        .and_then(|argv| argv.as_array())
        .into_iter()
        .flatten()
        .filter_map(|word| word.as_str())
        .collect();
    assert!(
        argv.first().is_some_and(|program| program.ends_with("qemu-system-aarch64"))
            && !argv.contains(&"-serial"),
        "{argv:?}"
    );
    let initramfs = command.get("initramfs").and_then(|path| path.as_str()).unwrap_or_default();
    assert!(argv.contains(&initramfs) && fs::metadata(initramfs)?.len() > 0);
    world.run(&["command", "nowhere", "--out", &out])?.failed_with(&["there is no board nowhere"]);
    Ok(())
}

#[test]
fn a_soak_is_one_row_and_has_a_limit_of_its_own() -> Outcome {
    let row = r#"@row {"kind":"check","name":"soak","status":"passed","reason":"ended by time after 60 s"}"#;
    let Some(world) = World::that_builds(&prints(&["   60 s  5 jobs", row, "@end 0 1"], 0))? else {
        return Ok(());
    };
    let said = world.test(&["--soak", "1"])?;
    assert!(said.status == Some(0) && said.out.contains("test result: ok. 1 passed"), "{said:?}");
    assert_eq!(world.test(&["--soak", "1", "--filter", "x"])?.status, Some(2));
    Ok(())
}

#[test]
fn a_row_that_failed_fails_the_run() -> Outcome {
    let failed = r#"@row {"kind":"check","name":"a fault is decoded","user":"0","status":"failed","reason":"it was not"}"#;
    let Some(world) = World::that_builds(&prints(&[ROW, failed, "@end 1 2"], 1))? else {
        return Ok(());
    };
    let said = world.test(&[])?;
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(
        said.out.contains("FAILED: virtual · a fault is decoded\n    it was not\n")
            && said.out.contains("FAILED. 1 passed; 1 failed"),
        "{}",
        said.out
    );
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
    said.failed_with(&[
        "did not end within 2 s",
        "line 30 of the console",
        "line 11 of the console",
        "console-virtual.log",
    ]);
    assert!(!said.err.contains("line 10 of"), "twenty lines are enough: {}", said.err);
    assert!(said.out.contains("test result: FAILED. 0 passed; 1 failed"), "{}", said.out);
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
    world.elf("tests", Elf::static_program(Architecture::X86_64))?;
    world.test(&[])?.failed_with(&[
        "tests is a program for x86-64, board virtual runs arm64 (aarch64-unknown-linux-gnu)",
    ]);
    world.elf("tests", Elf::program(Architecture::Aarch64, true))?;
    world.test(&[])?.failed_with(&["wants shared libraries", "+crt-static"]);
    world.elf("tests", b"#!/bin/sh\n".to_vec())?;
    world.test(&[])?.failed_with(&["tests is no ELF program"]);
    fs::remove_file(world.path("tests"))?;
    world.test(&[])?.failed_with(&["cannot read", "tests"]);
    assert!(!world.path("was-run").exists());
    Ok(())
}

#[test]
fn module_for_other_kernel_is_refused_early() -> Outcome {
    let Some(world) = World::that_builds("touch \"$HOME/was-run\"")? else { return Ok(()) };
    let program = world.path("tests").display().to_string();
    let test = |expected: &[&str]| -> Outcome {
        let output = world
            .lab(&["test", "--program", &program])
            .env("CONTIGO_MODULES", world.path("modules"))
            .output()?;
        super::world::Said::new(&output).failed_with(expected);
        Ok(())
    };
    world.elf(
        "modules/mine.ko",
        Elf::module(Architecture::Aarch64, "6.1.0-9-arm64 SMP mod_unload aarch64", "")?,
    )?;
    test(&["mine.ko is for kernel 6.1.0-9-arm64, board virtual runs 6.12.1+deb12-arm64"])?;
    world.elf(
        "modules/mine.ko",
        Elf::module(Architecture::X86_64, &format!("{RELEASE} SMP"), "")?,
    )?;
    test(&["mine.ko is for x86-64, board virtual runs arm64"])?;
    world.elf(
        "modules/mine.ko",
        Elf::module(Architecture::Aarch64, &format!("{RELEASE} SMP"), "uio,no_such_thing")?,
    )?;
    test(&["no module no_such_thing"])?;
    world.elf("modules/mine.ko", Elf::static_program(Architecture::Aarch64))?;
    test(&["mine.ko is no kernel module"])?;
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
        world.elf(
            &format!("modules/virtual/{name}"),
            Elf::module(Architecture::Aarch64, &format!("{RELEASE} SMP"), "uio")?,
        )?;
    }
    world.elf("modules/wrong.ko", Elf::module(Architecture::Aarch64, "5.4 SMP", "")?)?;
    let program = world.path("tests").display().to_string();
    let status = world
        .lab(&["test", "--program", &program])
        .env("CONTIGO_MODULES", world.path("modules"))
        .output()?
        .status;
    assert!(status.success());
    let image = String::from_utf8_lossy(&fs::read(world.path("initramfs"))?).into_owned();
    assert!(
        image.contains(
            "/lib/modules/00-a-first.ko a-first \n/lib/modules/01-b-second.ko b-second \n"
        )
    );
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
    let said = world.test(&["--with", &with])?;
    assert_eq!(said.status, Some(0), "{said:?}");
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
    let modes = ["with/run", "with/usr/lib", "with/usr/lib/libown.so.1", "with/usr/lib/libown.so"]
        .map(mode);
    assert_eq!(
        modes,
        ["000081ed", "000041ed", "000081a4", "0000a1ff"].map(|mode| Some(mode.to_owned()))
    );
    assert!(!String::from_utf8_lossy(&image).contains("for another board"));
    Ok(())
}

#[test]
fn boards_run_at_once_are_all_counted() -> Outcome {
    let Some(world) = World::that_builds(&prints(&[ROW, "@end 0 1"], 0))? else { return Ok(()) };
    fs::copy(
        world.path("boards/virtual/lab/virtual.toml"),
        world.path("boards/virtual/lab/other.toml"),
    )?;
    let said = world.test(&["--jobs", "2"])?;
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(
        said.out.contains("2 passed; 0 failed; 0 ignored;") && said.out.contains(" on 2 boards"),
        "{}",
        said.out
    );
    Ok(())
}
