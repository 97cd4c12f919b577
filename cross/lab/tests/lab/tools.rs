//! A missing program is named. A wrong name on the command line lists the right ones.

use super::world::{Outcome, Said, World};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

fn real(cache: &Path, args: &[&str]) -> Said {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_contigo-lab"));
    Said::new(&lab.args(args).env("CONTIGO_CACHE", cache).output().unwrap())
}

#[test]
fn an_unknown_board_lists_the_boards() {
    for command in ["test", "kernel", "shell"] {
        let said = real(Path::new("/nonexistent/cache"), &[command, "zynq"]);
        said.failed_with(&["there is no board zynq", "virt, ", "zynq-6.12, ", "zynqmp"]);
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for wrong in [&["boot"] as &[&str], &["test", "--jobs", "0"], &["shell"]] {
        let said = real(Path::new("/nonexistent/cache"), wrong);
        assert_eq!(said.status, Some(2), "{wrong:?}");
    }
}

#[test]
fn every_board_of_the_project_can_be_read() -> Outcome {
    let world = World::bare()?;
    let said = real(&world.path("cache"), &["list", "--json"]).ok();
    let list: serde_json::Value = serde_json::from_str(&said.out)?;
    let list = list.as_array().ok_or("no array")?;
    let names: Vec<_> = list.iter().filter_map(|board| board["board"].as_str()).collect();
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
    let is_empty = list.iter().all(|board| board["cached"].is_null());
    assert!(is_empty, "an empty cache has no kernel");
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
    let machine = "machine = \"none\"";
    let text = world.text("boards/virtual/lab/virtual.toml")?;
    world.board("with-card", &text.replace(machine, &format!("{machine}, model = \"card\"")))?;
    world.program("cargo", "touch \"$HOME/was-built\"")?;
    fs::remove_file(world.path("bin/aarch64-linux-gnu-gcc"))?;
    let why = ["aarch64-linux-gnu-gcc is not installed", "apt install gcc-aarch64-linux-gnu"];
    world.test(&["with-card"])?.failed_with(&why);
    world.program("aarch64-linux-gnu-gcc", "exit 0")?;
    let library = Path::new("/usr/aarch64-linux-gnu/lib/libc.a");
    if !library.is_file() {
        let why = ["libc.a is not installed", "apt install libc6-dev-arm64-cross"];
        world.test(&["with-card"])?.failed_with(&why);
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
        let why = [format!("{tool} is not installed"), format!("apt install {package}`")];
        world.run(&["kernel", "own"])?.failed_with(&[&why[0], &why[1]]);
    }
    Ok(())
}

/// The line that installs what setup misses.
fn apt_line(said: &Said) -> Result<&str, &'static str> {
    said.out.lines().find(|line| line.contains("apt install")).ok_or("no line to copy")
}

/// Every program that the lab starts, by its package; those of a machine with apt are not missing.
#[test]
fn setup_prints_one_line_with_every_package() -> Outcome {
    let said = World::bare()?.run(&["setup", "--print"])?;
    assert_eq!(said.status, Some(1), "{said:?}");
    let line = apt_line(&said)?;
    for package in [
        "apt",
        "bc",
        "binutils-aarch64-linux-gnu",
        "binutils-arm-linux-gnueabihf",
        "bison",
        "cpp",
        "device-tree-compiler",
        "dpkg",
        "flex",
        "gcc",
        "gcc-aarch64-linux-gnu",
        "gcc-arm-linux-gnueabihf",
        "make",
        "perl",
        "qemu-system-arm",
        "sparse",
        "tar",
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
    said.printed(&["Get Rust's standard libraries for the boards:\n    cargo cross setup\n"]);
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
    assert_eq!(said.status, Some(status), "{said:?}");
    said.printed(&[word]);
    assert!(!said.out.contains("cargo cross setup"), "{said:?}");
    Ok(())
}

#[test]
fn setup_installs_as_root_and_says_what_is_left() -> Outcome {
    if !nix::unistd::geteuid().is_root() {
        let test = "setup_installs_as_root_and_says_what_is_left";
        writeln!(io::stderr(), "SKIPPED: {test}: only root installs")?;
        return Ok(());
    }
    let world = World::bare()?;
    let apt = "echo \"$*\" >> \"$HOME/asked\"; ln -sf /bin/true \"$HOME/bin/flex\"";
    world.program("apt-get", apt)?;
    let said = world.run(&["setup"])?;
    let asked = world.text("asked")?;
    let wanted = "update\ninstall --yes --no-install-recommends ";
    assert!(asked.starts_with(wanted) && asked.contains(" flex "), "{asked}");
    // This apt-get installed only flex, and that is seen.
    assert_eq!(said.status, Some(1), "{said:?}");
    let line = apt_line(&said)?;
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
    let text = world.text("boards/virtual/lab/virtual.toml")?;
    for (key, script) in [("setup", "other.sh"), ("then", "second.sh")] {
        let file = world.path("boards/virtual/lab/other.toml");
        fs::write(file, format!("{key} = \"{script}\"\n{text}"))?;
        let why = format!("there is no {script} beside it");
        world.run(&["list"])?.failed_with(&["board other", &why]);
        fs::write(world.path("boards/virtual/lab").join(script), "")?;
        world.run(&["list"])?.ok();
    }
    world.board("b", "")?;
    fs::rename(world.path("boards/b/lab/b.toml"), world.path("boards/b/lab/virtual.toml"))?;
    let why = ["there are two boards virtual", "boards/b/lab/virtual.toml"];
    world.run(&["list"])?.failed_with(&why);
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
