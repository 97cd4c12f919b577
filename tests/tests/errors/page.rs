//! `docs/errors.md`: the table of errors as a page.

use contigo::{Error, ErrorKind};

const HEAD: &str = "# Errors

All languages have the same errors. A person reads the text, which says what happened, with its
numbers, and how to go on. A program asks for the class.

| language | the error | its class | its numbers |
|---|---|---|---|
| Rust | `Result<_, contigo::Error>` | `error.kind()`, `error.errno()` | the variant's fields |
| C | a status below 0 | the status (`CONTIGO_E_…`) | `contigo_last_error()`, as text |
| Python | an exception, always a `contigo.ContigoError` | its type; `kind`, `errno`, `code` | its text |

In Rust, `std::io::Error` is made of an error by `?`, with the feature `std`. `JobError` and
`Refused` give the buffers back, and have the error as their `source()`. In Python, each class is
also the built-in one of its name: `except TimeoutError` catches `contigo.TimeoutError`.

This page is made from `runtime/src/types/error/rows.rs` by `tests/tests/errors.rs`.
";

const KINDS: [(ErrorKind, &str); 5] = [
    (ErrorKind::Request, "The program asked for something that cannot be: correct the program"),
    (ErrorKind::Memory, "A block, a pool or a buffer"),
    (ErrorKind::Port, "This memory and this port do not suit each other"),
    (ErrorKind::Device, "The device, or its driver"),
    (ErrorKind::System, "The operating system: permissions, modules, settings, limits"),
];

pub(crate) fn errors() -> String {
    let mut page = HEAD.to_owned();
    for (kind, title) in KINDS {
        page += &format!("\n## {}\n\n{title}.\n\n", kind.name());
        for (row, (variant, errno, about, text)) in Error::ROWS.iter().zip(Error::ABOUT) {
            if row.kind == kind {
                let about: String = about.concat();
                let errno = if *errno == "errno" { "the kernel's" } else { errno };
                let line = format!(
                    "**`{variant}`**, C `CONTIGO_E_{}` ({}), Python `{}Error`, errno {errno}:{about} `{text}`",
                    row.name, row.code, row.class
                );
                wrap(&mut page, &line);
            }
        }
    }
    page
}

/// A list's entry, in lines of 100 columns.
fn wrap(page: &mut String, text: &str) {
    let mut line = String::from("-");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 100 {
            *page += &line;
            *page += "\n";
            line = String::from(" ");
        }
        line += " ";
        line += word;
    }
    *page += &line;
    *page += "\n";
}
