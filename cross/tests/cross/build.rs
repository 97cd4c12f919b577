//! `cargo cross build` and `check`: what is built is checked before it is copied to a board.

use super::machine::{AARCH64, ARMV7, Machine, Outcome, program};
use std::fs;

#[test]
fn board_is_built_for_its_cpu_and_glibc() -> Outcome {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0, AARCH64.0])?;
    machine.builds(
        "armv7-unknown-linux-gnueabihf.2.27",
        &program(ARMV7.1, Some("GLIBC_2.27"), true),
    )?;
    machine
        .builds("aarch64-unknown-linux-gnu.2.27", &program(AARCH64.1, Some("GLIBC_2.17"), true))?;
    for (board, triple, glibc) in [
        ("de10-nano", ARMV7.0, "2.27"),
        ("kria", AARCH64.0, "2.17"),
        (AARCH64.0, AARCH64.0, "2.17"),
    ] {
        // Flags of the environment would be taken in the place of the target's: they do not arrive.
        let run = machine.cross_with(
            &["build", "--board", board, "--json"],
            &[("RUSTFLAGS", "-Cno"), ("CARGO_ENCODED_RUSTFLAGS", "-Cno")],
        )?;
        assert_eq!(run.status, Some(0), "{run:?}");
        let built = &run.json()?[0];
        assert_eq!(
            (&built["target"], &built["glibc"], &built["static"]),
            (&triple.into(), &glibc.into(), &false.into())
        );
        let file = built["binary"].as_str().ok_or("no path")?;
        assert_eq!(built["size_bytes"], fs::metadata(file)?.len());
    }
    let run = machine.cross(&["build"])?;
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("glibc 2.27 or newer") && run.stdout.contains("glibc 2.17 or newer"),
        "{}",
        run.stdout
    );
    Ok(())
}

#[test]
fn unrunnable_program_is_refused() -> Outcome {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0])?;
    for (built, said) in [
        (
            program(ARMV7.1, Some("GLIBC_2.28"), true),
            "needs glibc 2.28, and a board may have no newer one than 2.27",
        ),
        (program(ARMV7.1, Some("GLIBC_PRIVATE"), true), "GLIBC_PRIVATE has no number"),
        (program(AARCH64.1, None, true), "is for arm64, not for armv7"),
        (b"#!/bin/sh".to_vec(), "is no ELF program"),
        (program(ARMV7.1, None, true).get(..100).ok_or("short")?.to_vec(), "cannot be read"),
    ] {
        machine.builds("armv7-unknown-linux-gnueabihf.2.27", &built)?;
        let run = machine.cross(&["build", "--board", "pynq-z2"])?;
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        assert!(
            run.stderr.starts_with("cargo cross: ") && run.stderr.contains(said),
            "{said}: {}",
            run.stderr
        );
    }
    Ok(())
}

#[test]
fn static_is_static() -> Outcome {
    let machine = Machine::new()?;
    machine.with_std(&[ARMV7.0])?;
    machine.program("bin/arm-linux-gnueabihf-gcc", "")?;
    if !contigo_cross::targets::ARMV7.static_libc().is_file() {
        contigo_testkit::emulated::skipped(
            "build::static_is_static",
            "libc6-dev-armhf-cross is not installed",
        );
        return Ok(());
    }
    machine.builds(ARMV7.0, &program(ARMV7.1, None, false))?;
    let run = machine.cross(&["build", "--static", "--board", "zynq", "--json"])?;
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!((&run.json()?[0]["static"], &run.json()?[0]["glibc"]), (&true.into(), &().into()));
    for wrong in [program(ARMV7.1, None, true), program(ARMV7.1, Some("GLIBC_2.4"), false)] {
        machine.builds(ARMV7.0, &wrong)?;
        let run = machine.cross(&["build", "--static", "--board", "zynq"])?;
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(run.stderr.contains("has no C library inside"), "{}", run.stderr);
    }
    Ok(())
}

#[test]
fn an_unknown_board_lists_the_boards() -> Outcome {
    let run = Machine::new()?.cross(&["build", "--board", "zybo"])?;
    assert_eq!(run.status, Some(1));
    for part in ["no board \"zybo\"", "pynq-z2", "de10-nano", "kv260", "jetson", ARMV7.0, AARCH64.0]
    {
        assert!(run.stderr.contains(part), "{part} is not in {}", run.stderr);
    }
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    Ok(())
}

#[test]
fn what_is_missing_is_named_with_what_gets_it() -> Outcome {
    let machine = Machine::new()?;
    let cases: [(&[&str], &str); 3] = [
        (
            &["build", "--board", "zynq", "--static"],
            "arm-linux-gnueabihf-gcc is not installed: `apt install gcc-arm-linux-gnueabihf`",
        ),
        (
            &["build", "--board", "kria", "--static"],
            "aarch64-linux-gnu-gcc is not installed: `apt install gcc-aarch64-linux-gnu`",
        ),
        (&["build", "--board", "zynq"], "cargo-zigbuild is not installed: `cargo cross setup`"),
    ];
    for (args, said) in cases {
        let run = machine.cross(args)?;
        assert!(run.status == Some(1) && run.stderr.contains(said), "{said}: {run:?}");
    }
    machine.with_zigbuild()?;
    let run = machine.cross(&["build", "--board", "zynq"])?;
    let said =
        "no Rust standard library for armv7-unknown-linux-gnueabihf: `cargo cross setup` gets it";
    assert!(run.status == Some(1) && run.stderr.contains(said), "{run:?}");
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
    let run = machine.cross(&["build", "--board", "zynq"])?;
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr.contains("(exit status 101)")
            && run.stderr.contains("error: it does not compile"),
        "{}",
        run.stderr
    );
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
    assert_eq!(run.status, Some(1), "{run:?}");
    let entry = &run.json()?[0];
    assert_eq!((&entry["runs"], &entry["static"]), (&false.into(), &false.into()));
    let needed = entry["glibc"].as_str().ok_or("no version")?.to_owned();
    assert!(
        run.stderr
            .contains(&format!("needs glibc {needed}, and a board may have no newer one than 2.4")),
        "{}",
        run.stderr
    );
    // The limit itself is allowed, one below is not; without a limit the boards' is meant.
    assert_eq!(machine.cross(&["check", "--glibc", &needed, own])?.status, Some(0));
    let minor: u32 = needed.split('.').nth(1).ok_or("no minor version")?.parse()?;
    assert_eq!(
        machine.cross(&["check", "--glibc", &format!("2.{}", minor - 1), own])?.status,
        Some(1)
    );
    assert_eq!(machine.cross(&["check", own])?.status, Some(i32::from(minor > 27)));
    Ok(())
}

#[test]
fn wrong_usage_is_status_2() -> Outcome {
    let machine = Machine::new()?;
    for args in [
        &[] as &[&str],
        &["biuld"],
        &["check"],
        &["check", "--glibc", "new", "x"],
        &["build", "--board"],
    ] {
        assert_eq!(machine.cross(args)?.status, Some(2), "{args:?}");
    }
    for args in [
        &["--help"] as &[&str],
        &["setup", "--help"],
        &["build", "--help"],
        &["package", "--help"],
        &["check", "--help"],
    ] {
        let run = machine.cross(args)?;
        assert!(run.status == Some(0) && run.stdout.contains("Usage: cargo cross"), "{run:?}");
    }
    Ok(())
}
