//! `cross/packaging/buildroot` and `cross/packaging/yocto` say what the sources say: crates and
//! checksums, licences, boards with overlays. `cross/packaging/check` has their own linters.
//!
//! `CONTIGO_WRITE_CRATES=1 cargo test -p contigo-cross --test firmware` writes the list of crates
//! anew, after a change of `Cargo.lock`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use sha2::{Digest, Sha256};
use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};
use toml::Table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// bitbake fetches each crate by itself, and compares it with this sum.
fn crates(lock: &str) -> String {
    let lock: Table = lock.parse().unwrap();
    let foreign = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| package.get("source").is_some());
    let (mut uris, mut sums) = (Vec::new(), String::new());
    for package in foreign {
        let text = |key: &str| package[key].as_str().unwrap();
        uris.push(format!("crate://crates.io/{}/{} \\\n", text("name"), text("version")));
        writeln!(
            sums,
            "SRC_URI[{}-{}.sha256sum] = \"{}\"",
            text("name"),
            text("version"),
            text("checksum")
        )
        .unwrap();
    }
    format!(
        "# Made from Cargo.lock: cross/tests/firmware.rs.\n\nSRC_URI += \"{}\"\n\n{sums}",
        uris.join("            ")
    )
}

#[test]
fn yoctos_list_of_crates_is_that_of_the_lock_file() {
    const LIST: &str =
        "cross/packaging/yocto/meta-contigo/recipes-contigo/contigo/contigo-crates.inc";
    let made = crates(&read("Cargo.lock"));
    if env::var_os("CONTIGO_WRITE_CRATES").is_some() {
        fs::write(root().join(LIST), &made).unwrap();
    }
    assert!(
        made == read(LIST),
        "{LIST} is old: CONTIGO_WRITE_CRATES=1 cargo test -p contigo-cross --test firmware"
    );
}

#[test]
fn buildroots_sums_of_licences_are_right() {
    // Each package's licences are beside its sources.
    for (package, sources) in
        [("contigo", "."), ("contigo-module", "kernel-helpers"), ("contigo-overlays", "boards")]
    {
        let hashes = read(&format!("cross/packaging/buildroot/package/{package}/{package}.hash"));
        let lines: Vec<_> = hashes.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(!lines.is_empty(), "{package}");
        for line in lines {
            let [kind, sum, file] = line.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
            let bytes = fs::read(root().join(sources).join(file)).unwrap();
            let is = Sha256::digest(&bytes)
                .iter()
                .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            assert_eq!((kind, sum), ("sha256", is.as_str()), "{package}: {file}");
        }
    }
}

#[test]
fn the_boards_that_are_named_have_overlays() {
    let named = |file: &str, before: &str| {
        let text = read(file);
        let line = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(before))
            .unwrap_or_else(|| panic!("{file} has no {before}"));
        line.split('"').nth(1).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let buildroot = "cross/packaging/buildroot";
    for (file, before) in [
        (format!("{buildroot}/package/contigo-overlays/Config.in"), "default "),
        (format!("{buildroot}/configs/contigo.fragment"), "BR2_PACKAGE_CONTIGO_OVERLAYS_BOARDS="),
        (
            "cross/packaging/yocto/meta-contigo/recipes-contigo/contigo.inc".to_owned(),
            "CONTIGO_BOARDS ?= ",
        ),
    ] {
        let boards = named(&file, before);
        assert!(!boards.is_empty(), "{file}");
        for board in boards {
            assert!(
                root().join(format!("boards/{board}/overlay.dtso")).exists(),
                "{file}: {board} has no overlay"
            );
        }
    }
}

#[test]
fn both_trees_install_files_that_are_there() {
    let texts = [
        read("cross/packaging/buildroot/package/contigo/contigo.mk"),
        read("cross/packaging/yocto/meta-contigo/recipes-contigo/contigo/contigo_0.1.0.bb"),
    ];
    for text in texts {
        assert!(
            text.contains("kernel-helpers/udev/60-contigo.rules")
                && root().join("kernel-helpers/udev/60-contigo.rules").exists()
        );
        // The group of the rules is the one that sysusers.d makes.
        assert!(
            read("kernel-helpers/sysusers.d/contigo.conf").contains("\ng dma ")
                && text.contains(" dma")
        );
    }
}
