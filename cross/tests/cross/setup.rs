//! `cargo cross setup` on machines that lack something: what can be had is got, and the rest is
//! said in one line.

use super::machine::{AARCH64, ARMV7, Machine, Outcome, Run};
use contigo_cross::targets;
use nix::unistd::Uid;
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The state of one part in `--json`.
fn state(run: &Run, part: &str) -> Result<String, Box<dyn Error>> {
    let report = run.json()?;
    let parts = report.as_array().ok_or("no list")?;
    let entry = parts.iter().find(|entry| entry["part"] == part).ok_or("no such part")?;
    Ok(entry["state"].as_str().unwrap_or_default().to_owned())
}

const LINKERS: &str = "linkers and emulators";
const STD: &str = "Rust's standard libraries";

#[test]
fn a_missing_tool_names_its_package() -> Outcome {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0, AARCH64.0])?;
    let run = machine.cross(&["setup", "--json"])?;
    run.failed_with(&["gcc-arm-linux-gnueabihf", "gcc-aarch64-linux-gnu", "qemu-user-static"]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    for (part, is) in [(LINKERS, "missing"), (STD, "ready"), ("cargo-zigbuild", "ready")] {
        assert_eq!(state(&run, part)?, is, "{part}");
    }
    // Only looking is no failure, and changes nothing.
    let run = machine.cross(&["setup", "--print", "--json"])?.ok();
    assert_eq!(state(&run, LINKERS)?, "todo", "{run:?}");
    Ok(())
}

#[test]
fn root_installs_tools_despite_old_lists() -> Outcome {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0, AARCH64.0])?;
    let bin = machine.path("bin").display().to_string();
    let tools =
        targets::ALL.into_iter().flat_map(|target| [target.linker(), target.emulator.to_owned()]);
    let installs: String = tools
        .map(|tool| format!("echo '#!/bin/sh' > {bin}/{tool}; /bin/chmod +x {bin}/{tool}\n"))
        .collect();
    // Without lists it installs nothing; `update` gets them.
    let apt = format!(
        "echo \"$@\" >> {bin}/asked\ncase $1 in update) : > {bin}/lists;; install) [ -e \
         {bin}/lists ] || exit 100\n{installs};; esac"
    );
    machine.program("bin/apt-get", &apt)?;
    let run = machine.cross(&["setup", "--json"])?;
    if !Uid::effective().is_root() {
        run.failed_with(&["; as root: `apt install "]);
        return Ok(());
    }
    if targets::ALL.iter().any(|target| !target.static_libc().is_file()) {
        run.failed_with(&["and there is still no /usr/"]);
        return Ok(());
    }
    assert_eq!(state(&run.ok(), LINKERS)?, "installed");
    let asked = fs::read_to_string(machine.path("bin/asked"))?;
    let wanted = "install --yes --no-install-recommends gcc-aarch64-linux-gnu \
                  gcc-arm-linux-gnueabihf qemu-user-static";
    assert_eq!(asked.lines().collect::<Vec<_>>(), [wanted, "update", wanted]);
    Ok(())
}

/// A machine where only Rust's libraries are missing.
fn without_std() -> Result<Machine, Box<dyn Error>> {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    for target in targets::ALL {
        machine.program(&format!("bin/{}", target.linker()), "")?;
        machine.program(&format!("bin/{}", target.emulator), "")?;
    }
    Ok(machine)
}

/// The run failed for want of Rust's libraries, with one line that has each of `parts`.
#[track_caller]
fn no_libraries(run: &Run, parts: &[&str]) {
    assert_eq!(run.status, Some(1), "{run:?}");
    let line = run.stderr.lines().find(|line| line.contains("standard library"));
    for part in parts {
        assert!(line.is_some_and(|line| line.contains(part)), "{part} is not in {line:?}");
    }
}

#[test]
fn neither_rustup_nor_debian_is_one_clear_line() -> Outcome {
    let run = without_std()?.cross(&["setup", "--json"])?;
    no_libraries(&run, &[ARMV7.0, AARCH64.0, "rustup is not installed", "there is no dpkg here"]);
    assert_eq!(state(&run, STD)?, "missing");
    Ok(())
}

#[test]
fn rustup_is_tried_first_and_quoted() -> Outcome {
    let machine = without_std()?;
    machine.program("bin/rustup", "echo \"error: could not download $3\" >&2; exit 1")?;
    machine
        .cross(&["setup", "--json"])?
        .failed_with(&["rustup says \"could not download armv7-unknown-linux-gnueabihf\""]);
    let std = machine.path("std").display().to_string();
    let adds = format!(
        "[ \"$1 $2\" = 'target add' ] || exit 1; shift 2; for t; do /bin/mkdir -p {std}/$t; : > \
         {std}/$t/libstd-1.rlib; done"
    );
    machine.program("bin/rustup", &adds)?;
    for expected in ["installed", "ready"] {
        assert_eq!(state(&machine.cross(&["setup", "--json"])?, STD)?, expected);
    }
    Ok(())
}

/// Debian's packages, made here: a compiler that knows its sysroot, and the libraries of three
/// processors.
fn debs(machine: &Machine, host: &str, foreign_version: &str) -> Outcome {
    const VERSION: &str = "1.96.0+dfsg1-1";
    let rustc = "sysroot=none; for word; do case $last in --sysroot) sysroot=$word;; --target) target=$word;; esac; last=$word; done\n\
                 case \" $* \" in *' -vV '*) echo 'rustc 1.96.0 (a test)';; *) echo $sysroot/lib/rustlib/$target/lib;; esac";
    let host_files = [
        ("usr/bin/rustc", rustc),
        ("usr/bin/rustdoc", ""),
        ("usr/lib/any-linux-gnu/librustc_driver-7.so", ""),
    ];
    deb(machine, ("rustc-web", VERSION, host), &host_files)?;
    for (architecture, version, triple) in [
        (host, VERSION, "x86_64-unknown-linux-gnu"),
        ("armhf", foreign_version, ARMV7.0),
        ("arm64", VERSION, AARCH64.0),
    ] {
        if architecture != host || triple.starts_with("x86_64") {
            let library = format!("usr/lib/rustlib/{triple}/lib/libstd-7.rlib");
            deb(machine, ("libstd-rust-web-dev", version, architecture), &[(&library, "")])?;
        }
    }
    Ok(())
}

fn deb(
    machine: &Machine,
    (name, version, architecture): (&str, &str, &str),
    files: &[(&str, &str)],
) -> Outcome {
    let folder = machine.path("deb").join(format!("{name}-{architecture}"));
    fs::create_dir_all(folder.join("DEBIAN"))?;
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: a \
         test\nDescription: a test\n"
    );
    fs::write(folder.join("DEBIAN/control"), control)?;
    for (file, text) in files {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().ok_or("no folder")?)?;
        fs::write(&file, format!("#!/bin/sh\n{text}\n"))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    let packages = machine.path("cache/packages");
    fs::create_dir_all(&packages)?;
    let mut build = Command::new("dpkg-deb");
    let made =
        build.args(["--root-owner-group", "--build"]).arg(&folder).arg(&packages).output()?;
    assert!(made.status.success(), "{made:?}");
    Ok(())
}

/// A machine with Debian's packages, and dpkg's name of it; `None`: there is no dpkg here, and that
/// is said. The emulated tests have their host's.
fn with_debs(test: &str, version: &str) -> Result<Option<(Machine, String)>, Box<dyn Error>> {
    let machine = without_std()?;
    if !machine.link(&["dpkg", "dpkg-deb", "tar", "rm", "sh"])? {
        contigo_testkit::skipped(&format!("setup::{test}"), "no dpkg here");
        return Ok(None);
    }
    let said = Command::new("dpkg").arg("--print-architecture").output()?.stdout;
    let host = String::from_utf8(said)?.trim().to_owned();
    debs(&machine, &host, version)?;
    Ok(Some((machine, host)))
}

#[test]
fn debians_libraries_are_put_behind_a_wrapper() -> Outcome {
    let test = "debians_libraries_are_put_behind_a_wrapper";
    let Some((machine, _)) = with_debs(test, "1.96.0+dfsg1-1")? else { return Ok(()) };
    let run = machine.cross(&["setup", "--json"])?;
    assert_eq!(state(&run, STD)?, "installed", "{run:?}");
    let wrapper = machine.path("cache/rust/sysroot/bin/rustc");
    let rustc = wrapper.to_str().ok_or("a path that is no text")?;
    assert!(run.stdout.contains(&format!("RUSTC={rustc} ")), "{}", run.stdout);
    for triple in [ARMV7.0, AARCH64.0] {
        let asked =
            Command::new(rustc).args(["--print", "target-libdir", "--target", triple]).output()?;
        let folder = String::from_utf8(asked.stdout)?;
        assert!(fs::metadata(format!("{}/libstd-7.rlib", folder.trim()))?.is_file(), "{folder}");
    }
    let own = "cache/rust/sysroot/lib/rustlib/x86_64-unknown-linux-gnu/lib/libstd-7.rlib";
    assert!(machine.path(own).is_file(), "the host's own");
    // It is there from now on, for other commands as well, until the compiler behind it is another.
    assert_eq!(state(&machine.cross(&["setup", "--json"])?, STD)?, "ready");
    fs::write(machine.path("cache/rust/sysroot/version"), "rustc 1.95.0\n")?;
    assert_eq!(state(&machine.cross(&["setup", "--print", "--json"])?, STD)?, "todo");
    Ok(())
}

#[test]
fn library_of_wrong_version_is_refused() -> Outcome {
    let test = "library_of_wrong_version_is_refused";
    let Some((machine, host)) = with_debs(test, "1.95.0+dfsg1-1")? else { return Ok(()) };
    let run = machine.cross(&["setup", "--json"])?;
    let versions = ["1.95.0+dfsg1-1", "1.96.0+dfsg1-1"];
    no_libraries(&run, &["libstd-rust-web-dev (armhf)", "cache/packages"]);
    no_libraries(&run, &versions);
    // The other one could be had, and is of use.
    let libraries = machine.path("cache/rust/sysroot/lib/rustlib");
    assert!(libraries.join(AARCH64.0).exists() || host == "arm64");
    assert!(!libraries.join(ARMV7.0).exists());
    Ok(())
}

#[test]
fn packaging_tools_are_set_up_when_asked() -> Outcome {
    let machine = without_std()?;
    machine.with_std(&[ARMV7.0, AARCH64.0])?;
    // A build alone does not need it.
    let run = machine.cross(&["setup", "--print", "--json"])?;
    assert!(state(&run, "packaging tools").is_err(), "{run:?}");
    let run = machine.cross(&["setup", "--packages", "--print", "--json"])?.ok();
    // Of Rust's libraries a PC's is missing.
    for part in ["packaging tools", "maturin", STD] {
        assert_eq!(state(&run, part)?, "todo", "{part}: {run:?}");
    }
    for part in [
        "apt install binutils debhelper device-tree-compiler dpkg-dev lintian make",
        "pip install maturin",
    ] {
        assert!(run.stdout.contains(part), "{part} is not in {}", run.stdout);
    }
    Ok(())
}

#[test]
fn pip_that_is_missing_is_named() -> Outcome {
    let machine = Machine::new()?;
    let remedy = "is not installed: `apt install python3-pip`";
    machine.cross(&["setup"])?.failed_with(&[&format!("python3 {remedy}")]);
    machine.program("bin/python3", "echo 'No module named pip' >&2; exit 1")?;
    let pip = format!("pip, Python's package installer, {remedy}");
    machine.cross(&["setup"])?.failed_with(&[&pip]);
    Ok(())
}
