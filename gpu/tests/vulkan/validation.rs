//! Khronos' validation layer, over the jobs of this very program. It sees each call's valid usage
//! and the lifetimes of objects. It does not see whether a job's barriers are there: they stand
//! between the host's accesses, which the layer does not follow, and the one dispatch of a command
//! buffer. The crate's own test `job_has_barriers_words_and_workgroups` has them.

use super::{gpu, skipped};
use ash::{Entry, vk};
use std::env;
use std::path::Path;
use std::process::{Command, ExitStatus};

const LAYER: &str = "VK_LAYER_KHRONOS_validation";
/// Where the loader looks for layers that the system installed.
const FOLDERS: [&str; 3] = [
    "/usr/share/vulkan/explicit_layer.d",
    "/etc/vulkan/explicit_layer.d",
    "/usr/local/share/vulkan/explicit_layer.d",
];
/// The layer's own checks are on by default; these are beside them.
const CHECKS: &str = "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT";
/// Set in the child that does something wrong.
const VIOLATES: &str = "CONTIGO_VULKAN_VIOLATES";

#[test]
fn the_validation_layer_finds_nothing_wrong() {
    if env::var_os("VK_INSTANCE_LAYERS").is_some() || gpu().is_none() {
        return;
    }
    if !FOLDERS.iter().any(|folder| is_there(folder)) {
        return skipped("the layer is not installed (vulkan-validationlayers)");
    }
    // The layer is loaded, and tells what is wrong in these words.
    let (_, said) = under_the_layer(&["--exact", "validation::child"], Some(VIOLATES));
    let told = wrong(&said);
    assert!(
        told.iter().any(|line| line.contains("VUID-VkBufferCreateInfo-size-00912")),
        "the layer is installed, and says only: {said}"
    );

    let (status, said) = under_the_layer(&["jobs::", "memory::", "refused::"], None);
    let told = wrong(&said);
    assert!(told.is_empty(), "{told:#?}");
    assert!(
        status.success() && said.contains("test jobs::a_chain_stays_with_the_device ... ok"),
        "{said}"
    );
}

/// This program's tests under the layer, and all that they say.
fn under_the_layer(tests: &[&str], variable: Option<&str>) -> (ExitStatus, String) {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(tests).args(["--nocapture", "--test-threads=1"]);
    child
        .env("VK_INSTANCE_LAYERS", LAYER)
        .env("VK_LAYER_ENABLES", CHECKS)
        .envs(variable.map(|name| (name, "1")));
    let output = child.output().unwrap();
    (
        output.status,
        [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat(),
    )
}

/// The lines in which the layer tells of a violation.
fn wrong(said: &str) -> Vec<&str> {
    said.lines()
        .filter(|line| {
            ["Validation Error", "VUID-", "SYNC-HAZARD"].iter().any(|word| line.contains(word))
        })
        .collect()
}

/// Does a manifest in this folder name the layer? Its file's name differs from system to system.
fn is_there(folder: &str) -> bool {
    let files = Path::new(folder).read_dir().into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .any(|text| text.contains(LAYER))
}

/// The child, which makes a buffer of no bytes: nothing where it is not one.
#[test]
fn child() {
    if env::var_os(VIOLATES).is_none() {
        return;
    }
    // SAFETY: the loader is the system's. The structures are whole, and live until their calls
    // return. Device and buffer are asked for nothing, and are destroyed by the end of the process.
    unsafe {
        let entry = Entry::load().unwrap();
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let instance = entry
            .create_instance(
                &vk::InstanceCreateInfo::default().application_info(&application),
                None,
            )
            .unwrap();
        let physical = instance.enumerate_physical_devices().unwrap()[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let device = instance
            .create_device(
                physical,
                &vk::DeviceCreateInfo::default().queue_create_infos(&queues),
                None,
            )
            .unwrap();
        let nothing = vk::BufferCreateInfo::default().usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        let _ = device.create_buffer(&nothing, None);
    }
}
