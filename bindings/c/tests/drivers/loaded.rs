//! Drivers in shared libraries: `examples/copier.c`, a driver that looks at its device and its
//! memory, and files that are wrong on purpose.

use crate::common::*;
use contigo_c::*;
use contigo_testkit::emulated;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, thread};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// A driver of four functions that do nothing, and what is wrong with it by `-D`.
fn odd_source() -> PathBuf {
    Path::new(CRATE).join("tests/drivers/odd.c")
}

/// Compiles `source` to a shared library.
fn library(folder: &Path, name: &str, source: &Path, more: &[&str]) -> CString {
    let to = folder.join(format!("lib{name}.so"));
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"])
        .args(more)
        .args(["-I", &format!("{CRATE}/include"), "-o"])
        .args([&to, source])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    CString::new(to.to_str().unwrap()).unwrap()
}

fn skipped() -> bool {
    let no_compiler = || {
        let missing = Command::new("cc").arg("--version").output().is_err();
        missing.then(|| "there is no C compiler".to_owned())
    };
    let why = emulated::why().or_else(no_compiler);
    why.as_deref().map(skip).is_some()
}

#[test]
fn a_program_in_c_names_the_file() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copier = library(folder.path(), "copier", &Path::new(CRATE).join("examples/copier.c"), &[]);
    let board = Board::new();
    let device = sim_device(board.sim, c"ap_ctrl");
    let options = contigo_engine_options {
        settings: c"stop_us=2000".as_ptr(),
        ..engine_options(&copier, device, 0, 0)
    };
    for _ in 0..3 {
        let engine = open_engine(&options);
        let operands = [part(board.take(), 512), part(board.take(), 512)];
        ok(unsafe { contigo_buf_write(operands[0].buf, [9_u8; 512].as_ptr().cast(), 512) });
        let job = start_job(engine, &operands, &[]);
        // The library knows the driver's device: no other engine gets it, and it is the one that is
        // blamed.
        refused(try_engine(&options), CONTIGO_E_HAS_DRIVER, "");
        ok(wait(job, 20_000));
        assert_eq!(bytes(operands[1].buf)[..512], [9; 512]);
        release_all(&operands);
        ok(contigo_engine_close(engine));
    }
    let engine = open_engine(&options);
    let [short, long] = [64, 512].map(|len| part(board.take(), len));
    let why =
        "copier takes no such job: operand 1 is shorter than operand 0 (its check answered 1)";
    refused(try_job(engine, &[long, short], &[]).0, CONTIGO_E_DRIVER_CHECK, why);
    release_all(&[short, long]);
    ok(contigo_engine_close(engine));
    let far = contigo_engine_options { settings: c"stop_us=0".as_ptr(), ..options };
    refused(try_engine(&far), CONTIGO_E_ARGUMENT, "stop_us");
    let other = contigo_engine_options { settings: c"speed=3".as_ptr(), ..options };
    refused(try_engine(&other), CONTIGO_E_UNKNOWN_SETTING, "`speed`");
    // By its name, too, from now on.
    ok(contigo_engine_close(open_engine(&contigo_engine_options {
        driver: c"copier".as_ptr(),
        ..options
    })));
    ok(contigo_device_close(device));
    board.close();
}

#[test]
fn driver_sees_device_settings_and_memory() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = odd_source();
    let odd = library(folder.path(), "odd", &source, &[]);
    let board = Board::new();
    let device = sim_device(board.sim, c"ap_ctrl");
    let options = engine_options(&odd, device, board.port, board.region);
    let with = |settings: &'static std::ffi::CStr| contigo_engine_options {
        settings: settings.as_ptr(),
        ..options
    };
    let free = || region_info(board.region).free_bytes;
    // A newer library's completion is larger.
    let newer = library(folder.path(), "newer", &source, &["-DNEWER", "-DNAME=\"newer\""]);
    let before = free();
    let engine = open_engine(&contigo_engine_options { driver: newer.as_ptr(), ..options });
    let operand = part(board.take(), 64);
    ok(wait(start_job(engine, &[operand], &[]), 1_000));
    [contigo_buf_release(operand.buf), contigo_engine_close(engine)]
        .into_iter()
        .for_each(|status| ok(status));
    let engine = open_engine(&with(c"at=64"));
    assert!(free() < before);
    let operand = part(board.take(), 64);
    let job = start_job(engine, &[operand], &[]);
    let mut done = empty::<contigo_completion>();
    ok(unsafe { contigo_job_wait(job, 1_000, &mut done) });
    assert_eq!(done.status, 42);
    ok(contigo_engine_close(engine));
    assert_eq!(free(), before, "a device that stopped fetches nothing: its memory is back");
    // What one of the device's functions refuses comes to the program as it was.
    refused(try_engine(&with(c"at=4092")), CONTIGO_E_OUT_OF_RANGE, "bytes 4092..4100 are outside");
    refused(try_engine(&with(c"at=2")), CONTIGO_E_MISALIGNED, "");
    refused(try_engine(&with(c"at=x")), CONTIGO_E_NOT_A_NUMBER, "at");
    refused(
        try_engine(&contigo_engine_options { region: 0, ..options }),
        CONTIGO_E_UNSUPPORTED,
        "memory of its own",
    );
    assert_eq!(free(), before, "and nothing of it is left");
    // A device that does not stop keeps the memory.
    refused(try_engine(&with(c"stuck=1")), CONTIGO_E_WILL_NOT_STOP, "odd");
    assert!(free() < before, "a device that may still fetch keeps it");
    ok(contigo_buf_release(operand.buf));
}

/// Its tables are its own: `open` of two threads' engines runs one at a time.
#[test]
fn a_driver_with_one_table_opens_in_two_threads() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = odd_source();
    let table = library(folder.path(), "table", &source, &["-DTABLE", "-DNAME=\"table\""]);
    let wrong = |most: usize| {
        let board = Board::new();
        let device = sim_device(board.sim, c"ap_ctrl");
        let settings = CString::new(format!("at={most}")).unwrap();
        let options = contigo_engine_options {
            settings: settings.as_ptr(),
            ..engine_options(&table, device, board.port, board.region)
        };
        let rounds = (0..50).filter(|_| {
            let engine = open_engine(&options);
            let spec = answer(|spec| unsafe { contigo_engine_get_operand(engine, 0, spec) });
            ok(contigo_engine_close(engine));
            spec.max_bytes != most
        });
        let wrong = rounds.count();
        ok(contigo_device_close(device));
        board.close();
        wrong
    };
    let both = thread::scope(|scope| {
        [64, 1024].map(|most| scope.spawn(move || wrong(most))).map(|thread| thread.join().unwrap())
    });
    assert_eq!(both, [0, 0], "engines with the other's operands");
}

#[test]
fn wrong_files_are_refused_with_reason() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = odd_source();
    let board = Board::new();
    let device = sim_device(board.sim, c"ap_ctrl");
    let refuse = |path: &CString, code, word: &str| {
        let options = engine_options(path, device, board.port, board.region);
        refused(try_engine(&options), code, word);
    };
    let path = |name: &str| CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
    let long =
        CString::new(format!("{}/{}", folder.path().display(), "./".repeat(200) + "none.so"))
            .unwrap();
    let none = "none.so: cannot open shared object file";
    refuse(&long, CONTIGO_E_NO_LIBRARY, none);
    refuse(&c"none.so".to_owned(), CONTIGO_E_NO_LIBRARY, &format!("./{none}"));
    refuse(&path("none.so"), CONTIGO_E_NO_LIBRARY, &format!("{none}: No such file or directory"));
    refuse(&CString::new(source.to_str().unwrap()).unwrap(), CONTIGO_E_NO_LIBRARY, "odd.c: ");
    let wrong = folder.path().join("wrong.c");
    for (name, text, word) in [
        ("empty", "int nothing_here;", "undefined symbol: contigo_driver"),
        (
            "missing",
            "extern int none(void); int used(void) { return none(); }",
            "undefined symbol: none",
        ),
    ] {
        fs::write(&wrong, format!("{text}\n")).unwrap();
        refuse(&library(folder.path(), name, &wrong, &[]), CONTIGO_E_NO_LIBRARY, word);
    }
    let odd = |name: &str, defect: &str| {
        let defects: Vec<_> = defect.split(' ').chain(["-Wno-unused-function"]).collect();
        library(folder.path(), name, &source, &defects)
    };
    for (name, defect, code, word) in [
        ("size", "-DSIZE=8", CONTIGO_E_STRUCT, "contigo_driver.struct_size is 8"),
        ("unopened", "-DOPEN=NULL", CONTIGO_E_NULL, "contigo_driver.open is NULL"),
        ("nameless", "-DNAME=\"\"", CONTIGO_E_TEXT, "contigo_driver.name"),
        ("path", "-DNAME=\"a/b\"", CONTIGO_E_TEXT, "contigo_driver.name"),
        ("taken", "-DNAME=\"zdma\"", CONTIGO_E_NO_LIBRARY, "there is a driver zdma already"),
        ("many", "-DOPERANDS=17 -DNAME=\"many\"", CONTIGO_E_DRIVER, "(it answered 17)"),
        ("later", "-DRESERVED=1 -DNAME=\"later\"", CONTIGO_E_VALUE, "reserved cannot be 1"),
    ] {
        refuse(&odd(name, defect), code, word);
    }
    ok(contigo_device_close(device));
    board.close();
}
