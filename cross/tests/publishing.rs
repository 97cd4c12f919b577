//! Published crates have their page and licences, every file has the workspace's version,
//! Buildroot's tree agrees with the sources, and the release script stops before it makes anything
//! wrong.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn manifest(folder: &Path) -> Table {
    fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap()
}

/// The workspace's crates that are published: folder and manifest, by name.
fn published() -> BTreeMap<String, (PathBuf, Table)> {
    let members = manifest(&root())["workspace"]["members"].as_array().unwrap().clone();
    let crates = members.iter().map(|member| root().join(member.as_str().unwrap()));
    let is_published = |manifest: &Table| {
        manifest["package"].get("publish").is_none_or(|publish| publish.as_bool() != Some(false))
    };
    let named = crates.map(|folder| {
        let manifest = manifest(&folder);
        (manifest["package"]["name"].as_str().unwrap().to_owned(), (folder, manifest))
    });
    named.filter(|(_, (_, manifest))| is_published(manifest)).collect()
}

#[test]
fn published_crates_have_page_and_licences() {
    let crates = published();
    assert!(crates.len() > 5, "all crates are found: {:?}", crates.keys());
    for (name, (folder, manifest)) in &crates {
        let package = &manifest["package"];
        assert_eq!(package["readme"].as_str(), Some("CRATE.md"), "{name}");
        let page = fs::read_to_string(folder.join("CRATE.md")).unwrap();
        assert!(page.starts_with(&format!("# {name}\n\n")), "{name}: CRATE.md has another title");
        // Nothing is beside it in a registry.
        assert!(!page.contains("]("), "{name}: a link of CRATE.md leads nowhere in a registry");
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let (own, whole) = (fs::read(folder.join(licence)), fs::read(root().join(licence)));
            assert_eq!(own.unwrap(), whole.unwrap(), "{name}: {licence}");
        }
        let words = |key: &str| package[key].as_array().unwrap().len();
        // The registry takes 1 to 5 of each.
        let few = ["keywords", "categories"].iter().all(|key| (1..=5).contains(&words(key)));
        assert!(few && words("include") > 2 && package["description"].as_str().is_some(), "{name}");
        // It is made of published ones.
        let Some(Value::Table(dependencies)) = manifest.get("dependencies") else { continue };
        for dependency in dependencies.keys().filter(|name| name.starts_with("contigo")) {
            assert!(crates.contains_key(dependency), "{name} needs {dependency}: not published");
        }
    }
}

/// Buildroot compares the licences beside each package's sources with these sums.
#[test]
fn buildroots_sums_of_licences_are_right() {
    let buildroot = root().join("cross/packaging/buildroot/package");
    for (package, sources) in
        [("contigo", "."), ("contigo-module", "kernel-helpers"), ("contigo-overlays", "boards")]
    {
        let file = buildroot.join(package).join(format!("{package}.hash"));
        let hashes = fs::read_to_string(file).unwrap();
        let lines: Vec<_> = hashes.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(!lines.is_empty(), "{package}");
        for line in lines {
            let [kind, sum, file] = line.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
            let digest = Sha256::digest(fs::read(root().join(sources).join(file)).unwrap());
            let is: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((kind, sum), ("sha256", is.as_str()), "{package}: {file}");
        }
    }
}

#[test]
fn buildroots_boards_have_overlays() {
    let buildroot = root().join("cross/packaging/buildroot");
    for (file, before) in [
        ("package/contigo-overlays/Config.in", "default "),
        ("configs/contigo.fragment", "BR2_PACKAGE_CONTIGO_OVERLAYS_BOARDS="),
    ] {
        let text = fs::read_to_string(buildroot.join(file)).unwrap();
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(before)).unwrap();
        let mut boards = line.split('"').nth(1).unwrap().split_whitespace().peekable();
        assert!(boards.peek().is_some(), "{file}");
        for board in boards {
            let overlay = root().join("boards").join(board).join("overlay.dtso");
            assert!(overlay.exists(), "{file}: {board} has no overlay");
        }
    }
}

fn copy(below: &str, to: &Path) {
    let from = root().join(below);
    if from.is_file() {
        fs::create_dir_all(to.join(below).parent().unwrap()).unwrap();
        fs::copy(from, to.join(below)).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        copy(&format!("{below}/{}", entry.unwrap().file_name().to_str().unwrap()), to);
    }
}

/// A tree with the files that say a version.
fn versioned() -> TempDir {
    let tree = TempDir::new().unwrap();
    for file in [
        "Cargo.toml",
        "CHANGELOG.md",
        "tests/fuzz/Cargo.toml",
        "bindings/python/Cargo.toml",
        "kernel-helpers/README.md",
        "docs/boards.md",
    ] {
        copy(file, tree.path());
    }
    copy("kernel-helpers/module/dkms.conf", tree.path());
    copy("cross/packaging", tree.path());
    tree
}

fn script(tree: &Path, name: &str, args: &[&str]) -> Output {
    Command::new("bash").arg(tree.join(name)).args(args).current_dir(tree).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_file_says_the_workspaces_version() {
    let output = script(&root(), "cross/packaging/versions", &[]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_version_that_differs_is_named() {
    let version = manifest(&root())["workspace"]["package"]["version"].as_str().unwrap().to_owned();
    let tree = versioned();
    // Each place, alone: its file, and the text around the version.
    let module = "cross/packaging/buildroot/package/contigo-module/contigo-module.mk";
    let places = [
        ("bindings/python/Cargo.toml", "version = \"", "\""),
        ("tests/fuzz/Cargo.toml", "version = \"", "\""),
        ("kernel-helpers/module/dkms.conf", "PACKAGE_VERSION=\"", "\""),
        ("kernel-helpers/README.md", "/usr/src/contigo-", ""),
        ("docs/boards.md", "dkms install contigo/", ""),
        (module, "CONTIGO_MODULE_VERSION = ", "\n"),
        ("Cargo.toml", "contigo-log = { path = \"tools/log\", version = \"", "\""),
    ];
    for (file, before, after) in places {
        let path = tree.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        let place = format!("{before}{version}{after}");
        assert!(text.contains(&place), "{file} has {place}");
        let other = format!("{before}9.9.9{after}");
        fs::write(&path, text.replacen(&place, &other, 1)).unwrap();
        let output = script(tree.path(), "cross/packaging/versions", &[]);
        let expected = format!("versions: {file} says 9.9.9, and Cargo.toml {version}\n");
        assert_eq!((output.status.code(), said(&output)), (Some(1), expected));
        fs::write(&path, text).unwrap();
    }
    // The changelog's heading is asked for at a release alone.
    assert!(script(tree.path(), "cross/packaging/versions", &[]).status.success());
    let release = |changelog: &str| {
        let text = format!("# Changelog\n\n## Unreleased\n\n{changelog}- A change.\n");
        fs::write(tree.path().join("CHANGELOG.md"), text).unwrap();
        script(tree.path(), "cross/packaging/versions", &["--release"])
    };
    let output = release("");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output).lines().count(), 2, "no heading, and a line left: {}", said(&output));
    assert!(release(&format!("## {version} (2026-12-01)\n\n")).status.success());
}

/// Runs git in `tree`. False where there is no git.
fn git(tree: &Path, args: &[&str]) -> bool {
    let who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    Command::new("git")
        .args(who)
        .args(args)
        .current_dir(tree)
        .output()
        .is_ok_and(|output| output.status.success())
}

#[test]
fn release_of_wrong_tree_says_what_to_do() {
    let tree = versioned();
    let committed = git(tree.path(), &["init", "-q"])
        && git(tree.path(), &["add", "-A"])
        && git(tree.path(), &["commit", "-qm", "All"]);
    if !committed {
        let test = "publishing::release_of_wrong_tree_says_what_to_do";
        return contigo_testkit::skipped(test, "git is not here");
    }
    let ends = |args: &[&str], code: i32, text: &str| {
        let output = script(tree.path(), "cross/packaging/release", args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(text), "{args:?}: {}", said(&output));
    };
    ends(&["--upload"], 2, "--upload is no option");
    ends(&["--only", "everything"], 2, "--only takes one of: source crates");
    ends(&["--out", "x"], 2, "--out goes with --make");
    ends(&["--make"], 1, "CHANGELOG.md has no heading");
    fs::write(tree.path().join("new"), "").unwrap();
    ends(&[], 1, "the tree is not clean; commit or remove these first:\n?? new");
    fs::remove_file(tree.path().join("new")).unwrap();

    let version = manifest(&root())["workspace"]["package"]["version"].as_str().unwrap().to_owned();
    fs::write(tree.path().join("CHANGELOG.md"), format!("# Changelog\n\n## {version}\n")).unwrap();
    fs::write(tree.path().join(".gitignore"), "/target\n").unwrap();
    assert!(git(tree.path(), &["add", "-A"]) && git(tree.path(), &["commit", "-qm", "Release"]));
    let tag = format!("v{version}");
    ends(&["--make"], 1, &format!("HEAD has no tag {tag}"));
    assert!(git(tree.path(), &["tag", &tag]));

    // The part that needs no tool is made twice, with equal bytes, and never over another.
    let made = |name: &str| {
        let out = tree.path().join("target").join(name);
        let args = ["--make", "--only", "source", "--out", out.to_str().unwrap()];
        let output = script(tree.path(), "cross/packaging/release", &args);
        assert!(output.status.success(), "{}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("Nothing was uploaded"));
        fs::read(out.join("SHA256SUMS")).unwrap()
    };
    assert_eq!(made("one"), made("two"));
    ends(&["--make", "--only", "source", "--out", "target/one"], 1, "is there already");
    let left = fs::read_dir(tree.path().join("target")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["one", "two"], "nothing half made is left");

    // A step that fails takes all of it away.
    let tools = tree.path().join("target/bin");
    fs::create_dir(&tools).unwrap();
    let full = "#!/bin/sh\necho 'gzip: write: No space left on device' >&2\nexit 1\n";
    fs::write(tools.join("gzip"), full).unwrap();
    fs::set_permissions(tools.join("gzip"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    let line = "cross/packaging/release --make --only source --out target/full";
    command.args(line.split(' ')).current_dir(tree.path()).env("PATH", path);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("nothing was kept; free on the disk"), "{}", said(&output));
    assert!(!tree.path().join("target/full").exists());
}
