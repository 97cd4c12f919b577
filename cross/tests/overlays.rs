//! The overlays of `kernel-helpers/` compile without a warning, apply to the trees that the kernel's own sources have for these boards, and the
//! trees then have what the overlays promise. The kernel's sources are those that `cargo lab` has in its cache; what is not there is
//! skipped by name.
#![allow(clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]

#[path = "overlays/cases.rs"]
mod cases;
#[path = "overlays/tree.rs"]
mod tree;

use cases::{BROKEN, Base, CASES, Case, NOT_COHERENT, PROMISED};
use contigo_cross::cache_dir::CacheDir;
use contigo_testkit::emulated;
use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;
use tree::{check_blocks, check_ports, coherent, named, property, read};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const TOOLS: &[&str] = &["cpp", "dtc", "fdtoverlay"];

/// Runs a tool; its standard error, where it succeeds.
fn run(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{command:?}: {said}").into()) }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-helpers/overlays")
}

/// What is missing here of the tools, if anything.
fn missing() -> Option<String> {
    let lacks = |tool: &&&str| Command::new(tool).arg("--version").output().is_err();
    TOOLS.iter().find(lacks).map(|tool| format!("{tool} is not installed (Debian: device-tree-compiler, cpp)"))
}

/// The kernel sources in the lab's cache, by their series.
fn sources() -> Outcome<BTreeMap<String, PathBuf>> {
    let sources = CacheDir::open()?.path().join("sources");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&sources).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(series) = name.strip_prefix("linux-source-").filter(|_| entry.path().is_file()) else { continue };
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
    let mut folders = vec![source.join("include"), source.join("scripts/dtc/include-prefixes"), trees.clone()];
    let mut at = 2;
    while let Some(folder) = folders.get(at).cloned() {
        folders.extend(fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
        at += 1;
    }
    folders
}

/// A kernel's tree (or an overlay of the kernel's), compiled with its labels. Its warnings are not about ours.
fn compile_kernels(source: &Path, architecture: &str, tree: &Path, into: &Path) -> Outcome {
    let plain = into.with_extension("plain");
    let mut cpp = Command::new("cpp");
    cpp.args(["-nostdinc", "-undef", "-P", "-x", "assembler-with-cpp"]);
    for folder in includes(source, architecture) {
        cpp.arg("-I").arg(folder);
    }
    run(cpp.arg(tree).arg("-o").arg(&plain))?;
    run(Command::new("dtc").args(["-@", "-q", "-I", "dts", "-O", "dtb", "-o"]).arg(into).arg(&plain))?;
    Ok(())
}

/// The file of this name in the kernel's trees, with any of these endings.
fn find(source: &Path, architecture: &str, names: &[String]) -> Outcome<PathBuf> {
    let mut candidates =
        includes(source, architecture).into_iter().skip(2).flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    candidates.find(|path| path.is_file()).ok_or_else(|| format!("{} has no {names:?}", source.display()).into())
}

/// An overlay of ours. A warning is a failure.
fn compile(text: &Path, into: &Path) -> Outcome {
    let warnings = run(Command::new("dtc").args(["-@", "-I", "dts", "-O", "dtb", "-o"]).arg(into).arg(text))?;
    if warnings.is_empty() { Ok(()) } else { Err(warnings.into()) }
}

fn apply(base: &Path, overlays: &[PathBuf], into: &Path) -> Outcome {
    // It prints an error and removes nothing of an older output.
    let said = run(Command::new("fdtoverlay").arg("-i").arg(base).arg("-o").arg(into).args(overlays))?;
    if into.is_file() { Ok(()) } else { Err(said.into()) }
}

/// The overlays of `texts` on the case's tree.
fn check(case: &Case, base: &Path, texts: &Path, scratch: &Path) -> Outcome {
    let mut blobs = Vec::new();
    for name in case.overlays {
        let blob = scratch.join(format!("{name}.dtbo"));
        compile(&texts.join(format!("{name}.dtso")), &blob)?;
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
    for name in case.overlays {
        let (_, promised) = PROMISED.iter().find(|(overlay, _)| overlay == name).ok_or("an overlay that promises nothing")?;
        for (path, what, value) in *promised {
            let found = property(&tree, named(&tree, path), what)?;
            if found != *value {
                return Err(format!("{name}: {what} of {path} is {found}, not {value}").into());
            }
        }
        if let Some((_, port)) = NOT_COHERENT.iter().find(|(overlay, port)| overlay == name && coherent(&tree, port)) {
            return Err(format!("{name}: {port} does not snoop, and its tree says that it does").into());
        }
    }
    check_ports(&tree)?;
    check_blocks(&tree)
}

/// The tree of a case, of this kernel; `None` where the case belongs to another kernel.
fn base(case: &Case, series: &str, source: &Path, scratch: &Path) -> Outcome<Option<PathBuf>> {
    let blob = scratch.join("base.dtb");
    match case.base {
        Base::Kernel { architecture, tree } => {
            compile_kernels(source, architecture, &find(source, architecture, &[tree.to_owned()])?, &blob)?;
            let Some(carrier) = case.carrier else { return Ok(Some(blob)) };
            let overlay = scratch.join("carrier.dtbo");
            let names = ["dtso", "dts"].map(|ending| format!("{carrier}.{ending}"));
            compile_kernels(source, architecture, &find(source, architecture, &names)?, &overlay)?;
            let both = scratch.join("both.dtb");
            apply(&blob, &[overlay], &both)?;
            Ok(Some(both))
        }
        Base::Lab { series: other, .. } if other != series => Ok(None),
        Base::Lab { board, architecture, .. } => {
            let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("boards").join(board).join("board.dts");
            compile_kernels(source, architecture, &tree, &blob)?;
            Ok(Some(blob))
        }
    }
}

#[test]
fn every_overlay_compiles_without_a_warning_and_is_in_a_case() -> Outcome {
    if let Some(why) = missing() {
        emulated::skipped("overlays::every_overlay_compiles", &why);
        return Ok(());
    }
    let scratch = TempDir::new()?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "dtso") {
            compile(&path, &scratch.path().join("a.dtbo"))?;
            names.insert(path.file_stem().ok_or("no name")?.to_string_lossy().into_owned());
        }
    }
    let tried: BTreeSet<_> = CASES.iter().flat_map(|case| case.overlays).map(|&name| name.to_owned()).collect();
    assert_eq!(names, tried);
    Ok(())
}

#[test]
fn every_overlay_applies_to_the_kernels_trees() -> Outcome {
    let sources = sources()?;
    let why = missing().or_else(|| sources.is_empty().then(|| "no kernel source in the cache: cargo lab kernel".to_owned()));
    if let Some(why) = why {
        emulated::skipped("overlays::every_overlay_applies", &why);
        return Ok(());
    }
    let mut tried = 0;
    for (series, source) in &sources {
        for case in CASES {
            let scratch = TempDir::new()?;
            if let Some(base) = base(case, series, source, scratch.path())? {
                check(case, &base, &folder(), scratch.path()).map_err(|error| format!("Linux {series}, {:?}: {error}", case.overlays))?;
                tried += 1;
            }
        }
    }
    assert!(tried >= CASES.len() - 3, "{tried} cases only");
    for series in ["6.1", "6.12"].into_iter().filter(|series| !sources.contains_key(*series)) {
        emulated::skipped("overlays::every_overlay_applies", &format!("linux-source-{series} is not in the cache"));
    }
    Ok(())
}

/// An overlay with one thing wrong is refused, and for that; with nothing wrong it is not.
#[test]
fn a_broken_overlay_is_refused() -> Outcome {
    let sources = sources()?;
    let why = missing().or_else(|| sources.is_empty().then(|| "no kernel source in the cache: cargo lab kernel".to_owned()));
    let Some((series, source)) = sources.iter().next_back().filter(|_| why.is_none()) else {
        emulated::skipped("overlays::a_broken_overlay_is_refused", &why.unwrap_or_default());
        return Ok(());
    };
    for (number, overlay, right, wrong, said) in BROKEN {
        let case = &CASES[*number];
        let scratch = TempDir::new()?;
        let base = base(case, series, source, scratch.path())?.ok_or("no tree")?;
        let texts = scratch.path().join("texts");
        fs::create_dir(&texts)?;
        for name in case.overlays {
            let text = fs::read_to_string(folder().join(format!("{name}.dtso")))?;
            let broken = if name == overlay { text.replacen(right, wrong, 1) } else { text.clone() };
            assert!(name != overlay || broken != text, "{overlay} has no {right}");
            fs::write(texts.join(format!("{name}.dtso")), broken)?;
        }
        match check(case, &base, &texts, scratch.path()) {
            // An addition that breaks nothing.
            Ok(()) => assert!(said.is_empty(), "{overlay} with {wrong} for {right} passed"),
            Err(error) => {
                let error = error.to_string();
                assert!(!said.is_empty() && said.split('|').any(|said| error.contains(said)), "{overlay}, {wrong}: {error}");
            }
        }
    }
    Ok(())
}

/// Where there is an udevadm that can (systemd 254 and newer).
#[test]
fn the_udev_rules_are_rules() -> Outcome {
    let able = Command::new("udevadm").args(["verify", "--help"]).output().is_ok_and(|output| output.status.success());
    if !able {
        emulated::skipped("overlays::the_udev_rules_are_rules", "no udevadm verify here");
        return Ok(());
    }
    let rules = folder().join("../udev/60-contigo.rules");
    run(Command::new("udevadm").args(["verify", "--resolve-names=never"]).arg(rules))?;
    Ok(())
}
