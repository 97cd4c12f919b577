//! The inputs that a fuzzer found worth keeping, and those that people thought of, imported again;
//! and the inputs near them. `tests/fuzz/` has the fuzzer.

use contigo::Error;
use contigo::types::TensorRule;
use contigo_testkit::emulated;
use contigo_testkit::fuzz_dlpack::{Case, Outcome, Rig, Want, seeds};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rules that can refuse an import: all of `TensorRule` except for `Flags`, which belongs to
/// the lender, and `Address`, which 64 bits cannot break.
const RULES: [TensorRule; 12] = [
    TensorRule::NullTensor,
    TensorRule::MajorVersion,
    TensorRule::Dims,
    TensorRule::NullShape,
    TensorRule::Dimension,
    TensorRule::Size,
    TensorRule::Type,
    TensorRule::Lanes,
    TensorRule::NullData,
    TensorRule::Strides,
    TensorRule::DeviceType,
    TensorRule::Alignment,
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name).join("dlpack_import")
}

/// Every file of a folder, in the order of their names.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// Counts what came of a case, in words.
fn tally(counts: &mut BTreeMap<String, usize>, outcome: &Outcome) {
    let mut words = vec![match outcome.import {
        Ok((_, 0)) => "taken, empty".to_owned(),
        Ok(_) => "taken".to_owned(),
        Err(Error::Tensor { rule, .. }) => format!("{rule:?}"),
        Err(Error::NotOurs { .. }) => "NotOurs".to_owned(),
        Err(error) => format!("{error:?}"),
    }];
    words.extend(outcome.copy.map(|copy| match copy {
        Ok(0) => "copied, nothing".to_owned(),
        Ok(_) => "copied".to_owned(),
        Err(Error::Tensor { rule, .. }) => format!("not copied, {rule:?}"),
        Err(Error::OutOfRange { .. }) => "not copied, too long".to_owned(),
        Err(error) => format!("not copied, {error:?}"),
    }));
    words.extend(
        outcome.back.map(|back| if back { "buffer back" } else { "not its buffer" }.to_owned()),
    );
    words.extend((outcome.misuses > 0).then(|| "deleted too often".to_owned()));
    words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
}

/// Fails unless everything that an import can come to was come to.
fn assert_all_reached(counts: &BTreeMap<String, usize>) {
    let rules = RULES.map(|rule| format!("{rule:?}"));
    let others = [
        "taken",
        "taken, empty",
        "NotOurs",
        "Flags",
        "copied",
        "copied, nothing",
        "not copied, too long",
        "not copied, Strides",
        "not copied, DeviceType",
        "buffer back",
        "not its buffer",
        "deleted too often",
    ];
    for word in rules.iter().map(String::as_str).chain(others) {
        assert!(counts.contains_key(word), "nothing here comes to {word:?}: {counts:#?}");
    }
}

fn count(rig: &Rig, cases: impl IntoIterator<Item = impl AsRef<[u8]>>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for bytes in cases {
        tally(&mut counts, &rig.run(bytes.as_ref()));
    }
    counts
}

/// Under Miri too, which cannot read files.
#[test]
fn the_seeds_come_to_what_they_are_named_for() {
    let rig = Rig::new();
    let mut counts = BTreeMap::new();
    for seed in seeds() {
        let bytes = seed.case.to_bytes();
        assert_eq!(Case::from_bytes(&bytes), seed.case, "{}", seed.name);
        let outcome = rig.run(&bytes);
        tally(&mut counts, &outcome);
        let is_right = match (seed.want, outcome.import) {
            (Want::Taken(first, len), Ok(span)) => span == (first, len),
            (Want::Rule(right), Err(Error::Tensor { rule, .. })) => rule == right,
            (Want::NotOurs, Err(Error::NotOurs { .. })) => true,
            _ => false,
        };
        assert!(is_right, "{}: {outcome:?}, and not {:?}", seed.name, seed.want);
    }
    assert_all_reached(&counts);
}

/// `CONTIGO_SEEDS_OVERWRITE=1` writes them anew.
#[test]
#[cfg_attr(miri, ignore = "Miri reads no files")]
fn each_seed_is_a_file() {
    let (folder, seeds) = (folder("seeds"), seeds());
    if std::env::var_os("CONTIGO_SEEDS_OVERWRITE").is_some_and(|value| value == "1") {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        seeds
            .iter()
            .for_each(|seed| fs::write(folder.join(seed.name), seed.case.to_bytes()).unwrap());
    }
    for seed in &seeds {
        assert_eq!(
            fs::read(folder.join(seed.name)).ok(),
            Some(seed.case.to_bytes()),
            "{}",
            seed.name
        );
    }
    assert_eq!(
        files(&folder).len(),
        seeds.len(),
        "files that are no seeds, or two seeds of one name"
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads no files")]
fn corpus_and_mutations_keep_the_rules() {
    let near = if emulated::why().is_some() { 5_000 } else { 60_000 };
    let rig = Rig::new();
    let corpus = files(&folder("corpus"));
    // Without the mutations: these are luck.
    assert_all_reached(&count(&rig, &corpus));
    let mut rng = fastrand::Rng::with_seed(11);
    let changed = (0..near).map(|_| {
        let mut bytes = corpus[rng.usize(..corpus.len())].clone();
        (0..rng.usize(1..4)).for_each(|_| mutate(&mut bytes, &corpus, &mut rng));
        bytes
    });
    let counts = count(&rig, changed);
    assert!(counts["taken"] > near / 100, "too few to try anything: {counts:#?}");
}

/// One change: a bit, a number that is an edge, a part of another case, or an end.
fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut fastrand::Rng) {
    const EDGES: [i64; 12] =
        [0, 1, 2, -1, -4, 4096, 16_384, i64::MAX, i64::MIN, 1 << 31, 1 << 62, u32::MAX as i64];
    if bytes.is_empty() {
        bytes.push(rng.u8(..));
        return;
    }
    let at = rng.usize(..bytes.len());
    match rng.u8(..5) {
        0 => bytes[at] ^= 1 << rng.u8(..8),
        1 => bytes[at] = rng.u8(..),
        2 => {
            // Whole fields: those of 4 and 8 bytes begin at multiples of 4.
            let edge = EDGES[rng.usize(..EDGES.len())].to_le_bytes();
            let at = at & !3;
            let len = if rng.bool() { 8 } else { 4 }.min(bytes.len() - at);
            bytes[at..][..len].copy_from_slice(&edge[..len]);
        }
        3 => {
            let other = &corpus[rng.usize(..corpus.len())];
            let end = other.len().min(bytes.len());
            if at < end {
                bytes[at..end].copy_from_slice(&other[at..end]);
            }
        }
        _ => bytes.truncate(at),
    }
}
