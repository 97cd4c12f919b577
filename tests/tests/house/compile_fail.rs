//! The programs that must not compile: one file in `compile_fail/` for each ownership rule.
//!
//! Every compiler must refuse each file with the error that its first line names. The whole
//! message, which is what a user reads, is compared with the `.stderr` beside it where the compiler
//! is the one that wrote those: `TRYBUILD=overwrite cargo test -p contigo-tests --test
//! house compile_fail` writes them anew.

use contigo_testkit::emulated;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The compiler whose words are in the `.stderr` files.
const RUSTC: &str = "1.95.0";

const COMPILER: &str = "the compiler refuses the same for every processor";

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of `compile_fail/`, in order.
fn files() -> Vec<PathBuf> {
    let entries =
        fs::read_dir(here().join("compile_fail")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files
}

/// The compiler that the cargo above uses too.
fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// The runtime and the example of a driver as cargo builds them here and now: their libraries, and
/// the folder of what they need.
struct Runtime {
    libraries: [(&'static str, PathBuf); 2],
    folder: PathBuf,
}

impl Runtime {
    fn build() -> Self {
        let target = here().parent().unwrap().join("target").join("compile_fail");
        let output = Command::new(env!("CARGO"))
            .current_dir(here())
            .args([
                "build",
                "--locked",
                "--package",
                "contigo",
                "--package",
                "contigo-gemm8",
                "--features",
                "contigo-gemm8/sim",
            ])
            .args(["--message-format", "json", "--target-dir"])
            .arg(&target)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            // The compiler's words are about this machine's build, for every target of this test.
            .env_remove("CARGO_BUILD_TARGET")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let libraries = ["contigo", "contigo_gemm8"].map(|name| {
            let named = format!("\"name\":\"{name}\",");
            let artifact = text
                .lines()
                .find(|line| line.contains("\"compiler-artifact\"") && line.contains(&named))
                .unwrap();
            (name, artifact.split('"').find(|word| word.ends_with(".rlib")).unwrap().into())
        });
        Self { libraries, folder: target.join("debug").join("deps") }
    }

    /// Compiles `file` against it, and returns the codes of the errors, none where it compiles. An
    /// error without a code is `none`.
    fn errors(&self, file: &Path) -> BTreeSet<String> {
        let folder = tempfile::tempdir().unwrap();
        let output = rustc()
            .args([
                "--edition",
                "2024",
                "--emit",
                "metadata",
                "--error-format",
                "json",
                "--cap-lints",
                "allow",
                "--out-dir",
            ])
            .arg(folder.path())
            .args(self.libraries.iter().flat_map(|(name, path)| {
                ["--extern".to_owned(), format!("{name}={}", path.display())]
            }))
            .arg("-L")
            .arg(format!("dependency={}", self.folder.display()))
            .arg(file)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let errors = text.lines().filter(|line| {
            line.contains("\"level\":\"error\"") && !line.contains("\"message\":\"aborting due to")
        });
        let code = |line: &str| {
            line.split("\"code\":{\"code\":\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .unwrap_or("none")
                .to_owned()
        };
        let codes: BTreeSet<_> = errors.map(code).collect();
        assert_eq!(codes.is_empty(), output.status.success(), "{}: {text}", file.display());
        codes
    }
}

#[test]
fn each_file_is_refused_for_its_own_reason() {
    if emulated::finds_no_more(COMPILER) {
        return;
    }
    // The compiler that wrote the messages is asked once, by the test that compares them whole.
    let runtime = (version() != RUSTC).then(Runtime::build);
    let files = files();
    assert!(files.len() >= 40, "the files are found: {}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("// error: "))
            .unwrap_or("its first line names no error");
        let errors =
            runtime.as_ref().map_or_else(|| written(&file), |runtime| runtime.errors(&file));
        assert_eq!(errors, BTreeSet::from([code.to_owned()]), "{}", file.display());
    }
}

/// The codes of the errors in the message beside `file`. An error without a code is `none`.
fn written(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file.with_extension("stderr")).unwrap();
    let errors = text.lines().filter_map(|line| line.strip_prefix("error"));
    errors
        .map(|rest| {
            rest.strip_prefix('[')
                .and_then(|rest| rest.split(']').next())
                .unwrap_or("none")
                .to_owned()
        })
        .collect()
}

/// The compiler's version: `1.95.0`.
fn version() -> String {
    let text = rustc()
        .arg("--version")
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_right_program_is_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("right.rs");
    let text = "use contigo::{Region, sim::SimBoard};
        fn main() {
            let board = SimBoard::new(1);
            let region = Region::new(board.memory(4096).unwrap()).unwrap();
            let pool = region.pool(1, 64).unwrap();
            let mut buf = pool.take().unwrap();
            buf.view_mut::<u8>().unwrap().fill(1);
            let _operand = buf.to_device(..);
        }";
    fs::write(&file, text).unwrap();
    assert_eq!(Runtime::build().errors(&file), BTreeSet::new());
}

/// The runtime here is the one that is shipped, without the feature `testkit`.
#[test]
fn no_test_can_take_the_shipped_kernels_place() {
    let (runtime, folder) = (Runtime::build(), tempfile::tempdir().unwrap());
    let file = folder.path().join("seam.rs");
    let refused = |text: String| {
        fs::write(&file, &text).unwrap();
        runtime.errors(&file)
    };
    for room in ["memory::u_dma_buf", "memory::dma_heap", "guard", "vfio"] {
        let text = format!("use contigo::linux::{room}::seam; fn main() {{}}");
        assert_eq!(refused(text), BTreeSet::from(["E0432".to_owned()]), "{room}");
    }
    for call in [
        "linux::memory::UDmaBuf::open_with",
        "linux::memory::DmaHeap::allocate_from",
        "linux::memory::DmaHeap::allocate_for_from",
        "linux::guard::Guard::open_from",
        "linux::vfio::Vfio::open_from",
        "names::DeviceName::open_guard_with",
        "names::DeviceName::open_vfio_with",
    ] {
        let text = format!("fn main() {{ let _ = contigo::{call}; }}");
        assert_eq!(refused(text), BTreeSet::from(["E0599".to_owned()]), "{call}");
    }
}

#[test]
fn each_refusal_says_what_it_said() {
    if emulated::finds_no_more(COMPILER) {
        return;
    }
    let version = version();
    if version != RUSTC {
        let why = format!(
            "the words in compile_fail/*.stderr are those of rustc {RUSTC}; here is {version}"
        );
        return emulated::skipped("compile_fail::each_refusal_says_what_it_said", &why);
    }
    trybuild::TestCases::new().compile_fail("compile_fail/*.rs");
}
