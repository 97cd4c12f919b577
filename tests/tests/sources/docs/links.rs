//! Links lead somewhere, and every page is reached from the table of contents.

use super::markdown::{Page, pages, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
/// A link's file, from the root; and its anchor.
fn target(page: &Page, link: &str) -> (String, Option<String>) {
    let (file, anchor) =
        link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor.to_owned())));
    if file.is_empty() {
        return (page.path.clone(), anchor);
    }
    let mut path = PathBuf::from(&page.path);
    path.pop();
    for component in Path::new(file).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    (path.to_string_lossy().into_owned(), anchor)
}

/// Addresses elsewhere, and names in Rust's documentation, which rustdoc tries.
fn is_ours(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("crate::")
}

fn wrong_links(root: &Path, pages: &[Page]) -> Vec<String> {
    let by_path: BTreeMap<_, _> = pages.iter().map(|page| (page.path.as_str(), page)).collect();
    let mut wrong = Vec::new();
    for page in pages {
        for (line, link) in page.links.iter().filter(|(_, link)| is_ours(link)) {
            let (file, anchor) = target(page, link);
            let place = format!("{}:{line}: {link}", page.path);
            match (root.join(&file).exists(), anchor, by_path.get(file.as_str())) {
                (false, ..) => wrong.push(format!("{place}: there is no such file")),
                (true, Some(anchor), to) if to.is_none_or(|to| !to.anchors.contains(&anchor)) => {
                    wrong.push(format!("{place}: no heading there has this name"));
                }
                _ => {}
            }
        }
    }
    wrong
}

#[test]
fn links_lead_somewhere() {
    let root = root(env!("CARGO_MANIFEST_DIR"), 1);
    let wrong = wrong_links(&root, &pages(&root));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let root = root(env!("CARGO_MANIFEST_DIR"), 1);
    let pages = pages(&root);
    let mut reached = BTreeSet::from(["docs/README.md".to_owned()]);
    // Each round follows the links of one page more.
    for _ in 0..pages.len() {
        let from = pages
            .iter()
            .filter(|page| reached.contains(&page.path) && page.path.starts_with("docs/"));
        let more: Vec<_> =
            from.flat_map(|page| page.links.iter().map(|(_, link)| target(page, link).0)).collect();
        reached.extend(more);
    }
    let lost: Vec<_> = pages
        .iter()
        .map(|page| &page.path)
        .filter(|path| path.starts_with("docs/") && !reached.contains(*path))
        .collect();
    assert!(lost.is_empty(), "no links lead from docs/README.md to {lost:?}");
    let readme = pages.iter().find(|page| page.path == "README.md").unwrap();
    assert!(
        readme.links.iter().any(|(_, link)| link == "docs/README.md"),
        "README.md does not lead to docs/README.md"
    );
}
