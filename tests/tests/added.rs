//! A kind of memory, added in the five files that CONTRIBUTING.md names, is there in the tool, in C
//! and in Python. So is a driver, added in one folder and a list.
//!
//! They are added in a copy of this tree, and built there without a network. The build is kept in
//! `target/tmp`, so that only the first run takes its minutes.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo_testkit::{
    copied::{self, Copied, said},
    emulated,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PAGE: &str = "CONTRIBUTING.md";

/// The text for each file. A new file is this text; to another it is added after a line, or at the
/// end.
const ADDED: [(&str, After, &str); 11] = [
    ("runtime/src/linux/memory/acme.rs", After::Nothing, include_str!("added/acme.rs")),
    ("runtime/src/linux/memory/mod.rs", After::All, "\nmod acme;\npub use self::acme::Acme;\n"),
    ("runtime/src/names/rows.rs", After::Line("blocks! {\n"), "    Acme(crate::linux::memory::Acme),\n"),
    ("runtime/src/names/rows.rs", After::Line("        \"\\\n"), "| `acme:x` | [`Acme::open`](crate::linux::memory::Acme::open) |\n"),
    (
        "runtime/src/names/rows.rs",
        After::Line("static MEMORIES: &[MemoryRow] = &[\n"),
        r#"    MemoryRow {
        kind: "acme",
        argument: Argument::File,
        syntax: "acme:NAME",
        help: "a block of Acme's memory",
        find: Find::By(|_, each| each("x")),
        look: found::nothing,
        missing: "Acme makes none for this machine",
        device: |_| None,
        open: Some(|name, _, len_bytes| Ok(crate::linux::memory::Acme::open(name.argument(), len_bytes)?.into())),
        feature: "linux",
    },
"#,
    ),
    (
        "testkit/src/conformance/fakes.rs",
        After::All,
        r#"
/// Acme's memory: every machine has the pages, and nobody the bus.
pub fn on_acme() -> OnMemory<impl Fn(usize) -> Result<contigo::names::AnyMemory, Failure>> {
    OnMemory::new(|len_bytes: usize| {
        let name: contigo::names::MemoryName = "acme:x".parse().map_err(contigo::Error::from)?;
        Ok(name.open(len_bytes)?)
    })
}
"#,
    ),
    ("tests/tests/conformance.rs", After::Line("\nconformance! {\n"), "    acme: conformance::fakes::on_acme();\n"),
    ("runtime/src/drivers/widget/mod.rs", After::Nothing, include_str!("added/widget.rs")),
    ("runtime/src/drivers/widget/registry.rs", After::Nothing, include_str!("added/registry.rs")),
    ("runtime/src/drivers/mod.rs", After::Line("pub mod pl330;\n"), "pub mod widget;\n"),
    ("runtime/src/drivers/mod.rs", After::Line("        $table! { "), "widget "),
];

#[derive(Clone, Copy)]
enum After {
    /// There is no such file yet.
    Nothing,
    /// This, which is there once.
    Line(&'static str),
    /// The whole file.
    All,
}

const C: &str = r#"
#include <contigo.h>
#include <stdio.h>

#define OK(call) do { if ((call) != CONTIGO_OK) { contigo_last_error(text, sizeof text); puts(#call ": "); puts(text); return 1; } } while (0)

int main(void)
{
    contigo_region memory;
    contigo_device device;
    contigo_engine engine;
    contigo_pool pool;
    contigo_buf from, to;
    contigo_job job;
    void *bytes;
    char text[2048];
    OK(contigo_region_open("acme:x", 1 << 20, &memory));
    OK(contigo_region_close(memory));
    if (contigo_region_open("acme:y", 1 << 20, &memory) == CONTIGO_OK)
        return 2;
    contigo_last_error(text, sizeof text);
    puts(text);

    OK(contigo_device_open("sim:widget", &device));
    OK(contigo_device_memory(device, "sim", 1 << 16, &memory));
    OK(contigo_pool_open(memory, 4096, 2, 0, &pool));
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "widget", .device = device};
    OK(contigo_engine_open(&options, &engine));
    OK(contigo_pool_take(pool, &from));
    OK(contigo_pool_take(pool, &to));
    OK(contigo_buf_map(from, CONTIGO_WRITE, &bytes, NULL));
    ((unsigned char *)bytes)[99] = 7;
    OK(contigo_buf_unmap(from));
    const contigo_operand operands[2] = {{.buf = from, .len_bytes = 100}, {.buf = to, .len_bytes = 100}};
    OK(contigo_job_start(engine, operands, 2, NULL, 0, &job));
    OK(contigo_job_wait(job, 10000, NULL));
    OK(contigo_buf_map(to, CONTIGO_READ, &bytes, NULL));
    printf("the widget copied a %d\n", ((unsigned char *)bytes)[99]);
    OK(contigo_buf_unmap(to));
    return 0;
}
"#;

const PYTHON: &str = r#"
import contigo
region = contigo.open_memory("acme:x", 1 << 20, port=("invented", 0, 32, True))
assert region.allocate(64, "float32").device_address >= 0x40000000
assert [entry["state"] for entry in contigo.inventory() if entry["name"] == "acme:x"] == ["ready"]
try:
    contigo.open_memory("acme:y")
except FileNotFoundError as error:
    print(region, error)

device = contigo.Device("sim:widget")
region = device.memory("sim", 1 << 16)
x, y = region.allocate(100, "uint8"), region.allocate(100, "uint8")
with device.driver("widget") as engine:
    engine.start([x, y]).wait(timeout=0.1)
print("the widget copied", len(y), "bytes")
"#;

/// The files that the page's tables say: the first cell of each row that names one.
fn of_the_page(page: &str) -> BTreeSet<PathBuf> {
    let added = |section: &&str| section.starts_with("A new memory\n") || section.starts_with("A new driver\n");
    let lines = page.split("\n## ").filter(added).flat_map(str::lines);
    let rows = lines.filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(file, _)| file.replace("KIND", "acme").replace("CORE", "widget").into()).collect()
}

/// Adds it. The compiler works again where a file is newer than the last run: the originals, or
/// this test.
fn add(copy: &Copied) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let times = ["added.rs", "added/acme.rs", "added/widget.rs", "added/registry.rs"]
        .map(|file| fs::metadata(here.join(file)).unwrap().modified().unwrap());
    for (file, after, text) in ADDED {
        let path = copy.tree().join(file);
        let text = match after {
            After::Nothing => text.to_owned(),
            After::All => fs::read_to_string(path).unwrap() + text,
            After::Line(line) => {
                let whole = fs::read_to_string(path).unwrap();
                assert_eq!(whole.matches(line).count(), 1, "{file} does not have this once: {line}");
                whole.replacen(line, &format!("{line}{text}"), 1)
            }
        };
        copy.write(file, &text, times.into_iter().max()).unwrap();
    }
}

/// Its output; it has to succeed.
fn runs(command: &mut Command) -> String {
    let (succeeded, said) = said(command).unwrap();
    assert!(succeeded, "{command:?}:\n{said}");
    said
}

/// Without the optimization that the workspace's tests have: these run once.
fn cargo(copy: &Copied, words: &str) -> String {
    let plain = ["contigo", "contigo-testkit"].map(|package| format!("--config=profile.dev.package.{package}.opt-level=0"));
    runs(copy.command("cargo").args(words.split(' ')).args(plain))
}

fn the_suite_and_the_tool(copy: &Copied) {
    assert!(cargo(copy, "test --locked --package contigo-tests --test conformance acme").contains(" 0 failed"));
    let program = copy.target().join("debug/contigo");
    let tool = |words: &str| said(copy.command(program.to_str().unwrap()).args(words.split(' '))).unwrap();
    for (words, succeeds, answer) in [
        ("info --json", true, "\"acme:x\""),
        ("demo --memory acme:x --images 20 --json --png ../demo.png", true, "\"heap_allocations\": 0"),
        ("selftest --device sim:widget --memory sim --jobs 200", true, "passed"),
        ("demo --memory acme:y", false, "there is no such memory of Acme; others that are here: 1; this machine has acme:x; "),
    ] {
        let (succeeded, said) = tool(words);
        assert!(succeeded == succeeds && said.contains(answer), "contigo {words}:\n{said}");
    }
}

fn c(copy: &Copied) -> Result<(), &'static str> {
    if Command::new("cc").arg("--version").output().is_err() {
        return Err("cc is not installed");
    }
    let (folder, built) = (copy.target().join("c"), copy.target().join("debug/libcontigo_c.so"));
    let (source, program) = (folder.join("acme.c"), folder.join("acme"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(&source, C).unwrap();
    // The name that a program looks for.
    fs::copy(&built, folder.join("libcontigo.so.2")).unwrap();
    runs(copy.command("cc").args(["-Werror", "-Icapi/include", "-o"]).args([&program, &source, &built]));
    let said = runs(copy.command(program.to_str().unwrap()).env("LD_LIBRARY_PATH", folder));
    assert!(said.contains("no such memory of Acme") && said.contains("the widget copied a 7"), "{said}");
    Ok(())
}

fn python(copy: &Copied) -> Result<(), &'static str> {
    let old = Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status();
    if !old.is_ok_and(|status| status.success()) {
        return Err("python3, 3.9 or newer, is not installed");
    }
    const MANIFEST: &str = "--locked --manifest-path python/Cargo.toml";
    if !said(copy.command("cargo").args(format!("fetch {MANIFEST}").split(' '))).unwrap().0 {
        return Err("PyO3 is not here: cargo fetch --manifest-path python/Cargo.toml");
    }
    cargo(copy, &format!("build {MANIFEST}"));
    let package = copy.target().join("python/contigo");
    fs::create_dir_all(&package).unwrap();
    for file in fs::read_dir(copy.tree().join("python/package/contigo")).unwrap().flatten() {
        if file.path().extension().is_some_and(|extension| extension == "py") {
            fs::copy(file.path(), package.join(file.file_name())).unwrap();
        }
    }
    fs::copy(copy.target().join("debug/lib_contigo.so"), package.join("_contigo.abi3.so")).unwrap();
    let said = runs(copy.command("python3").args(["-c", PYTHON]).env("PYTHONPATH", copy.target().join("python")));
    assert!(said.contains("contigo.Region('acme:x', 1048576) acme:y: there is no such memory of Acme"), "{said}");
    assert!(said.contains("the widget copied 100 bytes"), "{said}");
    Ok(())
}

#[test]
fn what_is_added_in_the_files_of_the_page_is_in_every_language() {
    let skipped = |part: &str, why: &str| emulated::skipped(&format!("added::{part}"), why);
    if emulated::finds_no_more("its build is the same for every processor") {
        return;
    }
    if let Some(why) = copied::why_not() {
        return skipped("all", why);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("added");
    let Some(copy) = Copied::new(&root, &scratch, &[]).unwrap() else { return skipped("all", "this is no git checkout") };
    add(&copy);
    let page = of_the_page(&fs::read_to_string(root.join(PAGE)).unwrap());
    assert_eq!(page.len(), 8, "{page:?}");
    assert_eq!(copy.changed().unwrap(), page, "the files that were added, and those that {PAGE} names");

    cargo(&copy, "build --locked --package contigo-cli --package contigo-c");
    the_suite_and_the_tool(&copy);
    c(&copy).unwrap_or_else(|why| skipped("c", why));
    python(&copy).unwrap_or_else(|why| skipped("python", why));
}
