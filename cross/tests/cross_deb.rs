//! `cargo cross package --deb`: debhelper gets what it needs, and a run that fails leaves nothing.
//! A script stands in for debhelper, and its packages are lists of what it was given.
#![allow(
    clippy::indexing_slicing,
    reason = "a JSON value answers an absent key with null, and an assertion then fails"
)]

mod cross_machine;

use contigo_testkit::emulated;
use cross_machine::{AARCH64, ARMV7, Machine, Outcome, X86_64, program};
use std::{collections::BTreeMap, error::Error, fs};

/// Lists its environment, the changelog, the needs, and the tree, for each package of its goal.
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

/// A machine that packs one processor or all; `None`: this one lacks a tool, and that is said.
fn machine(test: &str) -> Result<Option<Machine>, Box<dyn Error>> {
    let machine = Machine::new()?;
    machine.with_zigbuild()?;
    machine.with_std(&[ARMV7.0, AARCH64.0, X86_64.0])?;
    for (triple, number) in [ARMV7, AARCH64, X86_64] {
        machine.builds(&format!("{triple}.2.27"), &program(number, Some("GLIBC_2.25"), true))?;
    }
    machine.program("bin/dh", "")?;
    machine.program("bin/dpkg-architecture", DEBHELPER)?;
    if machine.with_sources()? && machine.link(&["date"])? {
        return Ok(Some(machine));
    }
    emulated::skipped(
        &format!("cross_deb::{test}"),
        "make, dtc, readelf or python3 is not installed",
    );
    Ok(None)
}

const DATE: (&str, &str) = ("SOURCE_DATE_EPOCH", "1700000000");

/// The packages of one run, by their names.
fn packages(machine: &Machine, args: &[&str]) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let run = machine.cross_with(&[&["package", "--deb", "--json"], args].concat(), &[DATE])?;
    assert_eq!(run.status, Some(0), "{run:?}");
    let mut packages = BTreeMap::new();
    for entry in run.json()?.as_array().ok_or("no list")? {
        let file = entry["package"].as_str().ok_or("no path")?;
        packages.insert(
            file.rsplit('/').next().unwrap_or_default().to_owned(),
            fs::read_to_string(file)?,
        );
    }
    Ok(packages)
}

#[test]
fn debhelper_gets_the_date_the_version_and_the_needs() -> Outcome {
    let Some(machine) = machine("debhelper_gets_the_date_the_version_and_the_needs")? else {
        return Ok(());
    };
    let all = packages(&machine, &[])?;
    let names = [
        "contigo-dkms_9.8.7_all.deb",
        "contigo_9.8.7_amd64.deb",
        "contigo_9.8.7_arm64.deb",
        "contigo_9.8.7_armhf.deb",
        "libcontigo2_9.8.7_amd64.deb",
        "libcontigo2_9.8.7_arm64.deb",
        "libcontigo2_9.8.7_armhf.deb",
    ];
    assert_eq!(all.keys().collect::<Vec<_>>(), names);
    for (name, text) in &all {
        assert!(text.starts_with("1700000000 no\ncontigo (9.8.7) unstable"), "{text}");
        assert!(
            text.contains("Tue, 14 Nov 2023 22:13:20 +0000") && text.ends_with("etc usr\n"),
            "{text}"
        );
        assert_eq!(
            text.contains("shlibs:Depends=libc6 (>= 2.25)"),
            !name.contains("dkms"),
            "{text}"
        );
    }
    // The same again, and a build of one's own.
    assert_eq!(
        packages(&machine, &["--board", "pynq-z2"])?["contigo_9.8.7_armhf.deb"],
        all["contigo_9.8.7_armhf.deb"]
    );
    let own = packages(&machine, &["--board", "zynq", "--deb-version", "9.8.7+board2"])?;
    assert!(
        own["contigo_9.8.7+board2_armhf.deb"].contains("contigo (9.8.7+board2) unstable"),
        "{own:?}"
    );
    Ok(())
}

#[test]
fn a_date_that_is_missing_or_wrong_is_said() -> Outcome {
    let Some(machine) = machine("a_date_that_is_missing_or_wrong_is_said")? else { return Ok(()) };
    for (variables, said) in [
        (&[] as &[_], "git tells no date of these sources: set SOURCE_DATE_EPOCH"),
        (
            &[("SOURCE_DATE_EPOCH", "yesterday")],
            "SOURCE_DATE_EPOCH is \"yesterday\", and no number",
        ),
    ] {
        let run = machine.cross_with(&["package", "--deb"], variables)?;
        assert!(run.status == Some(1) && run.stderr.contains(said), "{said}: {run:?}");
    }
    for wrong in ["", "board", "1.0-1", "1 0", "1.0/2"] {
        assert_eq!(
            machine.cross(&["package", "--deb", "--deb-version", wrong])?.status,
            Some(2),
            "{wrong}"
        );
    }
    assert_eq!(machine.cross(&["package", "--deb-version", "1.0"])?.status, Some(2));
    Ok(())
}

#[test]
fn debhelper_that_fails_leaves_nothing() -> Outcome {
    let Some(machine) = machine("debhelper_that_fails_leaves_nothing")? else { return Ok(()) };
    // The first of three processors succeeds.
    machine.program(
        "bin/dpkg-architecture",
        &format!("case $* in *arm64*) echo 'dh_install: error' >&2; exit 25;; esac\n{DEBHELPER}"),
    )?;
    let run = machine.cross_with(&["package", "--deb"], &[DATE])?;
    assert!(
        run.status == Some(1)
            && run.stderr.contains("(exit status 25)")
            && run.stderr.contains("dh_install: error"),
        "{run:?}"
    );
    assert_eq!(fs::read_dir(machine.path("sources/target/contigo-packages"))?.count(), 0);
    Ok(())
}
