//! The overlays of the boards and of the example compile without a warning and apply to the trees
//! that the kernel's own sources have for these boards. The trees then have what `board.toml` says.
//! The kernel's sources are those in the cache of `cargo lab`; a missing one is skipped by name.
#![allow(clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]

#[path = "overlays/cases.rs"]
mod cases;
#[path = "overlays/tree.rs"]
mod tree;

use cases::{BROKEN, EXAMPLES, Example};
use contigo_cross::boards::{Board, Overlay};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::targets::ARMV7;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tree::{check_blocks, check_engines, coherent, named, property, read};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const TOOLS: &[&str] = &["cpp", "dtc", "fdtoverlay"];

/// Runs a tool; its standard error, where it succeeds.
fn run(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{command:?}: {said}").into()) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One overlay, and what is promised of it.
struct Layer<'a> {
    name: &'a str,
    text: String,
    has: Vec<[&'a str; 3]>,
    not_coherent: Vec<&'a str>,
}

impl<'a> Layer<'a> {
    fn of_board(board: &'a Board) -> Outcome<Vec<(&'a [String], Self)>> {
        let layer = |overlay: &'a Overlay| -> Outcome<_> {
            let has =
                overlay.has.iter().map(|promise| promise.each_ref().map(String::as_str)).collect();
            let not_coherent = overlay.not_coherent.iter().map(String::as_str).collect();
            let text = fs::read_to_string(board.folder.join(&overlay.file))?;
            Ok((overlay.trees.as_slice(), Self { name: &board.name, text, has, not_coherent }))
        };
        board.overlays.iter().map(layer).collect()
    }

    fn of_example(example: &'a Example) -> Outcome<Self> {
        let Example { overlay, has, not_coherent, .. } = example;
        let text = fs::read_to_string(examples().join(format!("{overlay}.dtso")))?;
        Ok(Self { name: overlay, text, has: has.to_vec(), not_coherent: not_coherent.to_vec() })
    }
}

fn examples() -> PathBuf {
    root().join("examples/gemm8/overlays")
}

fn boards() -> Outcome<Vec<Board>> {
    Ok(Board::all(&root().join("boards"))?)
}

fn missing() -> Option<String> {
    let lacks = |tool: &&&str| Command::new(tool).arg("--version").output().is_err();
    let tool = TOOLS.iter().find(lacks)?;
    Some(format!("{tool} is not installed (Debian: device-tree-compiler, cpp)"))
}

/// The newest kernel source of the cache, or why `test` is skipped.
fn newest_source(test: &str) -> Outcome<Option<PathBuf>> {
    let newest = sources()?.pop_last().map(|(_, source)| source);
    let lacks = "no kernel source in the cache: cargo lab kernel".to_owned();
    let why = missing().or_else(|| newest.is_none().then_some(lacks));
    if let Some(why) = &why {
        contigo_testkit::skipped(&format!("overlays::{test}"), why);
    }
    Ok(newest.filter(|_| why.is_none()))
}

/// The kernel sources in the lab's cache, by their series.
fn sources() -> Outcome<BTreeMap<String, PathBuf>> {
    let sources = CacheDir::open()?.path().join("sources");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&sources).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(series) = name.strip_prefix("linux-source-").filter(|_| entry.path().is_file())
        else {
            continue;
        };
        let version = fs::read_to_string(entry.path())?;
        let source = sources.join(format!("{name}_{}", version.trim()));
        if source.join("Makefile").is_file() {
            found.insert(series.to_owned(), source);
        }
    }
    Ok(found)
}

/// The folders that a kernel tree's includes are in; with vendors' since 6.5.
fn includes(source: &Path, architecture: &str) -> Vec<PathBuf> {
    let trees = source.join(format!("arch/{architecture}/boot/dts"));
    let mut folders =
        vec![source.join("include"), source.join("scripts/dtc/include-prefixes"), trees.clone()];
    let mut at = 2;
    while let Some(folder) = folders.get(at).cloned() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
        at += 1;
    }
    folders
}

/// A kernel's tree (or an overlay of the kernel's), compiled with its labels. Its warnings are not
/// about ours.
fn compile_kernels(source: &Path, architecture: &str, tree: &Path, into: &Path) -> Outcome {
    let plain = into.with_extension("plain");
    let mut cpp = Command::new("cpp");
    cpp.args(["-nostdinc", "-undef", "-P", "-x", "assembler-with-cpp"]);
    for folder in includes(source, architecture) {
        cpp.arg("-I").arg(folder);
    }
    run(cpp.arg(tree).arg("-o").arg(&plain))?;
    run(Command::new("dtc")
        .args(["-@", "-q", "-I", "dts", "-O", "dtb", "-o"])
        .arg(into)
        .arg(&plain))?;
    Ok(())
}

/// The file of this name in the kernel's trees.
fn find(source: &Path, architecture: &str, name: &str) -> Option<PathBuf> {
    let names = ["dts", "dtso"].map(|ending| format!("{name}.{ending}"));
    let mut candidates = includes(source, architecture)
        .into_iter()
        .skip(2)
        .flat_map(|folder| names.clone().into_iter().map(move |name| folder.join(name)));
    candidates.find(|path| path.is_file())
}

/// An overlay of ours. A warning is a failure. One is off: a bus below the root has the root's
/// cells, and dtc learns those from the overlay alone, where it calls them unnecessary.
fn compile(text: &Path, into: &Path) -> Outcome {
    let dtc = ["-W", "no-avoid_unnecessary_addr_size", "-@", "-I", "dts", "-O", "dtb", "-o"];
    let warnings = run(Command::new("dtc").args(dtc).arg(into).arg(text))?;
    if warnings.is_empty() { Ok(()) } else { Err(warnings.into()) }
}

fn apply(base: &Path, overlays: &[PathBuf], into: &Path) -> Outcome {
    // It prints an error and removes nothing of an older output.
    let said =
        run(Command::new("fdtoverlay").arg("-i").arg(base).arg("-o").arg(into).args(overlays))?;
    if into.is_file() { Ok(()) } else { Err(said.into()) }
}

fn check(base: &Path, layers: &[Layer<'_>], scratch: &Path) -> Outcome {
    let mut blobs = Vec::new();
    for layer in layers {
        let text = scratch.join(format!("{}.dtso", layer.name));
        fs::write(&text, &layer.text)?;
        let blob = text.with_extension("dtbo");
        compile(&text, &blob)?;
        blobs.push(blob);
    }
    let whole = scratch.join("whole.dtb");
    if whole.exists() {
        fs::remove_file(&whole)?;
    }
    apply(base, &blobs, &whole)?;
    let ((_, before), (tree, after)) = (read(base)?, read(&whole)?);
    let fresh: Vec<_> = after.difference(&before).collect();
    if !fresh.is_empty() {
        return Err(format!("warnings that {base:?} has not alone: {fresh:#?}").into());
    }
    for Layer { name, has, not_coherent, .. } in layers {
        if has.is_empty() {
            return Err(format!("{name} promises nothing").into());
        }
        for [path, what, value] in has {
            let found = property(&tree, named(&tree, path), what)?;
            if found != *value {
                return Err(format!("{name}: {what} of {path} is {found}, not {value}").into());
            }
        }
        for engine in not_coherent.iter().map(|engine| named(&tree, engine)) {
            property(&tree, engine, "compatible")?;
            if coherent(&tree, engine) {
                let why =
                    format!("{name}: {engine} does not snoop, and its tree says that it does");
                return Err(why.into());
            }
        }
    }
    check_engines(&tree)?;
    check_blocks(&tree)
}

/// The tree of this name for a board, of this kernel; `None` where this kernel has none.
fn base(board: &Board, tree: &str, source: &Path, scratch: &Path) -> Outcome<Option<PathBuf>> {
    let architecture = if board.target()? == Some(&ARMV7) { "arm" } else { "arm64" };
    let (mut whole, mut parts) = (None, Vec::new());
    for (number, name) in tree.split(" + ").enumerate() {
        let own = board.folder.join(format!("{name}.dts"));
        let text =
            if name.starts_with("lab/") { Some(own) } else { find(source, architecture, name) };
        let Some(text) = text else { return Ok(None) };
        let blob = scratch.join(format!("base-{number}.dtb"));
        compile_kernels(source, architecture, &text, &blob)?;
        if whole.is_none() { whole = Some(blob) } else { parts.push(blob) }
    }
    let Some(base) = whole.filter(|_| !parts.is_empty()) else {
        return Ok(Some(scratch.join("base-0.dtb")));
    };
    let both = scratch.join("base.dtb");
    apply(&base, &parts, &both)?;
    Ok(Some(both))
}

#[test]
fn every_overlay_compiles_and_has_a_case() -> Outcome {
    if let Some(why) = missing() {
        contigo_testkit::skipped("overlays::every_overlay_compiles", &why);
        return Ok(());
    }
    let scratch = TempDir::new()?;
    let (mut there, mut tried) = (BTreeSet::new(), BTreeSet::new());
    let mut folders = vec![examples()];
    for board in boards()? {
        folders.extend([board.folder.clone(), board.folder.join("lab")]);
        tried.extend(board.overlays.iter().map(|overlay| board.folder.join(&overlay.file)));
    }
    tried.extend(
        EXAMPLES.iter().map(|example| examples().join(format!("{}.dtso", example.overlay))),
    );
    for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "dtso") {
            compile(&path, &scratch.path().join("a.dtbo"))?;
            there.insert(path);
        }
    }
    assert_eq!(there, tried);
    Ok(())
}

#[test]
fn every_overlay_applies_to_the_kernels_trees() -> Outcome {
    if newest_source("every_overlay_applies")?.is_none() {
        return Ok(());
    }
    let sources = sources()?;
    let lacking: Vec<_> =
        ["6.1", "6.12"].into_iter().filter(|series| !sources.contains_key(*series)).collect();
    let boards = boards()?;
    for board in &boards {
        for tree in board.overlays.iter().flat_map(|overlay| &overlay.trees) {
            let mut tried = 0;
            for (series, source) in &sources {
                let scratch = TempDir::new()?;
                let Some(base) = base(board, tree, source, scratch.path())? else { continue };
                tried += 1;
                for layers in stacks(board, tree)? {
                    let names: Vec<_> = layers.iter().map(|layer| layer.name).collect();
                    check(&base, &layers, scratch.path())
                        .map_err(|error| format!("Linux {series}, {names:?} on {tree}: {error}"))?;
                }
            }
            assert!(
                tried > 0 || !lacking.is_empty(),
                "board {}: no kernel source has a tree {tree}",
                board.name
            );
        }
    }
    assert!(
        EXAMPLES.iter().all(|example| boards.iter().any(|board| board.name == example.board)),
        "an example of no board"
    );
    for series in lacking {
        contigo_testkit::skipped(
            "overlays::every_overlay_applies",
            &format!("linux-source-{series} is not in the cache"),
        );
    }
    Ok(())
}

/// The overlays that are tried together on a tree of a board: its own, and its own with each
/// example.
fn stacks<'a>(board: &'a Board, tree: &str) -> Outcome<Vec<Vec<Layer<'a>>>> {
    let own = || -> Outcome<Vec<Layer<'a>>> {
        let layers = Layer::of_board(board)?
            .into_iter()
            .filter(|(trees, _)| trees.iter().any(|own| own == tree));
        Ok(layers.map(|(_, layer)| layer).collect())
    };
    let mut stacks = vec![own()?];
    for example in EXAMPLES.iter().filter(|example| example.board == board.name) {
        let mut stack = own()?;
        stack.push(Layer::of_example(example)?);
        stacks.push(stack);
    }
    Ok(stacks)
}

/// Where kernel-helpers/bindings/check has put dtschema into the cache. On the newest kernel's
/// trees: its other findings there are the kernel's, so only our binding counts.
#[test]
fn every_engine_fits_the_binding() -> Outcome {
    const NAME: &str = "every_engine_fits_the_binding";
    let Some(source) = newest_source(NAME)? else { return Ok(()) };
    let bin = CacheDir::open()?.path().join("dtschema-2026.9/bin");
    if !bin.with_file_name("whole").is_file() {
        let why = "no dtschema in the cache: kernel-helpers/bindings/check";
        contigo_testkit::skipped(&format!("overlays::{NAME}"), why);
        return Ok(());
    }
    let (scratch, mut trees) = (TempDir::new()?, Vec::new());
    let schema = scratch.path().join("schema.json");
    run(Command::new(bin.join("dt-mk-schema"))
        .arg("-j")
        .arg("-o")
        .arg(&schema)
        .arg(root().join("kernel-helpers/bindings")))?;
    for board in &boards()? {
        for tree in board.overlays.iter().flat_map(|overlay| &overlay.trees) {
            for layers in stacks(board, tree)? {
                let folder = TempDir::new_in(scratch.path())?.keep();
                let Some(base) = base(board, tree, &source, &folder)? else { continue };
                check(&base, &layers, &folder)?;
                trees.push(folder.join("whole.dtb"));
            }
        }
    }
    let validate = |trees: &[PathBuf]| {
        run(Command::new(bin.join("dt-validate"))
            .args(["-l", "contigo,engine", "-s"])
            .arg(&schema)
            .args(trees))
    };
    let said = validate(&trees)?;
    assert!(said.is_empty() && trees.len() > EXAMPLES.len(), "{} trees: {said}", trees.len());
    // It is quiet about a tree without an engine, too: so it has looked.
    let (text, broken) = (scratch.path().join("broken.dts"), scratch.path().join("broken.dtb"));
    fs::write(
        &text,
        "/dts-v1/; / { #address-cells = <1>; #size-cells = <1>; engine@0 { compatible = \
         \"contigo,engine\"; }; };",
    )?;
    run(Command::new("dtc").args(["-q", "-o"]).arg(&broken).arg(&text))?;
    let said = validate(&[broken])?;
    assert!(said.contains("'reg' is a required property"), "{said}");
    Ok(())
}

/// An overlay with one thing wrong is refused, and for that; with nothing wrong it is not.
#[test]
fn a_broken_overlay_is_refused() -> Outcome {
    let Some(source) = newest_source("a_broken_overlay_is_refused")? else { return Ok(()) };
    let boards = boards()?;
    let faults = BROKEN.iter().flat_map(|&(example, broken, faults)| {
        faults.iter().map(move |fault| (example, broken, fault))
    });
    for (example, broken, [right, wrong, said]) in faults {
        let example = EXAMPLES.iter().find(|one| one.overlay == example).ok_or("no example")?;
        let board = boards.iter().find(|board| board.name == example.board).ok_or("no board")?;
        let tree = &board.overlays[0].trees[0];
        let scratch = TempDir::new()?;
        let base = base(board, tree, &source, scratch.path())?.ok_or("no tree")?;
        let mut layers = stacks(board, tree)?
            .into_iter()
            .find(|stack| stack.iter().any(|layer| layer.name == example.overlay))
            .ok_or("none")?;
        let layer = layers.iter_mut().find(|layer| layer.name == broken).ok_or("no overlay")?;
        let text = layer.text.replacen(right, wrong, 1);
        assert!(text != layer.text, "{broken} has no {right}");
        layer.text = text;
        match check(&base, &layers, scratch.path()) {
            // An addition that breaks nothing.
            Ok(()) => assert!(said.is_empty(), "{broken} with {wrong} for {right} passed"),
            Err(error) => {
                let error = error.to_string();
                let is_named = !said.is_empty() && said.split('|').any(|one| error.contains(one));
                assert!(is_named, "{broken}, {wrong}: {error}");
            }
        }
    }
    Ok(())
}

/// Where there is an udevadm that can (systemd 254 and newer).
#[test]
fn the_udev_rules_are_rules() -> Outcome {
    let able = Command::new("udevadm")
        .args(["verify", "--help"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !able {
        contigo_testkit::skipped("overlays::the_udev_rules_are_rules", "no udevadm verify here");
        return Ok(());
    }
    let rules = root().join("kernel-helpers/udev/60-contigo.rules");
    run(Command::new("udevadm").args(["verify", "--resolve-names=never"]).arg(rules))?;
    Ok(())
}
