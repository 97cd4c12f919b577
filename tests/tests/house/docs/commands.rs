//! Commands name what exists: packages, tests, scripts, files. The tools' own options are tried by
//! `tools/contigo/tests/docs.rs`, `cross/tests/docs.rs` and `cross/lab/tests/docs.rs`.

use super::markdown::{Page, arguments, commands, files, known, pages, root};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Programs of the system.
const SYSTEM: [&str; 41] = [
    "bootgen",
    "cat",
    "cc",
    "cd",
    "cp",
    "dkms",
    "dmesg",
    "dtc",
    "echo",
    "fdt",
    "fdtoverlay",
    "grep",
    "groupadd",
    "groupdel",
    "insmod",
    "install",
    "ldconfig",
    "load",
    "ls",
    "maturin",
    "mkdir",
    "modinfo",
    "modprobe",
    "mokutil",
    "nsys",
    "pip",
    "python",
    "rm",
    "rmdir",
    "rmmod",
    "rustup",
    "scp",
    "systemctl",
    "systemd-sysusers",
    "tar",
    "udevadm",
    "usermod",
    "sudo",
    "apt-get",
    "./kernel",
    "contigo-gpu/run",
];

/// The repository, as far as a command names it.
struct Tree {
    root: PathBuf,
    manifests: Vec<(String, String)>,
    aliases: String,
}

impl Tree {
    fn package(&self, name: &str) -> Option<&str> {
        let line = format!("name = \"{name}\"");
        self.manifests
            .iter()
            .find(|(_, text)| text.lines().any(|text| text == line))
            .map(|(path, _)| path.trim_end_matches("Cargo.toml"))
    }

    /// Why the command cannot run.
    fn wrong(&self, page: &Page, words: &[String]) -> Option<String> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let files = words.iter().find_map(|word| self.missing_file(page, word));
        let program = match word(0) {
            "cargo" => self.cargo(words),
            "make" => self.make(page, words),
            program if arguments(words, "contigo").is_some() || SYSTEM.contains(&program) => None,
            program => self.script(program, words.get(1..).unwrap_or_default()),
        };
        program.or(files)
    }

    fn cargo(&self, words: &[String]) -> Option<String> {
        let words: Vec<&str> = words
            .iter()
            .skip(1)
            .map(String::as_str)
            .skip_while(|word| word.starts_with('+'))
            .collect();
        let verb = words.first().copied().unwrap_or("");
        if self.aliases.lines().any(|line| line.starts_with(&format!("{verb} = "))) {
            return None;
        }
        let value = |names: [&str; 2]| {
            words
                .iter()
                .position(|word| names.contains(word))
                .and_then(|at| words.get(at + 1).copied())
        };
        if verb == "fuzz" {
            let name = words.get(2).copied().unwrap_or("");
            return (!self.root.join(format!("tests/fuzz/fuzz_targets/{name}.rs")).exists())
                .then(|| format!("there is no fuzz target {name}"));
        }
        if let Some(name) = value(["--package", "-p"]) {
            let Some(folder) = self.package(name) else {
                return Some(format!("there is no package {name}"));
            };
            let test = value(["--test", "--bench"]).unwrap_or("");
            let of =
                |folder: &str| ["tests", "benches"].map(|kind| format!("{folder}{kind}/{test}"));
            let there = of(folder).iter().any(|path| {
                self.root.join(format!("{path}.rs")).exists()
                    || self.root.join(path).join("main.rs").exists()
            });
            if !test.is_empty() && !there {
                return Some(format!("{name} has no test {test}"));
            }
        }
        let profiles = self
            .manifests
            .iter()
            .find(|(path, _)| path == "Cargo.toml")
            .map_or("", |(_, text)| text);
        match value(["--profile", "--profile"]) {
            Some(profile) if !profiles.contains(&format!("[profile.{profile}]")) => {
                return Some(format!("there is no profile {profile}"));
            }
            _ => {}
        }
        let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let options =
            if verb == "install" { Ok(()) } else { known(Path::new(env!("CARGO")), &args) };
        options.err()
    }

    fn make(&self, page: &Page, words: &[String]) -> Option<String> {
        let at = words.iter().position(|word| word == "-C")?;
        let folder = words.get(at + 1)?;
        let found = self
            .places(page, folder)
            .into_iter()
            .find_map(|place| fs::read_to_string(place.join("Makefile")).ok());
        let Some(text) = found else {
            return (folder != "<tree>" && !folder.starts_with('/'))
                .then(|| format!("{folder} has no Makefile"));
        };
        let rest = words.get(at + 2..).unwrap_or_default();
        let unknown = rest.iter().find(|word| match word.split_once('=') {
            Some((name, _)) => {
                !text.contains(name)
                    && !["ARCH", "CROSS_COMPILE", "DESTDIR", "INSTALL_MOD_PATH"].contains(&name)
            }
            None => !text.lines().any(|line| {
                line.starts_with(&format!("{word}:"))
                    || line.starts_with(".PHONY")
                        && line.split_whitespace().any(|target| target == word.as_str())
            }),
        });
        unknown.map(|word| format!("the Makefile of {folder} has no {word}"))
    }

    /// A script of this repository, with options that its text has.
    fn script(&self, program: &str, args: &[String]) -> Option<String> {
        let Ok(text) = fs::read_to_string(self.root.join(program)) else {
            return Some(format!("{program} is no program that this test knows"));
        };
        let unknown = args.iter().find(|arg| arg.starts_with("--") && !text.contains(arg.as_str()));
        unknown.map(|arg| format!("{program} has no option {arg}"))
    }

    /// A path relative to the root, or to the page.
    fn places(&self, page: &Page, path: &str) -> [PathBuf; 2] {
        let beside = self.root.join(&page.path);
        [self.root.join(path), beside.parent().unwrap_or(&self.root).join(path)]
    }

    /// A word that is a file of this repository by its look, and is not there.
    fn missing_file(&self, page: &Page, word: &str) -> Option<String> {
        let made = ["target/", "bindings/python/target/", "tests/fuzz/artifacts/", "contigo-gpu/"]
            .iter()
            .any(|folder| word.starts_with(folder));
        let top = word.split('/').next().filter(|top| {
            word.contains('/')
                && !top.starts_with('.')
                && !top.is_empty()
                && self.root.join(top).is_dir()
        })?;
        let board = top == "boards" && word.contains("acme");
        let there = self.places(page, word).iter().any(|place| place.exists());
        (!made && !board && !there && !word.contains(['*', '…', '=']))
            .then(|| format!("there is no {word}"))
    }
}

#[test]
fn commands_name_what_exists() {
    if let Some(why) = contigo_testkit::emulated::why() {
        return contigo_testkit::emulated::skipped(
            "docs::commands::commands_name_what_exists",
            &why,
        );
    }
    let root = root(env!("CARGO_MANIFEST_DIR"), 1);
    let read = |path: String| (fs::read_to_string(root.join(&path)).unwrap_or_default(), path);
    let manifests =
        files(&root, &["toml"]).into_iter().filter(|path| path.ends_with("Cargo.toml")).map(read);
    let manifests = manifests.map(|(text, path)| (path, text)).collect();
    let aliases = fs::read_to_string(root.join(".cargo/config.toml")).unwrap();
    let tree = Tree { root: root.clone(), manifests, aliases };
    let (mut tried, mut wrong) = (0, BTreeSet::new());
    for page in pages(&root).iter().filter(|page| page.path != "CHANGELOG.md") {
        for (line, words) in commands(page) {
            tried += 1;
            wrong.extend(
                tree.wrong(page, &words)
                    .map(|why| format!("{}:{line}: {}: {why}", page.path, words.join(" "))),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(tried > 80, "{tried} commands");
}
