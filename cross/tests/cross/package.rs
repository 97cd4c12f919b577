//! `cargo cross package`: the same sources give the same bytes, the manifest tells the truth about
//! them, debhelper gets what it needs, and a run that fails leaves nothing.

use super::machine::{AARCH64, ARMV7, Machine, Outcome, Run, X86_64, program};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Read;
use tar::{Archive, EntryType};

/// A machine that can pack; `None`: this one lacks a tool, and that is said.
fn machine(test: &str) -> Result<Option<Machine>, Box<dyn Error>> {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0, AARCH64.0, X86_64.0])?;
    for (triple, number) in [ARMV7, AARCH64, X86_64] {
        machine.builds(&format!("{triple}.2.27"), &program(number, Some("GLIBC_2.25"), true))?;
    }
    if machine.with_sources()? {
        return Ok(Some(machine));
    }
    let why = "make, dtc, readelf or python3 is not installed";
    contigo_testkit::skipped(&format!("package::{test}"), why);
    Ok(None)
}

fn packages(machine: &Machine, args: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, Box<dyn Error>> {
    made(&machine.cross(&[&["package", "--json"], args].concat())?.ok())
}

/// The packages that a run reports, by their names, each with its size and sum.
fn made(run: &Run) -> Result<BTreeMap<String, Vec<u8>>, Box<dyn Error>> {
    let mut packages = BTreeMap::new();
    for entry in run.json()?.as_array().ok_or("no list")? {
        let file = entry["package"].as_str().ok_or("no path")?;
        let bytes = fs::read(file)?;
        let expected = (&bytes.len().into(), &sum(&bytes).into());
        assert_eq!((&entry["size_bytes"], &entry["sha256"]), expected, "{file}");
        packages.insert(file.rsplit('/').next().unwrap_or_default().to_owned(), bytes);
    }
    Ok(packages)
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn two_runs_give_the_same_bytes() -> Outcome {
    // Another folder, and files with other times.
    let test = "two_runs_give_the_same_bytes";
    let (Some(one), Some(other)) = (machine(test)?, machine(test)?) else { return Ok(()) };
    let zynq = ["--board", "zynq"];
    let first = packages(&one, &zynq)?;
    std::thread::sleep(std::time::Duration::from_millis(1100));
    fs::write(one.path("sources/README.md"), fs::read(other.path("sources/README.md"))?)?;
    assert_eq!(first, packages(&one, &zynq)?);
    assert_eq!(first, packages(&other, &zynq)?);
    // And other sources give others.
    fs::write(other.path("sources/README.md"), "another text\n")?;
    assert_ne!(first, packages(&other, &zynq)?);
    Ok(())
}

#[test]
fn the_manifest_has_every_file_with_its_sum() -> Outcome {
    let Some(machine) = machine("the_manifest_has_every_file_with_its_sum")? else { return Ok(()) };
    let all = packages(&machine, &[])?;
    let names =
        [AARCH64, ARMV7, X86_64].map(|(triple, _)| format!("contigo-9.8.7-{triple}.tar.gz"));
    assert_eq!(all.keys().cloned().collect::<Vec<_>>(), names);
    for (name, bytes) in all {
        let folder = name.strip_suffix(".tar.gz").ok_or("no .tar.gz")?;
        let (mut files, mut links, mut order) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for member in Archive::new(GzDecoder::new(bytes.as_slice())).entries()? {
            let mut member = member?;
            let path = member.path()?.strip_prefix(folder)?.display().to_string();
            let header = member.header();
            assert_eq!((header.uid()?, header.gid()?, header.mtime()?), (0, 0, 1), "{path}");
            order.push(path.clone());
            if header.entry_type() == EntryType::Symlink {
                let to = member.link_name()?.ok_or("a link to nothing")?;
                links.insert(path, to.display().to_string());
                continue;
            }
            let is_program = path.starts_with("usr/bin/") || path.contains("/libcontigo.so.");
            assert_eq!(header.mode()?, if is_program { 0o755 } else { 0o644 }, "{path}");
            let mut content = Vec::new();
            member.read_to_end(&mut content)?;
            files.insert(path, content);
        }
        assert!(order.iter().filter(|path| *path != "MANIFEST.json").is_sorted(), "{order:?}");
        let manifest: Value =
            serde_json::from_slice(&files.remove("MANIFEST.json").ok_or("no manifest")?)?;
        assert_eq!((&manifest["version"], &manifest["glibc"]), (&"9.8.7".into(), &"2.25".into()));
        let (mut listed, mut listed_links) = (BTreeMap::new(), BTreeMap::new());
        for file in manifest["files"].as_array().ok_or("no list")? {
            let path = file["path"].as_str().ok_or("no path")?.to_owned();
            match (file["size_bytes"].as_u64(), file["sha256"].as_str(), file["link"].as_str()) {
                (Some(size), Some(sum), None) => drop(listed.insert(path, (size, sum.to_owned()))),
                (None, None, Some(to)) => drop(listed_links.insert(path, to.to_owned())),
                _ => return Err(format!("neither a file nor a link: {file}").into()),
            }
        }
        let about = |content: &Vec<u8>| (content.len() as u64, sum(content));
        let there: BTreeMap<_, _> =
            files.iter().map(|(path, content)| (path.clone(), about(content))).collect();
        assert_eq!((listed, &listed_links), (there, &links));
        let gnu = ["arm-linux-gnueabihf", "aarch64-linux-gnu", "x86_64-linux-gnu"]
            .into_iter()
            .find(|gnu| {
                name.contains(&gnu.replace("arm-", "armv7-").replace("-linux", "-unknown-linux"))
            })
            .ok_or("another processor")?;
        assert_eq!(links[&format!("usr/lib/{gnu}/libcontigo.so")], "libcontigo.so.2");
        for path in [
            "CHANGELOG.md",
            "LICENSE-MIT",
            "etc/modprobe.d/contigo.conf",
            "usr/bin/contigo",
            "usr/bin/contigo-board-tests",
            "usr/include/contigo.h",
            &format!("usr/lib/{gnu}/libcontigo.a"),
            &format!("usr/lib/{gnu}/libcontigo.so.9.8.7"),
            &format!("usr/lib/{gnu}/cmake/contigo/contigo-config.cmake"),
            "usr/lib/python3/dist-packages/contigo/_contigo.abi3.so",
            "usr/lib/python3/dist-packages/contigo-9.8.7.dist-info/METADATA",
            "usr/lib/sysusers.d/contigo.conf",
            "usr/lib/udev/rules.d/60-contigo.rules",
            "usr/share/contigo/overlays/pynq-z2.dtbo",
            "usr/share/man/man1/contigo.1",
            "usr/src/contigo-0.1.0/contigo_node.c",
            "usr/src/contigo-0.1.0/LICENSE-GPL-2.0",
        ] {
            assert!(files.contains_key(path), "{path} is not in {:?}", files.keys());
        }
        let pc = String::from_utf8_lossy(&files[&format!("usr/lib/{gnu}/pkgconfig/contigo.pc")]);
        for line in ["prefix=/usr\n", &format!("/lib/{gnu}\n"), "Version: 9.8.7"] {
            assert!(pc.contains(line), "{line} is not in {pc}");
        }
        // pip leaves alone what has no list of its files.
        assert!(!files.keys().any(|path| path.ends_with("/RECORD")));
    }
    Ok(())
}

fn nothing_left(machine: &Machine) -> Outcome {
    assert_eq!(fs::read_dir(machine.path("sources/target/contigo-packages"))?.count(), 0);
    Ok(())
}

#[test]
fn missing_licence_is_named_nothing_left() -> Outcome {
    let Some(machine) = machine("missing_licence_is_named_nothing_left")? else { return Ok(()) };
    fs::remove_file(machine.path("sources/LICENSE-MIT"))?;
    machine.cross(&["package"])?.failed_with(&["LICENSE-MIT"]);
    nothing_left(&machine)
}

#[test]
fn missing_tool_is_named_before_any_build() -> Outcome {
    let Some(machine) = machine("missing_tool_is_named_before_any_build")? else { return Ok(()) };
    let refused = |args: &[&str], said: &str| -> Outcome {
        machine.cross_with(args, &[DATE])?.failed_with(&[said]);
        assert!(!machine.path("sources/target").exists(), "{args:?}");
        Ok(())
    };
    refused(
        &["package", "--deb"],
        "dh is not installed: `apt install debhelper`, or `cargo cross setup --packages` for all \
         at once",
    )?;
    fs::remove_file(machine.path("bin/dtc"))?;
    refused(&["package"], "dtc is not installed: `apt install device-tree-compiler`")?;
    machine.program("bin/dtc", "")?;
    fs::remove_dir_all(machine.path("cache/maturin"))?;
    refused(&["package"], "maturin is not installed: `cargo cross setup --packages`")?;
    Ok(())
}

/// It stands in for debhelper: a package of its goal is a list of its environment, the changelog,
/// the needs, and the tree.
const DEBHELPER: &str = r#"while [ "$1" != --command ]; do [ "$1" != --host-arch ] || arch=$2; shift; done
[ -x "$2" ] || exit 1
version=$(sed -n '1s/contigo (\(.*\)).*/\1/p' debian/changelog)
pack() {
    exec 3>"$CONTIGO_OUT/$1_${version}_$2.deb"
    { echo "$SOURCE_DATE_EPOCH $DEB_RULES_REQUIRES_ROOT"; cat debian/changelog; } >&3
    [ ! -e debian/$1.needs ] || cat debian/$1.needs >&3
    (cd tree && echo *) >&3
}
case $3 in binary-indep) pack contigo-dkms all;; binary-arch) pack contigo $arch; pack libcontigo2 $arch;; esac"#;

/// A machine that can pack, with a debhelper; `None`: this one lacks a tool, and that is said.
fn machine_for_debs(test: &str) -> Result<Option<Machine>, Box<dyn Error>> {
    let Some(machine) = machine(test)? else { return Ok(None) };
    machine.program("bin/dh", "")?;
    machine.program("bin/dpkg-architecture", DEBHELPER)?;
    if machine.link(&["date"])? {
        return Ok(Some(machine));
    }
    contigo_testkit::skipped(&format!("package::{test}"), "date is not installed");
    Ok(None)
}

const DATE: (&str, &str) = ("SOURCE_DATE_EPOCH", "1700000000");

fn debs(machine: &Machine, args: &[&str]) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let run = machine.cross_with(&[&["package", "--deb", "--json"], args].concat(), &[DATE])?.ok();
    made(&run)?.into_iter().map(|(name, bytes)| Ok((name, String::from_utf8(bytes)?))).collect()
}

#[test]
fn debhelper_gets_date_version_and_needs() -> Outcome {
    let test = "debhelper_gets_date_version_and_needs";
    let Some(machine) = machine_for_debs(test)? else { return Ok(()) };
    let all = debs(&machine, &[])?;
    let mut names = vec!["contigo-dkms_9.8.7_all.deb".to_owned()];
    for package in ["contigo", "libcontigo2"] {
        names.extend(["amd64", "arm64", "armhf"].map(|cpu| format!("{package}_9.8.7_{cpu}.deb")));
    }
    assert_eq!(all.keys().cloned().collect::<Vec<_>>(), names);
    for (name, text) in &all {
        assert!(text.starts_with("1700000000 no\ncontigo (9.8.7) unstable"), "{text}");
        assert!(text.contains("Tue, 14 Nov 2023 22:13:20 +0000"), "{text}");
        assert!(text.ends_with("etc usr\n"), "{text}");
        let needs = text.contains("shlibs:Depends=libc6 (>= 2.25)");
        assert_eq!(needs, !name.contains("dkms"), "{text}");
    }
    // The same again, and a build of one's own.
    let armhf = "contigo_9.8.7_armhf.deb";
    assert_eq!(debs(&machine, &["--board", "pynq-z2"])?[armhf], all[armhf]);
    let own = debs(&machine, &["--board", "zynq", "--deb-version", "9.8.7+board2"])?;
    let own = &own["contigo_9.8.7+board2_armhf.deb"];
    assert!(own.contains("contigo (9.8.7+board2) unstable"), "{own}");
    Ok(())
}

#[test]
fn a_date_that_is_missing_or_wrong_is_said() -> Outcome {
    let test = "a_date_that_is_missing_or_wrong_is_said";
    let Some(machine) = machine_for_debs(test)? else { return Ok(()) };
    let yesterday = [("SOURCE_DATE_EPOCH", "yesterday")];
    for (variables, said) in [
        (&[] as &[_], "git tells no date of these sources: set SOURCE_DATE_EPOCH"),
        (&yesterday, "SOURCE_DATE_EPOCH is \"yesterday\", and no number"),
    ] {
        machine.cross_with(&["package", "--deb"], variables)?.failed_with(&[said]);
    }
    for wrong in ["", "board", "1.0-1", "1 0", "1.0/2"] {
        let run = machine.cross(&["package", "--deb", "--deb-version", wrong])?;
        assert_eq!(run.status, Some(2), "{wrong}");
    }
    assert_eq!(machine.cross(&["package", "--deb-version", "1.0"])?.status, Some(2));
    Ok(())
}

#[test]
fn debhelper_that_fails_leaves_nothing() -> Outcome {
    let test = "debhelper_that_fails_leaves_nothing";
    let Some(machine) = machine_for_debs(test)? else { return Ok(()) };
    // The first of three processors succeeds.
    machine.program(
        "bin/dpkg-architecture",
        &format!("case $* in *arm64*) echo 'dh_install: error' >&2; exit 25;; esac\n{DEBHELPER}"),
    )?;
    machine
        .cross_with(&["package", "--deb"], &[DATE])?
        .failed_with(&["(exit status 25)", "dh_install: error"]);
    nothing_left(&machine)
}
