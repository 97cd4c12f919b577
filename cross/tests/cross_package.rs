//! `cargo cross package`: the same sources give the same bytes, and the manifest tells the truth
//! about them.
#![allow(clippy::indexing_slicing, reason = "a JSON value answers an absent key with null, and an assertion then says so")]

mod cross_machine;

use cross_machine::{AARCH64, ARMV7, Machine, Outcome, program};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, error::Error, fs, io::Read};
use tar::Archive;

fn machine() -> Result<Machine, Box<dyn Error>> {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0, AARCH64.0])?;
    for (triple, number) in [ARMV7, AARCH64] {
        machine.builds(&format!("{triple}.2.27"), &program(number, Some("GLIBC_2.25"), true))?;
    }
    Ok(machine)
}

/// The packages of one run, by their names.
fn packages(machine: &Machine) -> Result<BTreeMap<String, Vec<u8>>, Box<dyn Error>> {
    let run = machine.cross(&["package", "--json"])?;
    assert_eq!(run.status, Some(0), "{run:?}");
    let mut packages = BTreeMap::new();
    for entry in run.json()?.as_array().ok_or("no list")? {
        let file = entry["package"].as_str().ok_or("no path")?;
        let bytes = fs::read(file)?;
        assert_eq!((&entry["size_bytes"], &entry["sha256"]), (&bytes.len().into(), &sum(&bytes).into()), "{file}");
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
    let (one, other) = (machine()?, machine()?);
    let first = packages(&one)?;
    std::thread::sleep(std::time::Duration::from_millis(1100));
    fs::write(one.path("sources/README.md"), fs::read(other.path("sources/README.md"))?)?;
    assert_eq!(first, packages(&one)?);
    assert_eq!(first, packages(&other)?);
    let names = ["contigo-9.8.7-aarch64-unknown-linux-gnu.tar.gz", "contigo-9.8.7-armv7-unknown-linux-gnueabihf.tar.gz"];
    assert_eq!(first.keys().collect::<Vec<_>>(), names);
    // And other sources give others.
    fs::write(other.path("sources/README.md"), "another text\n")?;
    assert_ne!(first, packages(&other)?);
    Ok(())
}

#[test]
fn the_manifest_has_every_file_with_its_sum() -> Outcome {
    let machine = machine()?;
    for (name, bytes) in packages(&machine)? {
        let folder = name.strip_suffix(".tar.gz").ok_or("no .tar.gz")?;
        let mut files = BTreeMap::new();
        let mut order = Vec::new();
        for member in Archive::new(GzDecoder::new(bytes.as_slice())).entries()? {
            let mut member = member?;
            let path = member.path()?.to_str().and_then(|path| path.strip_prefix(folder)?.strip_prefix('/')).ok_or("outside")?.to_owned();
            let header = member.header();
            assert_eq!((header.uid()?, header.gid()?, header.mtime()?), (0, 0, 1), "{path}");
            assert_eq!(header.mode()?, if path.starts_with("bin/") { 0o755 } else { 0o644 }, "{path}");
            let mut content = Vec::new();
            member.read_to_end(&mut content)?;
            order.push(path.clone());
            files.insert(path, content);
        }
        assert!(order.is_sorted(), "{order:?}");
        let manifest: Value = serde_json::from_slice(&files.remove("MANIFEST.json").ok_or("no manifest")?)?;
        assert_eq!((&manifest["version"], &manifest["glibc"]), (&"9.8.7".into(), &"2.25".into()));
        let listed = manifest["files"]
            .as_array()
            .ok_or("no list")?
            .iter()
            .map(|file| Some((file["path"].as_str()?.to_owned(), (file["size_bytes"].as_u64()?, file["sha256"].as_str()?.to_owned()))));
        let listed: BTreeMap<_, _> = listed.collect::<Option<_>>().ok_or("a field is missing")?;
        let there: BTreeMap<_, _> = files.iter().map(|(path, content)| (path.clone(), (content.len() as u64, sum(content)))).collect();
        assert_eq!(listed, there);
        let names = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "bin/contigo", "bin/contigo-board-tests"];
        assert_eq!(files.keys().collect::<Vec<_>>(), names);
    }
    Ok(())
}

#[test]
fn a_paper_that_is_missing_is_named_and_no_package_is_left() -> Outcome {
    let machine = machine()?;
    fs::remove_file(machine.path("sources/LICENSE-MIT"))?;
    let run = machine.cross(&["package"])?;
    assert!(run.status == Some(1) && run.stderr.contains("LICENSE-MIT"), "{run:?}");
    assert_eq!(fs::read_dir(machine.path("sources/target/contigo-packages"))?.count(), 0);
    Ok(())
}
