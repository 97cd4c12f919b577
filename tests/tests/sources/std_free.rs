//! The runtime names neither `std` nor `alloc`: its sources are read here, and `.ci/run` builds it
//! for a processor that has neither. A test's stand-in for the kernel is
//! built with the feature `testkit` alone, and takes the heap.

use super::source::{built, root, sources};
use std::{fs, process::Command};

/// Does `code` name the crate `name`: `extern crate name`, or a path that begins with it?
fn names(code: &str, name: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (code.get(..at).unwrap(), code.get(at + name.len()..).unwrap());
        // `::std` is the crate; `core::alloc`, `heap.alloc` and `no_std` are not.
        let before =
            before.strip_suffix("::").filter(|outer| !outer.ends_with(is_word)).unwrap_or(before);
        let begins =
            !before.ends_with(|letter: char| is_word(letter) || letter == '.' || letter == ':');
        let path = begins && after.starts_with("::");
        let linked = begins && before.trim_end().ends_with("extern crate");
        let imported = begins && before.trim_end().ends_with("use") && !after.starts_with(is_word);
        path || linked || imported
    })
}

#[test]
fn the_sources_name_neither() {
    const CRATES: [&str; 5] = ["core", "design", "drivers", "sim", "contigo"];
    for each in CRATES {
        let library =
            fs::read_to_string(root().join("runtime").join(each).join("src/lib.rs")).unwrap();
        assert!(library.lines().any(|line| line == "#![no_std]"), "{each} is no_std, always");
    }
    let seam = root().join("runtime/core/src/linux/os/seam.rs");
    let os = fs::read_to_string(seam.with_file_name("mod.rs")).unwrap();
    assert!(
        os.contains("#[cfg(feature = \"testkit\")]\npub mod seam;\n"),
        "it is built for tests alone"
    );
    // Nor is what answers in std's type: with the feature `std` alone.
    let io = root().join("runtime/core/src/types/error/io.rs");
    let module = fs::read_to_string(io.with_file_name("mod.rs")).unwrap();
    assert!(
        module.contains("#[cfg(all(feature = \"std\", not(target_os = \"none\")))]\nmod io;\n"),
        "it is built where a program asks for it"
    );
    let files =
        CRATES.into_iter().flat_map(|each| sources(&root().join("runtime").join(each).join("src")));
    let files: Vec<_> = files.filter(|path| ![&seam, &io].contains(&path)).collect();
    assert!(files.len() > 300, "all of the sources are found: {}", files.len());
    for path in files {
        if path.ends_with("tests.rs") {
            let folder = path.parent().unwrap();
            let parent =
                [folder.join("mod.rs"), folder.join("lib.rs"), folder.with_extension("rs")]
                    .into_iter()
                    .find(|file| file.exists());
            let parent = fs::read_to_string(parent.unwrap())
                .unwrap()
                .replace("pub(crate) mod tests", "mod tests");
            if parent.contains("#[cfg(test)]\nmod tests;\n") {
                continue;
            }
        }
        let code = built(&fs::read_to_string(&path).unwrap());
        assert!(!names(&code, "alloc"), "{} names alloc", path.display());
        // The types of a descriptor are std's, and all that is taken from there.
        let code = if path.ends_with("types/platform/linux.rs") {
            code.replace("extern crate std;", "").replace("std::os::fd::", "")
        } else {
            code
        };
        assert!(!names(&code, "std"), "{} names std", path.display());
    }
}

#[test]
fn the_reading_itself_is_right() {
    for code in [
        "use std::vec;",
        "use ::std::fs;",
        "let v = alloc::vec::Vec::new();",
        "extern crate alloc;",
        "extern crate std;",
        "use std as s;",
    ] {
        let found = names(&built(code), "std") || names(&built(code), "alloc");
        assert!(found, "{code}");
    }
    for code in [
        "#![no_std]",
        "// use std::vec;",
        "use core::alloc::Layout;",
        "heap.alloc(1)",
        "fn alloc(&self) {}",
        "mod raw { raw::alloc(1); }",
    ] {
        assert!(!names(&built(code), "std") && !names(&built(code), "alloc"), "{code}");
    }
    let text = "#[cfg(test)]\nextern crate std;\nuse core::fmt;\n#[cfg(test)]\nmod tests {\n  use \
        std::vec;\n  fn f() {}\n}\nfn g() {}\n";
    assert_eq!(
        built(text).split_whitespace().collect::<Vec<_>>(),
        ["use", "core::fmt;", "fn", "g()", "{}"]
    );
    assert_eq!(built(text).lines().count(), text.lines().count(), "lines keep their numbers");
    assert_eq!(
        built("//! Tests.\n#![cfg(test)]\nuse std::vec;\nfn g() {}\n").trim(),
        "",
        "a file of tests"
    );
    assert!(
        names(&built("mod a { #![cfg(test)]\n}\nuse std::vec;\n"), "std"),
        "a module of tests ends"
    );
}

#[test]
fn what_is_shipped_has_no_seam() {
    let packages = ["contigo-cli", "contigo-c", "contigo-tests"].into_iter();
    for (package, library) in
        packages.flat_map(|package| [(package, "contigo"), (package, "contigo-core")])
    {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root()).args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "features,no-dev",
            "--invert",
            library,
        ]);
        let output = cargo.args(["--package", package]).output().unwrap();
        let tree = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && tree.contains(&format!("{library} feature \"linux\"")),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!tree.contains(&format!("{library} feature \"testkit\"")), "{package}: {tree}");
    }
}
