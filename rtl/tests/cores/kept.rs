//! The build script's memory of the cores that it built.

#[path = "../../build/kept.rs"]
mod script;

use script::Kept;
use std::fs;

#[test]
fn only_whole_build_is_kept_with_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let of = |hash| Kept::of(folder.path(), "core", hash);
    assert_eq!(of(1).warnings(), None);
    of(1).begin().unwrap();
    fs::write(folder.path().join("libcore.a"), "of 1").unwrap();
    of(1).end(&["an input is open".into(), "and another".into()]).unwrap();
    assert_eq!(of(1).warnings().unwrap(), ["an input is open", "and another"]);
    assert_eq!(of(2).warnings(), None, "another source, or another Verilator");
    // It is interrupted after its library was written, and then the first source comes back.
    of(2).begin().unwrap();
    fs::write(folder.path().join("libcore.a"), "of 2").unwrap();
    assert_eq!((of(1).warnings(), of(2).warnings()), (None, None));
    of(2).end(&[]).unwrap();
    assert_eq!(of(2).warnings(), Some(vec![]));
    fs::remove_file(folder.path().join("libcore.a")).unwrap();
    assert_eq!(of(2).warnings(), None);
}

#[test]
fn a_stamp_that_was_cut_off_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::of(folder.path(), "core", 12_345);
    fs::write(folder.path().join("libcore.a"), "").unwrap();
    kept.end(&["an input is open".into()]).unwrap();
    let stamp = folder.path().join("core.stamp");
    let whole = fs::read(&stamp).unwrap();
    for length in 0..whole.len() - 1 {
        fs::write(&stamp, &whole[..length]).unwrap();
        assert_eq!(kept.warnings(), None, "{length} of {} bytes", whole.len());
    }
}
