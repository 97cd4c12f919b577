//! NVIDIA's own driver, of several versions, on a machine without a GPU. The runtime finds all of
//! its functions there, understands its version, and says its answers. Each is loaded in a process
//! of its own, which loads no other.

use contigo::cuda::{Cuda, code_name};
use contigo::{Error, Result};
use contigo_testkit::emulated;
use contigo_testkit::nvidia::{self, Driver, NoNode};
use std::env;

/// Set in a process that is to load the driver, and nothing else.
const CHILD: &str = "CONTIGO_TEST_NVIDIA";
const NAME: &str = "nvidia::the_driver_has_all_functions_and_finds_no_gpu";

#[test]
fn the_driver_has_all_functions_and_finds_no_gpu() {
    if env::var_os(CHILD).is_some() {
        return println!("answer: {:?}", Cuda::load().map(|cuda| cuda.version()));
    }
    let skip = |why: &str| contigo_testkit::skipped(&format!("cuda {NAME}"), why);
    if let Some(why) = nvidia::may_have_a_gpu() {
        return skip(&why);
    }
    let drivers = nvidia::drivers();
    if drivers.is_empty() {
        return skip(nvidia::NOT_HERE);
    }
    let _node = NoNode::new();
    for driver in drivers {
        let output = driver
            .command(env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let answer =
            said.lines().find_map(|line| line.split_once("answer: ")).map(|(_, answer)| answer);
        let expected = expected(&driver);
        assert!(
            expected.iter().any(|one| Some(format!("{one:?}").as_str()) == answer),
            "{driver:?}: {answer:?}, not {expected:?}: {output:?}"
        );
        // The line in the log says which drivers it was.
        println!("{}: {}", driver.folder.display(), answer.unwrap_or_default());
    }
}

/// The runtime's answers for a driver where there is no GPU.
fn expected(driver: &Driver) -> Vec<Result<u32>> {
    if driver.too_old() {
        let fix = "CUDA 10.2 (10020) is the oldest driver that is taken: update NVIDIA's driver";
        // 418 is CUDA 10.1's, 390 is 9.1's (as the two say themselves).
        let value = if driver.major < 410 { 9_010 } else { 10_010 };
        return vec![Err(Error::Setting { name: "cuDriverGetVersion", value, fix })];
    }
    let mut answers = vec![Err(Error::Cuda { call: "cuInit", code: 100, name: code_name(100) })];
    if emulated::why().is_some() && driver.major < 500 {
        // QEMU's user mode has no get_mempolicy, and the drivers of CUDA 11 take that for an
        // unknown error.
        answers.push(Err(Error::Cuda { call: "cuInit", code: 999, name: code_name(999) }));
    }
    answers
}
