//! `docs/cores.md`: the drivers by their names, as every language opens them.

use contigo::names::each_row;
use std::{env, fmt::Write as _, fs, path::Path};

const HEAD: &str = "# Cores

After this page you know which driver your core needs, its jobs, and its settings.

| language | a driver, on a device that is open |
|---|---|
| Rust | its module in `contigo::drivers`, or by its name: `contigo::names::row(\"axi_dma\")` |
| C | `contigo_engine_open(&options, &engine)`, with the driver's name in the options |
| Python | `device.driver(\"axi_dma\", memory=region, length_bits=23)`, or `contigo.Overlay` |

The module of each in `contigo::drivers` says more: its modes, alignment, lengths and traps, and the
manual. No register tells most of these settings: they are parameters of the block design, and a
design that is opened by its `.hwh` fills them in. The default is the tool's own.

A driver that can have memory of its own keeps descriptors there, and takes several jobs at once.
Registers and syncs of each: [counts.md](counts.md).
";

#[test]
fn the_page_of_cores_is_up_to_date() {
    let mut page = String::from(HEAD);
    each_row(|row| {
        let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        write!(page, "\n## `{}`\n\n{}.\n", row.name, capital(row.help)).unwrap();
        let mut line = |what: &str, of: String| {
            if !of.is_empty() {
                write!(page, "\n- {what}: {of}").unwrap();
            }
        };
        line("settings", quoted(row.settings.unwrap_or_default()));
        line("device tree", quoted(row.compatible));
        line("block design", quoted(row.ip));
        line("self-test", if row.copies { format!("`contigo selftest --driver {}`", row.name) } else { String::new() });
        page.push('\n');
    });
    let page = wrapped(&page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cores.md");
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(fs::read_to_string(&path).is_ok_and(|old| old == page), "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-tests --test names");
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Lines of 100 columns; tables stay as they are.
fn wrapped(page: &str) -> String {
    let mut out = String::new();
    for line in page.lines() {
        let (mut columns, indent) = (0, if line.starts_with("- ") { "  " } else { "" });
        for word in if line.starts_with('|') { vec![line] } else { line.split(' ').collect() } {
            if columns > 0 && columns + 1 + word.len() > 100 {
                out += "\n";
                out += indent;
                columns = indent.len();
            } else if columns > 0 {
                out += " ";
                columns += 1;
            }
            out += word;
            columns += word.len();
        }
        out += "\n";
    }
    out
}
