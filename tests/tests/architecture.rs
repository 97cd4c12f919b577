//! `ARCHITECTURE.md` and the pages of the decisions are whole: each dependency has a reason, each
//! decision a page and a line in the list. The page of the picture stays short.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that panics has failed, which is its purpose")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// A page that has grown longer is no picture any more: its reasons belong to `docs/decisions`.
const MOST_LINES: usize = 200;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every `Cargo.toml` below `folder`, except in what Cargo and git made.
fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            manifests(&path, found);
        } else if name == "Cargo.toml" {
            found.push(path);
        }
    }
}

/// The dependencies that the text of a `Cargo.toml` names in any of its sections, without the
/// project's own crates and without a workspace's versions.
fn dependencies(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(section) = line.trim().strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies") && section != "workspace.dependencies";
            // `[dependencies.NAME]` is a section of its own.
            let (outer, name) = section.rsplit_once('.').unwrap_or_default();
            if outer.ends_with("dependencies") && outer != "workspace.dependencies" {
                found.insert(name.to_owned());
            }
        } else if inside && line.starts_with(|letter: char| letter.is_alphanumeric()) {
            found.insert(line.split(['.', '=', ' ']).next().unwrap().to_owned());
        }
    }
    found.retain(|name| name != "contigo" && !name.starts_with("contigo-"));
    found
}

/// The rows of the table of dependencies: each crate, and the folders that it is for.
fn reasons(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (_, section) = page.split_once("\n## Dependencies\n").unwrap();
    let mut found = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let folders: BTreeSet<_> = cells[2].split(", ").map(str::to_owned).collect();
        assert!(!cells[3].is_empty(), "a reason is missing: {row}");
        for name in cells[1].split('`').skip(1).step_by(2) {
            assert!(found.insert(name.to_owned(), folders.clone()).is_none(), "{name} has two rows");
        }
    }
    found
}

#[test]
fn each_dependency_has_its_reason() {
    let mut files = Vec::new();
    manifests(root(), &mut files);
    assert!(files.len() > 10, "all crates are found: {files:?}");
    let mut used = BTreeMap::<_, BTreeSet<_>>::new();
    for file in files.iter().filter(|file| *file != &root().join("Cargo.toml")) {
        let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
        for name in dependencies(&fs::read_to_string(file).unwrap()) {
            used.entry(name).or_default().insert(folder.to_owned());
        }
    }
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let said = reasons(&page);
    for name in used.keys().chain(said.keys()) {
        let (used, said) = (used.get(name), said.get(name));
        assert_eq!(used, said, "{name}: the first is what Cargo.toml files say, the second what ARCHITECTURE.md says");
    }
}

#[test]
fn the_picture_stays_short() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let lines = page.lines().count();
    assert!(lines <= MOST_LINES, "ARCHITECTURE.md has {lines} lines, and {MOST_LINES} at most");
}

#[test]
fn each_decision_has_a_page_and_a_line() {
    let folder = root().join("docs/decisions");
    let list = fs::read_to_string(folder.join("README.md")).unwrap();
    let mut numbers = BTreeMap::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        let number: u32 = name.split('-').next().unwrap().parse().unwrap_or_else(|_| panic!("{name} begins with no number"));
        assert!(text.starts_with(&format!("# {number}. ")), "{name} has another number in its title");
        assert_eq!(numbers.insert(number, name.clone()), None, "{name} has the number of another page");
        let parts: Vec<_> = ["Context.", "Decision.", "Cost.", "Kept by"].map(|part| text.find(&format!("\n\n**{part}**"))).into();
        assert!(parts.iter().all(Option::is_some) && parts.is_sorted(), "{name} has no context, decision, cost and keeper, in this order");
        let line = format!("- [{number}]({name}): ");
        assert_eq!(list.matches(&line).count(), 1, "the list has one line for each page: {line}");
    }
    assert!(numbers.len() > 50, "all pages are found: {}", numbers.len());
    assert_eq!(list.matches("\n- [").count(), numbers.len(), "the list names a page that is not there");
}

/// The pages: the picture, and those of the decisions.
fn pages() -> Vec<PathBuf> {
    let decisions = fs::read_dir(root().join("docs/decisions")).unwrap().map(|entry| entry.unwrap().path());
    decisions.chain([root().join("ARCHITECTURE.md")]).collect()
}

/// The words of every Rust source below `folder`.
fn words(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            words(&path, found);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.extend(text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned));
        }
    }
}

/// The names of the code in a page, `Type::method`, and its paths: of a file, or of a folder with
/// its slash.
fn named(page: &str) -> (Vec<&str>, Vec<&str>) {
    let quoted: Vec<_> = page.lines().filter(|line| !line.starts_with("```")).flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
    let is_name = |text: &&str| text.contains("::") && text.chars().all(|letter| letter.is_alphanumeric() || "_:".contains(letter));
    let is_path = |text: &&str| {
        (text.ends_with(".rs") || text.ends_with('/'))
            && text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-/.".contains(letter))
    };
    (quoted.iter().copied().filter(is_name).collect(), quoted.iter().copied().filter(is_path).collect())
}

#[test]
fn each_name_and_each_path_is_there() {
    let mut known = BTreeSet::new();
    words(root(), &mut known);
    let (mut names, mut paths) = (0, 0);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (of_code, of_files) = named(&text);
        (names, paths) = (names + of_code.len(), paths + of_files.len());
        for name in of_code {
            assert!(name.split("::").all(|word| known.contains(word)), "{}: the code has no {name}", page.display());
        }
        for path in of_files {
            let places = ["", "runtime", "runtime/src", "runtime/src/mem", "tests/tests", "tests/tests/cuda"];
            assert!(places.iter().any(|place| root().join(place).join(path).exists()), "{}: there is no {path}", page.display());
        }
    }
    assert!(names > 40 && paths > 100, "they are found: {names} names, {paths} paths");
}

#[test]
fn the_reading_itself_is_right() {
    let (names, paths) = named("`a::b` and `c` in `d/e.rs`, `f/`, [`g.rs`](../g.rs), `h i.rs`, `/dev/uioN`\n```text\n");
    assert_eq!((names, paths), (vec!["a::b"], vec!["d/e.rs", "f/", "g.rs"]));
    let text = "[package]\nname = \"x\"\n[dependencies]\n# a = 1\nb.workspace = true\nc = { version = \"1\" }\ncontigo-x = \"1\"\n\
                [target.'cfg(unix)'.dev-dependencies]\nd=\"1\"\n[build-dependencies.e]\nversion = \"1\"\n[features]\nf = []\n\
                [workspace.dependencies]\ng = \"1\"\n";
    assert_eq!(dependencies(text), ["b", "c", "d", "e"].map(str::to_owned).into());
    let page = "x\n## Dependencies\n\n| crates | in | reason |\n|---|---|---|\n| `a`, `b` | one, two | why |\n";
    let folders: BTreeSet<_> = ["one", "two"].map(str::to_owned).into();
    assert_eq!(reasons(page), [("a".to_owned(), folders.clone()), ("b".to_owned(), folders)].into());
}
