//! `docs/errors.md`: the table of errors as a page.

use contigo::{Error, ErrorKind};

const HEAD: &str = "# Errors

All languages have the same errors. The text says what happened, with its numbers, and how to go on;
a program asks for the class.

| language | the error | its class | its numbers |
|---|---|---|---|
| Rust | `Result<_, contigo::Error>` | `error.kind()`, `error.errno()` | the variant's fields |
| C | a status below 0 | the status (`CONTIGO_E_…`) | `contigo_last_error()`, as text |
| Python | an exception, always a `contigo.ContigoError` | its type; `kind`, `errno`, `code` | its text |

**Rust.** With the feature `std`, `?` converts each of these, a `JobError`, a `Refused`, a
`NameError`, a `MapError` and a `DesignError` to a `std::io::Error` with the kind of its errno (a
timeout is `ErrorKind::TimedOut`) and its text. `?` also converts all of them, and a
`std::io::Error`, to a `contigo::Error`, which keeps the errno of a `std::io::Error`. A `JobError`
and a `Refused` give the buffers back (`error.buffers`, `refused.into_returned()`), and have the
error as their `source()`.

**C.** The codes from -1 to -18 are mistakes that Rust's compiler refuses, such as a buffer that is
used after it was given. `CONTIGO_E_CANCELLED` (-157) is a job that a stop ended, and
`CONTIGO_E_OTHER` (-999) an error that is newer than the library. `contigo.h` describes them.

**Python.** Each class is also the built-in class of its meaning, where Python has one: `except
TimeoutError` catches `contigo.TimeoutError`. A value of a wrong type or shape is a `TypeError` or a
`ValueError`, and no `ContigoError`.

`tests/tests/runtime/errors.rs` makes this page from `runtime/core/src/types/error/rows.rs`. A row
in bold is a kind.

| Rust | C | Python | errno | meaning, and text |
|---|---|---|---|---|
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
    page
}
