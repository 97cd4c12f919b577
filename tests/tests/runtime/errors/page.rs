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

In Rust, with the feature `std`, `?` makes a `std::io::Error` of each of these, and of a `JobError`,
a `Refused`, a `NameError`, a `MapError` and a `DesignError`. Its `kind()` is that of the errno, so
a timeout is `ErrorKind::TimedOut`. A `JobError` and a `Refused` give the buffers back
(`error.buffers`, `refused.into_returned()`), and have the error as their `source()`.

`?` also makes a `contigo::Error` of all of them, and of a `std::io::Error`. So a `main` that reads
files returns either `std::io::Result<()>`, which keeps each text, or `contigo::Result<()>`, which
keeps of the standard library's errors the errno.

In Python, `except contigo.ContigoError` catches all of them. Each class is also the built-in class
of its meaning, where Python has one, so `except TimeoutError` catches `contigo.TimeoutError`, and
`except FileNotFoundError` a `contigo.NotFoundError`. Python's side refuses a value of a wrong type
or shape by itself, with a `TypeError` or a `ValueError` that is no `ContigoError`.

In C, the codes from -1 to -18 are mistakes that Rust's compiler refuses, such as a buffer that is
used after it was given. `CONTIGO_E_CANCELLED` (-157) is a job that a stop ended, and
`CONTIGO_E_OTHER` (-999) an error that is newer than the library. `contigo.h` describes them.

This page is made from `runtime/core/src/types/error/rows.rs` by `tests/tests/runtime/errors.rs`.
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
                    "**`{variant}`**, C `CONTIGO_E_{}` ({}), Python `{}Error`, errno \
                     {errno}:{about} `{text}`",
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
