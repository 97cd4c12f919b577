//! Machines that lack something: the loader, or a driver. In child processes, because a loader is
//! loaded once.

use super::{gpu, skipped};
use contigo_gpu::vulkan::VulkanGpu;
use std::{env, fs, path::Path, process::Command};

const CHILD: &str = "CONTIGO_VULKAN_OPENS";

/// The answer of opening the first device under these variables.
fn opened(variables: &[(&str, &Path)]) -> String {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "machines::child", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    let said = child.envs(variables.iter().copied()).output().unwrap();
    assert!(said.status.success());
    String::from_utf8(said.stdout).unwrap()
}

/// The child: nothing where it is not one.
#[test]
fn child() {
    if env::var_os(CHILD).is_some() {
        println!(
            "{:?}, {:?}",
            VulkanGpu::open(0).map(|gpu| gpu.facts().ordinal),
            VulkanGpu::count()
        );
    }
}

#[test]
fn missing_loader_says_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    // The dynamic linker takes the first file of this name, and it is no library.
    fs::write(folder.path().join("libvulkan.so.1"), "no library").unwrap();
    let said = opened(&[("LD_LIBRARY_PATH", folder.path())]);
    let expected = r#"Err(NoLibrary { name: "libvulkan.so.1", fix: "install Vulkan's loader"#;
    assert_eq!(said.matches(expected).count(), 2, "{said}");
}

#[test]
fn a_machine_without_a_driver_says_so() {
    const TEST: &str = "machines::a_machine_without_a_driver_says_so";
    if gpu(TEST).is_none() {
        return;
    }
    let nowhere = Path::new("/nowhere/driver.json");
    let said = opened(&[("VK_ICD_FILENAMES", nowhere), ("VK_DRIVER_FILES", nowhere)]);
    if said.contains("Ok(0), Ok(") {
        return skipped(TEST, "this loader looks for drivers elsewhere too");
    }
    assert!(
        said.contains("VK_ERROR_INCOMPATIBLE_DRIVER")
            || said.contains("NotFound { what: \"Vulkan device\", among: 0 }"),
        "{said}"
    );
}
