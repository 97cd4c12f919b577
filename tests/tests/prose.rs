//! The prose of the repository is easy to read: documents, comments, help texts and messages.
//!
//! Three rules: a line of prose has 100 columns (`columns`), no sentence has a "What …" clause as
//! its subject (`subject`), and a sentence has 30 words (`long`). `prose/exceptions.txt` counts the
//! places of each file that still break a rule, and it only shrinks: `CONTIGO_PROSE=shrink`
//! rewrites it. `CONTIGO_PROSE=list` lists every place, also of another tree at
//! `CONTIGO_PROSE_ROOT`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]

#[path = "prose/extract.rs"]
mod extract;
#[path = "prose/sentences.rs"]
mod sentences;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{self, Write},
    path::Path,
};

const RULES: [&str; 3] = ["columns", "subject", "long"];
const COLUMNS: usize = 100;
const WORDS: usize = 30;
const COMMAND: &str = "CONTIGO_PROSE=shrink cargo test --package contigo-tests --test prose";
const LEFT_OUT: [(&str, &str); 8] = [
    ("capi/include/contigo.h", "made from capi/src by cbindgen"),
    ("docs/examples/xcopy_hw.h", "in the form that Vitis HLS writes"),
    ("fuzz/corpus", "made by the fuzzer"),
    ("fuzz/seeds", "bytes, not text"),
    ("gpu-report", "made by tests/gpu/run"),
    ("python/target", "made by Cargo"),
    ("target", "made by Cargo"),
    ("tests/tests/ap_ctrl/xfilter_hw.h", "as Vitis HLS writes it"),
];

/// The counts of a file, in the order of `RULES`.
type Counts = [usize; 3];
/// The rule that a place breaks, its line, and its text.
type Place = (usize, usize, String);

fn places(text: &str, syntax: extract::Syntax) -> Vec<Place> {
    let mut found = Vec::new();
    let mut wide = BTreeSet::new();
    for piece in extract::pieces(text, syntax) {
        for paragraph in sentences::paragraphs(&piece.lines) {
            wide.extend(paragraph.iter().map(|(line, _)| *line).filter(|line| *line >= piece.own));
            for sentence in sentences::sentences(&paragraph) {
                let broken = [false, sentence.has_clause_as_subject(), sentence.words > WORDS];
                found.extend((0..3).filter(|rule| broken[*rule]).map(|rule| (rule, sentence.line, sentence.text.clone())));
            }
        }
    }
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line, line.trim_start_matches(['/', '#', '!', '*', ' '])));
    // A table's row, and an address alone, are as wide as they need.
    let lines = lines.filter(|(_, _, prose)| !prose.starts_with('|') && (prose.contains(' ') || !prose.contains("://")));
    let lines = lines.filter(|(at, line, _)| wide.contains(at) && line.chars().count() > COLUMNS);
    found.extend(lines.map(|(at, line, _)| (0, at, line.trim().to_owned())));
    found
}

/// The places of every file below `folder`, by the file's path from `root`.
fn read(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<Place>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let hidden = name.starts_with('.') && ![".ci", ".github", ".cargo"].iter().any(|folder| name.starts_with(folder));
        if hidden || path.is_symlink() || LEFT_OUT.iter().any(|(left_out, _)| *left_out == name) {
            continue;
        } else if path.is_dir() {
            read(root, &path, found);
        } else if let Some(text) = fs::read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok())
            && let Some(syntax) = extract::syntax(&path, &text)
        {
            found.insert(name, places(&text, syntax));
        }
    }
}

fn listed(text: &str) -> BTreeMap<String, Counts> {
    let mut list = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut row = line.split_whitespace();
        let name = row.next().unwrap().to_owned();
        let counts: Counts = [(); 3].map(|()| row.next().unwrap().parse().unwrap());
        // After a merge (.gitattributes) a file may have two lines.
        let least: &mut Counts = list.entry(name).or_insert(counts);
        *least = [0, 1, 2].map(|rule| least[rule].min(counts[rule]));
    }
    list
}

/// The list as it may become: no file's count rises, and a new file's are at the cost of others.
fn shrunk(list: &BTreeMap<String, Counts>, now: &BTreeMap<String, Counts>) -> BTreeMap<String, Counts> {
    let least = |name: &String, now: &Counts| list.get(name).map_or(*now, |before| [0, 1, 2].map(|rule| before[rule].min(now[rule])));
    let new: BTreeMap<_, _> = now.iter().map(|(name, now)| (name.clone(), least(name, now))).filter(|(_, now)| *now != [0; 3]).collect();
    let sums = [list, &new].map(|list| [0, 1, 2].map(|rule| list.values().map(|counts| counts[rule]).sum::<usize>()));
    assert!((0..3).all(|rule| sums[1][rule] <= sums[0][rule]), "new files break rules: {:?} were listed, now {:?}", sums[0], sums[1]);
    new
}

#[test]
fn prose_is_easy_to_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let root = env::var_os("CONTIGO_PROSE_ROOT").map_or(root.to_owned(), Into::into);
    let file = root.join("tests/tests/prose/exceptions.txt");
    let mode = env::var("CONTIGO_PROSE").unwrap_or_default();
    let mut found = BTreeMap::new();
    read(&root, &root, &mut found);
    let count = |places: &Vec<Place>| [0, 1, 2].map(|rule| places.iter().filter(|place| place.0 == rule).count());
    let counts: BTreeMap<String, Counts> = found.iter().map(|(name, places)| (name.clone(), count(places))).collect();
    if mode == "list" {
        let line = |name, (rule, line, text): &Place| format!("{name}:{line}: {}: {text}\n", RULES[*rule]);
        let places: String = found.iter().flat_map(|(name, places)| places.iter().map(move |place| line(name, place))).collect();
        let sums = [0, 1, 2].map(|rule| format!("{} {}", counts.values().map(|counts| counts[rule]).sum::<usize>(), RULES[rule]));
        return writeln!(io::stdout(), "{places}{} files: {}", counts.len(), sums.join(", ")).unwrap();
    }
    let text = fs::read_to_string(&file).unwrap_or_default();
    let mut list = listed(&text);
    if mode == "shrink" {
        list = shrunk(&list, &counts);
        let head = text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n"));
        let rows = list.iter().map(|(name, [columns, subject, long])| format!("{name} {columns} {subject} {long}\n"));
        fs::write(&file, head.chain(rows).collect::<String>()).unwrap();
    }
    let mut wrong = String::new();
    let mut better = BTreeSet::new();
    for name in counts.keys().chain(list.keys()).collect::<BTreeSet<_>>() {
        let [now, allowed] = [&counts, &list].map(|counts| counts.get(name).copied().unwrap_or_default());
        for rule in 0..3 {
            if now[rule] < allowed[rule] {
                better.insert(name.as_str());
            } else if now[rule] > allowed[rule] {
                wrong += &format!("{name}: {} places, {} are listed:\n", now[rule], allowed[rule]);
                let places = found[name].iter().filter(|place| place.0 == rule);
                wrong.extend(places.map(|(_, line, text)| format!("{name}:{line}: {}: {text}\n", RULES[rule])));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{wrong}\nA line of prose has at most {COLUMNS} columns. A sentence begins with its subject, never with \
         a \"What …\" clause, and has at most {WORDS} words. CONTIGO_PROSE=list \
         lists every place. Where a file was only moved: {COMMAND}"
    );
    assert!(better.is_empty(), "{better:?} are better than prose/exceptions.txt says. This rewrites it: {COMMAND}");
}

#[test]
fn a_list_of_exceptions_only_shrinks() {
    let moved = shrunk(&listed("a.rs 1 2 3\ngone.rs 0 4 0"), &listed("a.rs 2 1 3\nnew.rs 0 3 0"));
    assert_eq!(moved, listed("a.rs 1 2 3\nnew.rs 0 3 0\na.rs 4 1 3"));
    assert!(std::panic::catch_unwind(|| shrunk(&listed("a.rs 1 0 0"), &listed("a.rs 1 0 0\nb.rs 1 0 0"))).is_err());
}
