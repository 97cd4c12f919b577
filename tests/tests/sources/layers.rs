//! Modules import one way. `.ci/count --circles` reads every crate's sources and prints each
//! circle; here it has none to print, and finds one that is made for it. It needs Python 3 and git.

use super::root;
use contigo_testkit::skipped;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn circles(repository: &Path) -> Option<Output> {
    Command::new("python3")
        .arg(repository.join(".ci/count"))
        .arg("--circles")
        .output()
        .ok()
        .filter(|_| root().join(".git").exists())
}

#[test]
fn no_modules_import_one_another_in_a_circle() {
    let Some(output) = circles(root()) else {
        return skipped("no_modules_import_one_another_in_a_circle", "it needs python3 and git");
    };
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(found.is_empty(), "modules that import one another:\n{found}");
}

#[test]
fn a_circle_is_found() {
    let other = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circle");
    let _ = fs::remove_dir_all(&other);
    for (path, text) in [
        ("one/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
        ("one/src/a.rs", "use super::b::B;\npub struct A(B);\n"),
        ("one/src/b.rs", "use super::c;\npub struct B(Option<c::C>);\n"),
        ("one/src/c.rs", "use crate::A;\npub type C = Box<A>;\n#[cfg(test)]\nuse super::b::B;\n"),
        ("two/src/lib.rs", "mod a;\nmod b;\n"),
        ("two/src/a.rs", "use super::b::B;\n"),
        ("two/src/b.rs", "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
    ] {
        let path = other.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::create_dir_all(other.join(".ci")).unwrap();
    fs::copy(root().join(".ci/count"), other.join(".ci/count")).unwrap();
    let git =
        |arguments: &[&str]| Command::new("git").arg("-C").arg(&other).args(arguments).output();
    let made = git(&["init", "--quiet"]).and_then(|_| git(&["add", "."]));
    let Some(output) = circles(&other).filter(|_| made.is_ok_and(|made| made.status.success()))
    else {
        return skipped("a_circle_is_found", "it needs python3 and git");
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one/src/.: a, b, c\n");
}
