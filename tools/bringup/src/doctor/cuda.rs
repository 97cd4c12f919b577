//! NVIDIA's driver.

use super::{Check, Facts, Outcome, fault, fine, note, noted, skipped};
use std::fs;
use std::os::unix::fs::MetadataExt;

const PCI: &str = "sys/bus/pci/devices";
/// The paths of the driver's library, on PCs and on Jetsons.
const PLACES: [&str; 6] = [
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu/tegra",
    "usr/lib/aarch64-linux-gnu/nvidia",
    "usr/lib64",
    "usr/lib",
];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cuda-driver",
        title: "the GPU has NVIDIA's driver",
        cause: "The GPU is on the bus, and another driver or none has it.",
        cure: "modprobe nvidia; keep nouveau away by blacklist nouveau in /etc/modprobe.d",
        source: "https://github.com/emergingstack/es-dev-stack/issues/16",
        look: driver,
    },
    Check {
        id: "cuda-library",
        title: "the driver's library is there",
        cause: "The kernel has the driver, and libcuda.so.1 is in no folder where it is looked \
                for.",
        cure: "apt install libcuda1, nvidia-l4t-cuda on a Jetson, or give the container the driver",
        source: "https://github.com/NVIDIA/nvidia-docker/issues/180",
        look: library,
    },
    Check {
        id: "cuda-version",
        title: "the library and the kernel's module are of one version",
        cause: "The package was updated, and the module in the kernel is still the old one.",
        cure: "reboot, or unload nvidia_uvm, nvidia_drm, nvidia_modeset and nvidia, and load them \
               again",
        source: "https://github.com/stackhpc/ansible-slurm-appliance/issues/287",
        look: version,
    },
    Check {
        id: "cuda-rights",
        title: "this program may open the integrated GPU",
        cause: "Without the group video the library says NvRmMemInitNvmap failed with Permission \
                denied.",
        cure: "usermod --append --groups video USER",
        source: "https://github.com/JuliaGPU/CUDA.jl/issues/2435",
        look: rights,
    },
    Check {
        id: "cuda-uncached",
        title: "pinned host memory is cached for the CPU",
        cause: "On Tegra before Xavier (compute capability below 7.2) the CPU reads pinned memory \
                without its cache.",
        cure: "copy pinned memory once before the CPU reads it often, or use managed memory",
        source: "CUDA for Tegra, \"Memory Management\"",
        look: uncached,
    },
];

fn jetson<'a>(facts: &'a Facts<'_>) -> Option<&'a str> {
    let root = facts.nodes.iter().find(|node| node.path.is_empty())?;
    root.compatible
        .iter()
        .find_map(|one| one.strip_prefix("nvidia,").filter(|name| name.starts_with("tegra")))
}

fn driver(facts: &Facts<'_>) -> Outcome {
    let is = |device: &str, file: &str, value: &str| {
        facts
            .machine
            .text(format!("{PCI}/{device}/{file}"))
            .is_some_and(|text| text.starts_with(value))
    };
    let gpus: Vec<_> = facts
        .machine
        .list(PCI)
        .into_iter()
        .filter(|device| is(device, "vendor", "0x10de") && is(device, "class", "0x03"))
        .collect();
    if gpus.is_empty() {
        return skipped("no GPU of NVIDIA's on PCI");
    }
    let other = |device: &String| {
        let driver = facts.machine.link_name(format!("{PCI}/{device}/driver"));
        let driver = driver.unwrap_or_else(|| "none".into());
        // vfio-pci passes it to a guest.
        (driver != "nvidia" && driver != "vfio-pci").then(|| format!("{device}: driver {driver}"))
    };
    // nouveau may be intended: it drives the screen.
    noted(&gpus.iter().filter_map(other).collect::<Vec<_>>(), format!("{} GPUs", gpus.len()))
}

/// The version in the name of the library that `libcuda.so.1` links to: 535.54.03.
fn libraries(facts: &Facts<'_>) -> Vec<String> {
    let names = PLACES.iter().flat_map(|place| facts.machine.list(place));
    names.filter_map(|name| Some(name.strip_prefix("libcuda.so.")?.to_owned())).collect()
}

/// The version of the kernel's module: the first word with digits and one or two dots.
fn module(facts: &Facts<'_>) -> Option<String> {
    let text = facts.machine.text("proc/driver/nvidia/version")?;
    let word = |word: &&str| {
        word.contains('.') && word.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    text.lines().next()?.split_ascii_whitespace().find(word).map(str::to_owned)
}

fn library(facts: &Facts<'_>) -> Outcome {
    if !facts.machine.has("proc/driver/nvidia/version") && jetson(facts).is_none() {
        return skipped("no driver of NVIDIA's");
    }
    // A container has the host's /proc, but has the library only if its settings ask for it.
    let container = [".dockerenv", "run/.containerenv"].iter().any(|file| facts.machine.has(file));
    if container || !facts.machine.has("usr/lib") {
        return skipped("a container, or a copy without /usr");
    }
    let found = libraries(facts);
    if found.is_empty() {
        note("no libcuda.so")
    } else {
        fine(format!("libcuda.so.{}", found.join(", ")))
    }
}

fn version(facts: &Facts<'_>) -> Outcome {
    // libcuda.so.1 and libcuda.so.1.1 (Jetson) are names of the interface, not versions.
    let libraries: Vec<_> = libraries(facts)
        .into_iter()
        .filter(|version| version.contains('.') && !version.starts_with("1."))
        .collect();
    let (Some(module), false) = (module(facts), libraries.is_empty()) else {
        return skipped("one of the two does not say");
    };
    if libraries.contains(&module) {
        fine(module)
    } else {
        fault(format!("module {module}, library {}", libraries.join(", ")))
    }
}

fn rights(facts: &Facts<'_>) -> Outcome {
    let nodes = ["dev/nvmap", "dev/nvhost-ctrl", "dev/nvhost-gpu"].into_iter();
    let nodes: Vec<_> =
        nodes.filter_map(|path| Some((facts.machine.metadata(path).ok()?, path))).collect();
    if nodes.is_empty() {
        return skipped("no integrated GPU");
    }
    // If the machine names no user, only the mode decides.
    let shared = |data: &fs::Metadata| data.mode() & 0o006 == 0o006 || data.mode() & 0o060 == 0o060;
    let may = |(data, _): &&(fs::Metadata, &str)| {
        facts.may_open(data) && (facts.status("Uid", 10) == Some(0) || shared(data))
    };
    let words = |(data, path): &(fs::Metadata, &str)| {
        format!("/{path}: group {}, mode {:o}", data.gid(), data.mode() & 0o777)
    };
    let bad: Vec<_> = nodes.iter().filter(|node| !may(node)).map(words).collect();
    noted(&bad, format!("{} nodes", nodes.len()))
}

fn uncached(facts: &Facts<'_>) -> Outcome {
    match jetson(facts) {
        None => skipped("no integrated GPU"),
        Some(chip) if ["tegra124", "tegra210", "tegra186"].contains(&chip) => note(chip),
        Some(chip) => fine(chip),
    }
}
