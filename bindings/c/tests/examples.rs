//! The examples in C: compiled without a warning, run, and run again where a sanitizer or valgrind
//! looks. For the processors of the boards too, where their compilers and libraries are here: the
//! tests of `cargo test --target …` run under qemu-user, and so do the examples.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo_testkit::{emulated, rounds};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, thread};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// Each example, and what it says where all is well: without NVIDIA's driver.
const EXAMPLES: [(&str, &str); 7] = [
    ("examples/kernel", "8 jobs of 1000 bytes, 2 at once, 0 wrong"),
    ("examples/own_driver", "1000 packets, 0 wrong bytes, 1000 calls of its own engine refused"),
    ("examples/loaded", "1000 jobs, 0 wrong bytes"),
    ("examples/frames", "0 misuses were missed"),
    ("examples/dlpack", "8 frames, 0 wrong, bytes copied: 0"),
    ("examples/names", "device\tsim:zdma\tready\t\n"),
    ("examples/jetson", "no GPU here: CONTIGO_E_NO_LIBRARY: libcuda.so.1 cannot be loaded: "),
];
/// Programs that documents quote.
const QUOTED: [(&str, &str); 5] = [
    ("../../docs/examples/accelerator", "accelerator: 0 wrong"),
    ("../../docs/examples/camera", "camera: 2000 frames, 0 lost, 2000 bright, 0 bytes copied"),
    ("../../docs/examples/fir", "fir: 392, 0 wrong"),
    ("../../docs/examples/first", "first: 1000 bytes are right"),
    ("../../docs/examples/jobs", "jobs: 0 wrong"),
];
/// The same, where a driver of OpenCL is, or says that none is.
const OPENCL: &str = "../../docs/examples/opencl";
/// The same, which want a board or a GPU: they are compiled.
const NOT_RUN: [&str; 5] = [
    "../../docs/examples/accelerator_board",
    "../../docs/examples/board",
    "../../docs/examples/capi",
    "../../docs/examples/gpu",
    "../../docs/examples/udmabuf",
];
/// The libraries that Rust's standard library asks of a static link:
/// `rustc --print native-static-libs`.
const LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// The C compiler for this program's processor.
fn compiler() -> &'static str {
    match (env::consts::ARCH, emulated::why().is_some()) {
        ("arm", true) => "arm-linux-gnueabihf-gcc",
        ("aarch64", true) => "aarch64-linux-gnu-gcc",
        _ => "cc",
    }
}

/// The static library that Cargo built beside this program.
fn library() -> PathBuf {
    let own = env::current_exe().unwrap();
    own.parent().unwrap().join("libcontigo_c.a")
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    format!("{}\n{out}{err}", output.status)
}

/// Runs it, and answers what it said where it succeeds.
#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    text(&output)
}

/// Skips the test that runs, whose thread the harness names after it.
fn skip(why: &str) {
    contigo_testkit::skipped(thread::current().name().unwrap_or("examples"), why);
}

/// Skips a test without one of these tools.
fn lacks(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| !exists(tool));
    missing.map(|tool| skip(&format!("{tool} is not here"))).is_some()
}

/// Skips a test under an emulator, or without one of these tools.
fn cannot(tools: &[&str]) -> bool {
    emulated::why().map(|why| skip(&why)).is_some() || lacks(tools)
}

/// As a user compiles, warnings being errors.
const STRICT: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"];

/// Compiles one example.
fn compile(folder: &Path, example: &str, more: &[&str]) -> Result<PathBuf, String> {
    let program = folder.join(Path::new(example).file_name().unwrap());
    let output = Command::new(compiler())
        .args(STRICT)
        .args(["-g", "-O1"])
        .args(more)
        .arg("-I")
        .arg(Path::new(CRATE).join("include"))
        .arg(Path::new(CRATE).join(format!("{example}.c")))
        .arg(library())
        .args(LIBRARIES)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    if output.status.success() { Ok(program) } else { Err(text(&output)) }
}

/// The driver that `loaded.c` loads, in the folder where it runs.
fn copier(folder: &Path) {
    succeeds(
        Command::new(compiler())
            .args(STRICT)
            .args(["-shared", "-fPIC", "-o"])
            .arg(folder.join("libcopier.so"))
            .arg("-I")
            .arg(Path::new(CRATE).join("include"))
            .arg(Path::new(CRATE).join("examples/copier.c")),
    );
}

/// Compiles all of them, and runs each below each of these tools, an empty one being none.
fn run(more: &[&str], tools: &[&[&str]]) {
    if lacks(&[compiler()]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // This is found before any driver that is installed.
    fs::write(folder.path().join("libcuda.so.1"), "no library").unwrap();
    copier(folder.path());
    for (n, (example, expected)) in EXAMPLES.into_iter().chain(QUOTED).enumerate() {
        let program =
            compile(folder.path(), example, more).unwrap_or_else(|why| panic!("{example}: {why}"));
        for tool in tools {
            let mut command = match tool.split_first() {
                // A third of them on a developer's machine.
                Some(_) if n % 3 != 0 && rounds(10) < 10 => continue,
                Some((tool, arguments)) => {
                    let mut command = Command::new(tool);
                    command.args(arguments).arg(&program);
                    command
                }
                None => emulated::command(&program),
            };
            let said =
                succeeds(command.env("LD_LIBRARY_PATH", folder.path()).current_dir(folder.path()));
            assert!(said.contains(expected), "{example}: {said}");
        }
    }
}

/// By themselves and, where it is here, under valgrind, which finds what they do not give back.
#[test]
fn they_run_and_leak_nothing() {
    const VALGRIND: [&str; 5] =
        ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=all"];
    if cannot(&["valgrind"]) { run(&[], &[&[]]) } else { run(&[], &[&[], &VALGRIND]) }
}

/// Each program that documents quote is listed here.
#[test]
fn documents_quote_what_compiles() {
    if lacks(&[compiler()]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for example in NOT_RUN {
        compile(folder.path(), example, &[]).unwrap_or_else(|why| panic!("{example}: {why}"));
    }
    let listed = QUOTED.iter().map(|(example, _)| example).chain(&NOT_RUN).chain([&OPENCL]);
    let listed: BTreeSet<_> =
        listed.map(|example| Path::new(CRATE).join(format!("{example}.c"))).collect();
    let there = fs::read_dir(Path::new(CRATE).join("../../docs/examples")).unwrap();
    let there = there.map(|entry| entry.unwrap().path());
    let there: BTreeSet<_> =
        there.filter(|path| path.extension().is_some_and(|kind| kind == "c")).collect();
    assert_eq!(there, listed);
}

/// On the machine's driver of OpenCL, which may be pocl; and where there is no loader.
#[test]
#[cfg(feature = "gpu")]
fn a_gpu_of_opencl_scales() {
    if lacks(&[compiler()]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), OPENCL, &[]).unwrap_or_else(|why| panic!("{why}"));
    // This is found before any loader that is installed.
    fs::write(folder.path().join("libOpenCL.so.1"), "no library").unwrap();
    let none = succeeds(
        emulated::command(&program)
            .env("LD_LIBRARY_PATH", folder.path())
            .env_remove("OPENCL_DYLIB_PATH"),
    );
    assert!(
        none.contains(
            "no GPU here: CONTIGO_E_NO_LIBRARY: opencl: libOpenCL.so.1 cannot be loaded: "
        ),
        "{none}"
    );
    let scaled = succeeds(&mut emulated::command(&program));
    if scaled.contains("no GPU here: ") {
        return skip("there is no driver of OpenCL");
    }
    assert!(scaled.contains("499.5, bytes copied: 0"), "{scaled}");
}

/// With a driver that stands in for NVIDIA's.
#[test]
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
fn a_gpu_has_the_frames() {
    if lacks(&[compiler()]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fake_cuda::library(), folder.path().join("libcuda.so.1")).unwrap();
    let program =
        compile(folder.path(), "examples/jetson", &[]).unwrap_or_else(|why| panic!("{why}"));
    let ptx = Path::new(CRATE).join("../../examples/gemm8/kernels/gemm8.ptx");
    let said = succeeds(emulated::command(&program).arg(ptx).env("LD_LIBRARY_PATH", folder.path()));
    for line in [
        "the CPU's buffer: kDLCUDAHost (3, device 0)",
        "the GPU's buffer: kDLCUDA (2, device 0)",
        "4 frames, 0 wrong, bytes copied: 0",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn they_run_under_the_address_sanitizer() {
    const SANITIZE: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    if cannot(&[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    if let Err(why) = compile(folder.path(), "examples/kernel", &SANITIZE) {
        return skip(why.lines().nth(1).unwrap_or("it does not link"));
    }
    run(&SANITIZE, &[&[]]);
}

/// `make install` into `folder`, and the prefix.
fn install(folder: &Path) -> PathBuf {
    let prefix = folder.join("usr");
    let built = library().parent().unwrap().to_path_buf();
    let path = |name: &str, value: &Path| {
        let mut argument = OsString::from(name);
        argument.push(value);
        argument
    };
    succeeds(
        Command::new("make")
            .args(["-s", "-C", CRATE, "install", "LIBDIR=lib"])
            .args([path("PREFIX=", &prefix), path("BUILT=", &built)]),
    );
    prefix
}

/// The flags that pkg-config has for it.
fn flags(prefix: &Path, more: &[&str]) -> Vec<String> {
    let said = Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .args(more)
        .args(["--cflags", "--libs", "contigo"])
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", text(&said));
    String::from_utf8(said.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// With pkg-config's flags, and the shared library found by the loader under its installed name.
#[test]
fn they_run_with_what_is_installed() {
    if cannot(&["make", "pkg-config", "cc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = install(folder.path());
    let flags = flags(&prefix, &[]);
    fs::write(folder.path().join("libcuda.so.1"), "no library").unwrap();
    copier(folder.path());
    let libraries = env::join_paths([prefix.join("lib"), folder.path().to_path_buf()]).unwrap();
    for (example, _) in EXAMPLES {
        let program = folder.path().join(Path::new(example).file_name().unwrap());
        succeeds(
            Command::new("cc")
                .args(STRICT)
                .arg(Path::new(CRATE).join(format!("{example}.c")))
                .args(&flags)
                .arg("-o")
                .arg(&program),
        );
        succeeds(
            Command::new(&program).env("LD_LIBRARY_PATH", &libraries).current_dir(folder.path()),
        );
    }
}

/// With the library inside, and with the C library inside too: a program of one file.
#[test]
fn example_links_statically_to_install() {
    if cannot(&["make", "pkg-config", "cc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = install(folder.path());
    // No program finds it by mistake.
    fs::remove_file(prefix.join("lib/libcontigo.so")).unwrap();
    let flags = flags(&prefix, &["--static"]);
    for (name, more) in [("inside", [].as_slice()), ("static", &["-static"])] {
        let program = folder.path().join(name);
        succeeds(
            Command::new("cc")
                .args(more)
                .arg(Path::new(CRATE).join("examples/kernel.c"))
                .args(&flags)
                .arg("-o")
                .arg(&program),
        );
        let said = succeeds(Command::new(&program).env_remove("LD_LIBRARY_PATH"));
        assert!(said.contains("0 wrong"), "{name}: {said}");
    }
}

/// With `find_package(contigo)`, the shared and the static library, and a program of one file.
#[test]
fn cmake_finds_what_is_installed() {
    const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.13)
project(example C)
set(CMAKE_C_STANDARD 11)
find_package(contigo 0.1 REQUIRED)
add_executable(shared "${EXAMPLE}")
target_link_libraries(shared PRIVATE contigo::contigo)
add_executable(static "${EXAMPLE}")
target_link_libraries(static PRIVATE contigo::static)
add_executable(alone "${EXAMPLE}")
target_link_libraries(alone PRIVATE contigo::static -static)
"#;
    if cannot(&["make", "cmake", "cc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = install(folder.path());
    fs::write(folder.path().join("CMakeLists.txt"), PROJECT).unwrap();
    let build = folder.path().join("build");
    succeeds(
        Command::new("cmake")
            .arg("-S")
            .arg(folder.path())
            .arg("-B")
            .arg(&build)
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
            .arg(format!("-DEXAMPLE={CRATE}/examples/kernel.c")),
    );
    succeeds(Command::new("cmake").arg("--build").arg(&build));
    for program in ["shared", "static", "alone"] {
        succeeds(&mut Command::new(build.join(program)));
    }
}
