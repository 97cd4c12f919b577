//! `include/contigo.h` is what cbindgen makes of the sources; C and C++ compilers take it without a
//! word.
//!
//! `CONTIGO_WRITE_HEADER=1 cargo test -p contigo-c --test header` writes it anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo_testkit::emulated;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn generated() -> String {
    let config = cbindgen::Config::from_file(Path::new(CRATE).join("cbindgen.toml")).unwrap();
    let mut text = Vec::new();
    // A driver's structures are those of the crate that loads drivers.
    let abi = Path::new(CRATE).join("../objects/src/driver/abi.rs");
    cbindgen::Builder::new()
        .with_src(abi)
        .with_crate(CRATE)
        .with_config(config)
        .generate()
        .unwrap()
        .write(&mut text);
    // Rust's own heading for unsafe functions says little in C, where all of them are.
    let text =
        String::from_utf8(text).unwrap().replace("/// # Safety\n", "/// The caller promises:\n");
    text.replace('`', "")
}

/// `src/status/codes.rs`: the codes of the runtime's table of errors, for cbindgen to read.
fn codes() -> String {
    let mut text = String::from(
        "//! The codes of the runtime's errors, made from \
         `runtime/core/src/types/error/rows.rs`.\n//!\n\
         //! `CONTIGO_WRITE_HEADER=1 cargo test -p contigo-c --test header` writes it anew.\n\n\
         use super::contigo_status;\n\n",
    );
    for (row, (_, _, about, _)) in contigo::Error::ROWS.iter().zip(contigo::Error::ABOUT) {
        about.iter().for_each(|line| text += &format!("///{line}\n"));
        text += &format!("pub const CONTIGO_E_{}: contigo_status = {};\n", row.name, row.code);
    }
    text
}

#[test]
fn the_codes_are_those_of_the_table() {
    let path = Path::new(CRATE).join("src/status/codes.rs");
    if env::var_os("CONTIGO_WRITE_HEADER").is_some() {
        fs::write(&path, codes()).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == codes(),
        "CONTIGO_WRITE_HEADER=1 writes it anew; then run it again for the header"
    );
}

#[test]
fn the_header_is_up_to_date() {
    let path = Path::new(CRATE).join("include/contigo.h");
    let new = generated();
    if env::var_os("CONTIGO_WRITE_HEADER").is_some() {
        fs::write(&path, &new).unwrap();
    }
    let old = fs::read_to_string(&path).unwrap();
    let differs = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(old == new, "CONTIGO_WRITE_HEADER=1 writes it anew; the first difference: {differs:?}");
}

/// Compiles a file that does nothing but include the header, with everything that a compiler can
/// complain about.
fn compiles(compiler: &str, language: &str, standard: &str) {
    let name = format!("header::compiles({compiler} {standard})");
    if let Some(why) = emulated::why() {
        return contigo_testkit::skipped(&name, &why);
    }
    if Command::new(compiler).arg("--version").output().is_err() {
        return contigo_testkit::skipped(&name, "there is no such compiler here");
    }
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"])
        .args(["-x", language])
        .arg(Path::new(CRATE).join("include/contigo.h"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn compilers_take_it() {
    compiles("cc", "c", "-std=c11");
    compiles("cc", "c", "-std=c99");
    compiles("clang", "c", "-std=c11");
    compiles("c++", "c++", "-std=c++11");
    compiles("c++", "c++", "-std=c++20");
}
