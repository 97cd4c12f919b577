//! Machines that lack something: the loader, or a driver. In child processes, because a loader is
//! loaded once.

use super::child::{child, is_child, said};
use super::{gpu, skipped};
use contigo_gpu::vulkan::VulkanGpu;
use std::fs;
use std::path::Path;

/// The answer of opening the first device under these variables.
fn opened(variables: &[(&str, &Path)]) -> String {
    let mut child = child();
    child.envs(variables.iter().copied());
    said(child)
}

fn as_child() {
    println!("{:?}, {:?}", VulkanGpu::open(0).map(|gpu| gpu.facts().ordinal), VulkanGpu::count());
}

#[test]
fn missing_loader_says_what_to_install() {
    if is_child() {
        return as_child();
    }
    let folder = tempfile::tempdir().unwrap();
    // The dynamic linker takes the first file of this name, and it is no library.
    fs::write(folder.path().join("libvulkan.so.1"), "no library").unwrap();
    let said = opened(&[("LD_LIBRARY_PATH", folder.path())]);
    let expected = r#"Err(NoLibrary { name: "libvulkan.so.1", fix: "install Vulkan's loader"#;
    assert_eq!(said.matches(expected).count(), 2, "{said}");
}

#[test]
fn a_machine_without_a_driver_says_so() {
    if is_child() {
        return as_child();
    }
    if gpu().is_none() {
        return;
    }
    let nowhere = Path::new("/nowhere/driver.json");
    let said = opened(&[("VK_ICD_FILENAMES", nowhere), ("VK_DRIVER_FILES", nowhere)]);
    if said.contains("Ok(0), Ok(") {
        return skipped("this loader looks for drivers elsewhere too");
    }
    assert!(
        said.contains("VK_ERROR_INCOMPATIBLE_DRIVER")
            || said.contains("NotFound { what: \"Vulkan device\", among: 0 }"),
        "{said}"
    );
}
