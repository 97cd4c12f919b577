//! A missing program is named. A wrong name on the command line lists the right ones.

use super::world::{Outcome, Said, World};
use std::io::{self, Write};
use std::{fs, path::Path, process::Command};

fn real(args: &[&str]) -> Said {
    Said::new(
        &Command::new(env!("CARGO_BIN_EXE_contigo-lab"))
            .args(args)
            .env("CONTIGO_CACHE", "/nonexistent/cache")
            .output()
            .unwrap(),
    )
}

#[test]
fn an_unknown_board_lists_the_boards() {
    for command in ["test", "kernel", "shell"] {
        real(&[command, "zynq"]).failed_with(&[
            "there is no board zynq",
            "virt, ",
            "virt-debug-smmu, ",
            "zynq-6.12, ",
            "zynqmp",
        ]);
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for wrong in [&["boot"] as &[&str], &["test", "--jobs", "0"], &["shell"]] {
        assert_eq!(real(wrong).status, Some(2), "{wrong:?}");
    }
}

#[test]
fn every_board_of_the_project_can_be_read() -> Outcome {
    let world = World::bare()?;
    let boards = concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards");
    let said = Said::new(
        &Command::new(env!("CARGO_BIN_EXE_contigo-lab"))
            .args(["--boards", boards, "list", "--json"])
            .env("CONTIGO_CACHE", world.path("cache"))
            .output()?,
    );
    assert_eq!(said.status, Some(0), "{}", said.err);
    let list: serde_json::Value = serde_json::from_str(&said.out)?;
    let list = list.as_array().ok_or("no array")?;
    let names: Vec<_> = list.iter().filter_map(|board| board.get("board")?.as_str()).collect();
    for name in [
        "virt",
        "virt-debug",
        "virt-debug-smmu",
        "virt-rtl-armv7",
        "virt-rtl-gate",
        "virt-smmu",
        "zynq-6.1",
        "zynq-6.12",
        "zynqmp",
    ] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    assert!(
        list.iter().all(|board| board.get("cached").is_some_and(serde_json::Value::is_null)),
        "an empty cache has no kernel"
    );
    Ok(())
}

#[test]
fn missing_emulator_names_package_first() -> Outcome {
    let world = World::with_emulator("exit 0")?;
    fs::remove_file(world.path("bin/qemu-system-aarch64"))?;
    world.program("cargo", "touch \"$HOME/was-built\"")?;
    world
        .test(&[])?
        .failed_with(&["qemu-system-aarch64 is not installed", "apt install qemu-system-arm"]);
    assert!(!world.path("was-built").exists());
    Ok(())
}

/// Also where a model is built first, which takes minutes.
#[test]
fn missing_compiler_or_libc_is_told_first() -> Outcome {
    let world = World::with_emulator("exit 0")?;
    let text = fs::read_to_string(world.path("boards/virtual/lab/virtual.toml"))?;
    world.board(
        "with-card",
        &text.replace("machine = \"none\"", "machine = \"none\", model = \"card\""),
    )?;
    world.program("cargo", "touch \"$HOME/was-built\"")?;
    fs::remove_file(world.path("bin/aarch64-linux-gnu-gcc"))?;
    world.test(&["with-card"])?.failed_with(&[
        "aarch64-linux-gnu-gcc is not installed",
        "apt install gcc-aarch64-linux-gnu",
    ]);
    world.program("aarch64-linux-gnu-gcc", "exit 0")?;
    let library = Path::new("/usr/aarch64-linux-gnu/lib/libc.a");
    if !library.is_file() {
        world
            .test(&["with-card"])?
            .failed_with(&["libc.a is not installed", "apt install libc6-dev-arm64-cross"]);
    }
    assert!(!world.path("was-built").exists());
    Ok(())
}

#[test]
fn a_missing_build_tool_names_its_package() -> Outcome {
    for (tool, package) in [
        ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
        ("bison", "bison"),
        ("xz", "xz-utils"),
        ("make", "make"),
    ] {
        let world = World::with_make("exit 0")?;
        fs::remove_file(world.path("bin").join(tool))?;
        world.run(&["kernel", "own"])?.failed_with(&[
            &format!("{tool} is not installed"),
            &format!("apt install {package}`"),
        ]);
    }
    Ok(())
}

#[test]
fn setup_prints_one_line_with_every_package() -> Outcome {
    let said = World::bare()?.run(&["setup", "--print"])?;
    assert_eq!(said.status, Some(1), "{said:?}");
    let line =
        said.out.lines().find(|line| line.contains("apt install")).ok_or("no line to copy")?;
    for package in [
        "bc",
        "bison",
        "device-tree-compiler",
        "flex",
        "gcc-aarch64-linux-gnu",
        "gcc-arm-linux-gnueabihf",
        "qemu-system-arm",
        "xz-utils",
    ] {
        assert!(line.split(' ').any(|word| word == package), "no {package} in {line}");
    }
    // The C libraries are at fixed places, wherever the programs are.
    for (folder, package) in [
        ("arm-linux-gnueabihf", "libc6-dev-armhf-cross"),
        ("aarch64-linux-gnu", "libc6-dev-arm64-cross"),
    ] {
        let is_there = Path::new("/usr").join(folder).join("lib/libc.a").is_file();
        assert_eq!(line.split(' ').any(|word| word == package), !is_there, "{package}: {line}");
    }
    assert!(
        said.out.contains("Get Rust's standard libraries for the boards:\n    cargo cross setup\n"),
        "{}",
        said.out
    );
    Ok(())
}

/// With every program there, the C libraries and Rust's alone are missing, and setup lists them.
#[test]
fn setup_says_when_everything_is_there() -> Outcome {
    let world = World::bare()?;
    let said = world.run(&["setup", "--print"])?;
    let programs =
        said.out.lines().filter(|line| line.contains(" missing: package ")).filter_map(|line| {
            line.split_whitespace()
                .find(|word| word.starts_with(|letter: char| letter.is_ascii_lowercase()))
        });
    let programs: Vec<_> = programs.map(str::to_owned).collect();
    assert!(programs.len() > 15, "{programs:?}\n{}", said.out);
    for program in &programs {
        world.program(program, "exit 0")?;
    }
    fs::write(world.path("libstd-0.rlib"), "")?;
    world.program("rustc", &format!("echo {}", world.folder.path().display()))?;
    let said = world.run(&["setup", "--print"])?;
    let are_there = ["arm-linux-gnueabihf", "aarch64-linux-gnu"]
        .iter()
        .all(|gnu| Path::new("/usr").join(gnu).join("lib/libc.a").is_file());
    let (status, word) = if are_there {
        (0, "Everything is there.")
    } else {
        (1, "sudo apt install --no-install-recommends libc6-dev-")
    };
    assert!(
        said.status == Some(status)
            && said.out.contains(word)
            && !said.out.contains("cargo cross setup"),
        "{said:?}"
    );
    Ok(())
}

#[test]
fn setup_installs_as_root_and_says_what_is_left() -> Outcome {
    if !nix::unistd::geteuid().is_root() {
        writeln!(
            io::stderr(),
            "SKIPPED: setup_installs_as_root_and_says_what_is_left: only root installs"
        )?;
        return Ok(());
    }
    let world = World::bare()?;
    world.program(
        "apt-get",
        "echo \"$*\" >> \"$HOME/asked\"; ln -sf /bin/true \"$HOME/bin/flex\"",
    )?;
    let said = world.run(&["setup"])?;
    let asked = fs::read_to_string(world.path("asked"))?;
    assert!(
        asked.starts_with("update\ninstall --yes --no-install-recommends ")
            && asked.contains(" flex "),
        "{asked}"
    );
    // This apt-get installed only flex, and that is seen.
    assert_eq!(said.status, Some(1), "{said:?}");
    let line =
        said.out.lines().find(|line| line.contains("apt install")).ok_or("no line to copy")?;
    assert!(line.contains(" bison ") && !line.contains("flex"), "{line}");
    Ok(())
}

#[test]
fn a_board_with_a_typo_is_refused_with_the_line() -> Outcome {
    let world = World::bare()?;
    world.board("b", "about = \"x\"\narchitecture = \"arm\"\nmemroy = \"1M\"\n")?;
    world.run(&["list"])?.failed_with(&["board b", "memroy", "line 3"]);
    world.board("b", "about = \"x\"\narchitecture = \"riscv\"\n")?;
    world.run(&["list"])?.failed_with(&["board b", "riscv", "arm64"]);
    Ok(())
}

#[test]
fn duplicate_or_scriptless_board_is_refused() -> Outcome {
    let world = World::with_emulator("exit 0")?;
    let text = fs::read_to_string(world.path("boards/virtual/lab/virtual.toml"))?;
    fs::write(
        world.path("boards/virtual/lab/other.toml"),
        format!("setup = \"other.sh\"\n{text}"),
    )?;
    world.run(&["list"])?.failed_with(&["board other", "there is no other.sh beside it"]);
    fs::write(world.path("boards/virtual/lab/other.sh"), "")?;
    assert_eq!(world.run(&["list"])?.status, Some(0));
    fs::write(
        world.path("boards/virtual/lab/other.toml"),
        format!("then = \"second.sh\"\n{text}"),
    )?;
    world.run(&["list"])?.failed_with(&["board other", "there is no second.sh beside it"]);
    fs::write(world.path("boards/virtual/lab/second.sh"), "")?;
    assert_eq!(world.run(&["list"])?.status, Some(0));
    world.board("b", "")?;
    fs::rename(world.path("boards/b/lab/b.toml"), world.path("boards/b/lab/virtual.toml"))?;
    world
        .run(&["list"])?
        .failed_with(&["there are two boards virtual", "boards/b/lab/virtual.toml"]);
    Ok(())
}

#[test]
fn no_place_for_the_cache_is_said() -> Outcome {
    let world = World::with_make("exit 0")?;
    let said =
        Said::new(&world.lab(&["kernel"]).env_remove("CONTIGO_CACHE").env_remove("HOME").output()?);
    said.failed_with(&["CONTIGO_CACHE"]);
    Ok(())
}
