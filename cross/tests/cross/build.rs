//! `cargo cross build` and `check`: what is built is checked before it is copied to a board.

use super::machine::{AARCH64, ARMV7, Machine, Outcome, program};
use std::fs;

#[test]
fn board_is_built_for_its_cpu_and_glibc() -> Outcome {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0, AARCH64.0])?;
    for ((triple, number), glibc) in [(ARMV7, "GLIBC_2.27"), (AARCH64, "GLIBC_2.17")] {
        machine.builds(&format!("{triple}.2.27"), &program(number, Some(glibc), true))?;
    }
    for (board, triple, glibc) in [
        ("de10-nano", ARMV7.0, "2.27"),
        ("kria", AARCH64.0, "2.17"),
        (AARCH64.0, AARCH64.0, "2.17"),
    ] {
        // Flags of the environment would be taken in the place of the target's: they do not arrive.
        let flags = [("RUSTFLAGS", "-Cno"), ("CARGO_ENCODED_RUSTFLAGS", "-Cno")];
        let run = machine.cross_with(&["build", "--board", board, "--json"], &flags)?.ok();
        let built = &run.json()?[0];
        assert_eq!(
            (&built["target"], &built["glibc"], &built["static"]),
            (&triple.into(), &glibc.into(), &false.into())
        );
        let file = built["binary"].as_str().ok_or("no path")?;
        assert_eq!(built["size_bytes"], fs::metadata(file)?.len());
    }
    let said = machine.cross(&["build"])?.ok().stdout;
    assert!(
        ["2.27", "2.17"].iter().all(|one| said.contains(&format!("glibc {one} or newer"))),
        "{said}"
    );
    Ok(())
}

#[test]
fn unrunnable_program_is_refused() -> Outcome {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0])?;
    let too_new = "needs glibc 2.28, and a board may have no newer one than 2.27";
    for (built, said) in [
        (program(ARMV7.1, Some("GLIBC_2.28"), true), too_new),
        (program(ARMV7.1, Some("GLIBC_PRIVATE"), true), "GLIBC_PRIVATE has no number"),
        (program(AARCH64.1, None, true), "is for arm64, not for armv7"),
        (b"#!/bin/sh".to_vec(), "is no ELF program"),
        (program(ARMV7.1, None, true).get(..100).ok_or("short")?.to_vec(), "cannot be read"),
    ] {
        machine.builds("armv7-unknown-linux-gnueabihf.2.27", &built)?;
        let run = machine.cross(&["build", "--board", "pynq-z2"])?;
        run.failed_with(&["cargo cross: ", said]);
        assert_eq!(run.stdout, "", "{said}");
    }
    Ok(())
}

#[test]
fn static_is_static() -> Outcome {
    let machine = Machine::new()?;
    machine.with_std(&[ARMV7.0])?;
    machine.program("bin/arm-linux-gnueabihf-gcc", "")?;
    if !contigo_cross::targets::ARMV7.static_libc().is_file() {
        let why = "libc6-dev-armhf-cross is not installed";
        contigo_testkit::skipped("build::static_is_static", why);
        return Ok(());
    }
    machine.builds(ARMV7.0, &program(ARMV7.1, None, false))?;
    let run = machine.cross(&["build", "--static", "--board", "zynq", "--json"])?.ok();
    assert_eq!((&run.json()?[0]["static"], &run.json()?[0]["glibc"]), (&true.into(), &().into()));
    for wrong in [program(ARMV7.1, None, true), program(ARMV7.1, Some("GLIBC_2.4"), false)] {
        machine.builds(ARMV7.0, &wrong)?;
        let run = machine.cross(&["build", "--static", "--board", "zynq"])?;
        run.failed_with(&["has no C library inside"]);
    }
    Ok(())
}

#[test]
fn an_unknown_board_lists_the_boards() -> Outcome {
    let run = Machine::new()?.cross(&["build", "--board", "zybo"])?;
    run.failed_with(&["no board \"zybo\"", "pynq-z2", "de10-nano", "kv260", "jetson"]);
    run.failed_with(&[ARMV7.0, AARCH64.0]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    Ok(())
}

#[test]
fn what_is_missing_is_named_with_what_gets_it() -> Outcome {
    let machine = Machine::new()?;
    for (gnu, board) in [("arm-linux-gnueabihf", "zynq"), ("aarch64-linux-gnu", "kria")] {
        let said = format!("{gnu}-gcc is not installed: `apt install gcc-{gnu}`");
        machine.cross(&["build", "--board", board, "--static"])?.failed_with(&[&said]);
    }
    let build = ["build", "--board", "zynq"];
    let said = "cargo-zigbuild is not installed: `cargo cross setup`";
    machine.cross(&build)?.failed_with(&[said]);
    machine.with_zigbuild()?;
    let said =
        "no Rust standard library for armv7-unknown-linux-gnueabihf: `cargo cross setup` gets it";
    machine.cross(&build)?.failed_with(&[said]);
    Ok(())
}

#[test]
fn a_build_that_fails_shows_the_end_of_its_log() -> Outcome {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0])?;
    machine.program(
        "cache/zigbuild/0.24.0-0.17.0/bin/cargo-zigbuild",
        "echo 'error: it does not compile' >&2; exit 101",
    )?;
    machine
        .cross(&["build", "--board", "zynq"])?
        .failed_with(&["(exit status 101)", "error: it does not compile"]);
    Ok(())
}

/// This test's own program is linked against this machine's C library, and needs more than the very
/// first version.
#[test]
fn a_program_that_needs_a_newer_glibc_is_refused() -> Outcome {
    let machine = Machine::new()?;
    let own = std::env::current_exe()?;
    let own = own.to_str().ok_or("a path that is no text")?;
    let run = machine.cross(&["check", "--glibc", "2.4", "--json", own])?;
    let entry = &run.json()?[0];
    assert_eq!((&entry["runs"], &entry["static"]), (&false.into(), &false.into()));
    let needed = entry["glibc"].as_str().ok_or("no version")?.to_owned();
    run.failed_with(&[&format!(
        "needs glibc {needed}, and a board may have no newer one than 2.4"
    )]);
    // The limit itself is allowed, one below is not; without a limit the boards' is meant.
    let minor: u32 = needed.split('.').nth(1).ok_or("no minor version")?.parse()?;
    for (limit, status) in [(needed, 0), (format!("2.{}", minor - 1), 1)] {
        let run = machine.cross(&["check", "--glibc", &limit, own])?;
        assert_eq!(run.status, Some(status), "{limit}");
    }
    assert_eq!(machine.cross(&["check", own])?.status, Some(i32::from(minor > 27)));
    Ok(())
}

#[test]
fn wrong_usage_is_status_2() -> Outcome {
    let machine = Machine::new()?;
    for line in ["", "biuld", "check", "check --glibc new x", "build --board"] {
        let args: Vec<_> = line.split_whitespace().collect();
        assert_eq!(machine.cross(&args)?.status, Some(2), "{line}");
    }
    Ok(())
}
