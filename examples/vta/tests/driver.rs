//! The driver in C against the model: compiled without a warning, and run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo_testkit::emulated;
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const DRIVER: [&str; 4] = ["memory", "run", "settings", "stream"];
/// `rustc --print native-static-libs`.
const LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];
const FLAGS: [&str; 7] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1"];

/// The C compiler for this program's processor.
fn compiler() -> &'static str {
    match (env::consts::ARCH, emulated::why().is_some()) {
        ("arm", true) => "arm-linux-gnueabihf-gcc",
        ("aarch64", true) => "aarch64-linux-gnu-gcc",
        _ => "cc",
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn compile(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

fn cc(more: &[&str]) -> Command {
    let mut command = Command::new(compiler());
    command
        .args(FLAGS)
        .args(more)
        .args(["include", "../../bindings/c/include"].map(|folder| format!("-I{CRATE}/{folder}")));
    command
}

/// The driver with one program of `tests/programs`; `more` is for the driver alone.
fn program(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let objects: Vec<PathBuf> = DRIVER
        .iter()
        .map(|file| {
            let object = folder.join(format!("{file}.o"));
            compile(
                cc(more).arg("-c").arg(format!("{CRATE}/driver/{file}.c")).arg("-o").arg(&object),
            );
            object
        })
        .collect();
    let library = env::current_exe().unwrap().parent().unwrap().join("libcontigo_vta.a");
    let program = folder.join(name);
    let sources =
        [format!("{CRATE}/tests/programs/{name}.c"), format!("{CRATE}/tests/programs/mutants.c")];
    let target: Vec<&str> =
        more.iter().copied().filter(|flag| !flag.starts_with("-Dcontigo")).collect();
    compile(
        cc(&target)
            .args(sources)
            .args(objects)
            .arg(library)
            .args(LIBRARIES)
            .arg("-o")
            .arg(&program),
    );
    program
}

fn no_compiler(test: &str) -> bool {
    let missing = Command::new(compiler()).arg("--version").output().is_err();
    if missing {
        contigo_testkit::skipped(test, &format!("{} is not here", compiler()));
    }
    missing
}

/// Compiles it and runs it; `None` where there is no compiler.
fn run(test: &str, name: &str, more: &[&str]) -> Option<Output> {
    if no_compiler(test) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    Some(emulated::command(program(folder.path(), name, more)).output().unwrap())
}

#[test]
fn layers_are_right() {
    let Some(output) = run("driver::layers_are_right", "runs", &[]) else { return };
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("40 layers, 0 failed, 0 wrong bytes; "), "{said}");
}

/// By the registers of the DE10-Nano.
#[test]
fn layers_are_right_on_a_de10_nano() {
    let Some(output) =
        run("driver::layers_are_right_on_a_de10_nano", "runs", &["-DVTA_TARGET_DE10NANO"])
    else {
        return;
    };
    let said = text(&output);
    assert!(
        output.status.success() && said.contains("40 layers, 0 failed, 0 wrong bytes; "),
        "{said}"
    );
}

/// The same program, while the driver leaves out or shortens what it owes: each shows as wrong
/// bytes.
#[test]
fn missing_maintenance_shows() {
    for mutant in [
        "-Dcontigo_buf_give=give_half",
        "-Dcontigo_buf_give=give_a_line",
        "-Dcontigo_buf_give=give_to_read",
    ] {
        let Some(output) = run("driver::missing_maintenance_shows", "runs", &[mutant]) else {
            return;
        };
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{mutant}: {said}");
        assert!(!said.contains(" 0 wrong bytes"), "{mutant}: {said}");
    }
}

/// Refusals before the start, a device that is reset, registers, threads.
#[test]
fn bad_streams_are_refused() {
    let Some(output) = run("driver::bad_streams_are_refused", "refusals", &[]) else { return };
    let said = text(&output);
    assert!(output.status.success() && said.contains("0 missed"), "{said}");
}

/// A function without an answer ends the program, and says why.
#[test]
fn wrong_data_is_not_gone_on_with() {
    if no_compiler("driver::wrong_data_is_not_gone_on_with") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "refusals", &[]);
    let ways = [
        ("free", "is no buffer of VTAMemAlloc"),
        ("copy", "4097 bytes at "),
        ("flush", " is at 0x"),
        ("register", "is not in the device's window"),
        ("start", "a run of no instructions"),
        ("program", "load the bitstream first"),
    ];
    for (how, why) in ways {
        let output = emulated::command(&program).arg(how).output().unwrap();
        let said = text(&output);
        assert!(
            !output.status.success()
                && said.contains(why)
                && said.contains("the program ends here"),
            "{how}: {said}"
        );
    }
}

/// Addresses of 64 bits, and larger blocks: they compile.
#[test]
fn every_configuration_compiles() {
    if no_compiler("driver::every_configuration_compiles") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for flags in [["-DUSE_VTA64", "-O2"], ["-DVTA_LOG_BLOCK_IN=5", "-DVTA_LOG_BLOCK_OUT=5"]] {
        for file in DRIVER {
            compile(
                cc(&flags)
                    .arg("-c")
                    .arg(format!("{CRATE}/driver/{file}.c"))
                    .arg("-o")
                    .arg(folder.path().join("object")),
            );
        }
    }
}
