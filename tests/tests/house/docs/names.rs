//! Names of C and Python in documents are names of the header and of the package.

use super::markdown::{files, pages, root};
use std::{collections::BTreeSet, fs};

/// Names that begin so and are no names of C's header: crates, files, features.
const OTHERS: [&str; 10] = [
    "contigo_boards",
    "contigo_gemm8",
    "contigo_nvtx",
    "contigo_testkit",
    "contigo_tests",
    "contigo_c",
    "contigo_fake",
    "contigo_pci",
    "contigo_python",
    "contigo_own",
];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

#[test]
fn names_of_c_and_variables_exist() {
    let root = root(env!("CARGO_MANIFEST_DIR"), 1);
    let sources = files(&root, &["rs", "h", "c", "py", "toml", "inc", "bbclass"]);
    let mut known = String::new();
    for path in sources.iter().map(String::as_str).chain([
        ".ci/run",
        "tests/gpu/run",
        "tests/interop/run",
        "tests/interop/lab",
    ]) {
        known += &fs::read_to_string(root.join(path)).unwrap_or_default();
    }
    let known: BTreeSet<&str> =
        words(&known).filter(|word| word.to_ascii_lowercase().starts_with("contigo_")).collect();
    let mut wrong = String::new();
    for page in pages(&root).iter().filter(|page| page.path != "CHANGELOG.md") {
        for (at, line) in page.lines.iter().enumerate() {
            for word in words(line).filter(|word| word.to_ascii_lowercase().starts_with("contigo_"))
            {
                let whole = known.contains(word)
                    || word.ends_with('_') && known.iter().any(|name| name.starts_with(word));
                if !whole && !OTHERS.iter().any(|other| word.starts_with(other)) {
                    wrong += &format!("{}:{}: {word}\n", page.path, at + 1);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no file of the repository has these names:\n{wrong}");
}

#[test]
fn names_of_the_python_package_exist() {
    let root = root(env!("CARGO_MANIFEST_DIR"), 1);
    let face =
        fs::read_to_string(root.join("bindings/python/package/contigo/__init__.py")).unwrap();
    let own: BTreeSet<&str> = words(&face).collect();
    let mut wrong = String::new();
    for page in pages(&root).iter().filter(|page| page.path != "CHANGELOG.md") {
        let code = page
            .blocks
            .iter()
            .filter(|block| block.language == "python")
            .flat_map(|block| block.text.iter().map(|line| (block.line, line)));
        let spans = page
            .spans
            .iter()
            .filter(|(_, span)| span.starts_with("contigo.") && !span.contains('/'))
            .map(|(line, span)| (*line, span));
        for (line, text) in code.chain(spans) {
            for behind in text.split("contigo.").skip(1) {
                let name = words(behind).next().unwrap_or("");
                if !own.contains(name) && !["h", "pc", "toml"].contains(&name) {
                    wrong += &format!("{}:{line}: contigo.{name}\n", page.path);
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "bindings/python/package/contigo/__init__.py has no such names:\n{wrong}"
    );
}
