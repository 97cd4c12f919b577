//! `docs/errors.md`: its lists are the table of errors; the rest is written by hand.

use contigo::{Error, ErrorKind};
use std::path::Path;
use std::{env, fs};

/// The line before the rows.
const HEAD_ENDS: &str = "|---|---|---|---|---|\n";

const KINDS: [(ErrorKind, &str); 5] = [
    (ErrorKind::Request, "The program asked for something that cannot be: correct the program"),
    (ErrorKind::Memory, "A block, a pool or a buffer"),
    (ErrorKind::Port, "This memory and this port do not suit each other"),
    (ErrorKind::Device, "The device, or its driver"),
    (ErrorKind::System, "The operating system: permissions, modules, settings, limits"),
];

#[test]
fn the_page_of_errors_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let old = fs::read_to_string(&path).unwrap();
    let (head, _) = old.split_once(HEAD_ENDS).unwrap();
    let mut page = format!("{head}{HEAD_ENDS}");
    for (kind, title) in KINDS {
        page += &format!("| **{}** | | | | {title} |\n", kind.name());
        for (row, (variant, errno, about, text)) in Error::ROWS.iter().zip(Error::ABOUT) {
            if row.kind == kind {
                let about: String = about.concat();
                let errno = if *errno == "errno" { "the kernel's" } else { errno };
                page += &format!(
                    "| `{variant}` | `CONTIGO_E_{}` ({}) | `{}Error` | {errno} | {} `{text}` |\n",
                    row.name,
                    row.code,
                    row.class,
                    about.trim()
                );
            }
        }
    }
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).is_ok_and(|now| now == page);
    assert!(written, "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-tests --test runtime errors");
}
