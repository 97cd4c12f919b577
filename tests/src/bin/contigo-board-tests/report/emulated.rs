//! Is this machine an emulated one? A report of such a machine says so, and is no result of
//! silicon.

use contigo_bringup::machine::Machine;

/// Words of a device tree's `compatible` and `model`, or of a PC's firmware, that only emulators
/// and hypervisors have.
const WORDS: [&str; 8] = ["qemu", "dummy-virt", "kvm", "virtualbox", "vmware", "bochs", "firecracker", "virtual machine"];
/// Their files.
const FILES: [&str; 3] = ["sys/firmware/qemu_fw_cfg", "sys/firmware/devicetree/base/hypervisor", "sys/hypervisor/type"];
/// Who made a PC, and its name for it.
const DMI: [&str; 3] = ["sys_vendor", "product_name", "board_vendor"];

/// By what it is known; `None` where nothing says so.
pub(super) fn by_what(machine: &Machine, lab: bool) -> Option<String> {
    if lab {
        return Some("--lab was given".into());
    }
    let tree = ["compatible", "model"].map(|name| format!("sys/firmware/devicetree/base/{name}"));
    let named = tree.into_iter().chain(DMI.map(|name| format!("sys/class/dmi/id/{name}")));
    named
        .filter_map(|file| said(machine, &file))
        .next()
        .or_else(|| FILES.iter().find(|file| machine.has(file)).map(|file| format!("there is /{file}")))
        .or_else(|| (!machine.list("sys/bus/virtio/devices").is_empty()).then(|| "it has virtio devices".into()))
        .or_else(|| processor(machine))
}

/// The word of `file` that says it.
fn said(machine: &Machine, file: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&machine.bytes(file)?).to_ascii_lowercase();
    let word = WORDS.iter().find(|word| text.contains(*word))?;
    Some(format!("/{file} has the word {word}"))
}

/// A PC's processor says that it is under a hypervisor. A Zynq-7000 has Cortex-A9 r3p0 (UG585,
/// table 3-1), and QEMU's is r0p0 (target/arm/tcg/cpu32.c, `cortex_a9_initfn`).
fn processor(machine: &Machine) -> Option<String> {
    let cpuinfo = machine.text("proc/cpuinfo")?;
    let line = |key: &str| {
        cpuinfo.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key)).map(|(_, value)| value.trim())
    };
    if line("flags").is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor")) {
        return Some("the processor's flags have the word hypervisor".into());
    }
    (line("CPU part") == Some("0xc09") && line("CPU variant") == Some("0x0")).then(|| "its Cortex-A9 is r0p0, which no SoC here has".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use contigo_bringup::machine::Linux;
    use std::fs;

    /// A machine with one file.
    fn with(file: &str, text: &str) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let machine = Machine::below(folder.path(), Linux);
        (folder, machine)
    }

    #[test]
    fn an_emulated_machine_is_known_by_each_of_its_signs() {
        for (file, text) in [
            ("sys/firmware/devicetree/base/compatible", "linux,dummy-virt\0"),
            ("sys/firmware/devicetree/base/model", "QEMU thing\0"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/firmware/qemu_fw_cfg", ""),
            ("sys/bus/virtio/devices/virtio0", ""),
            ("proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n"),
            ("proc/cpuinfo", "CPU variant\t: 0x0\nCPU part\t: 0xc09\nCPU revision\t: 0\n"),
        ] {
            let (_folder, machine) = with(file, text);
            assert!(by_what(&machine, false).is_some(), "{file}: {text}");
        }
    }

    #[test]
    fn silicon_is_not_taken_for_an_emulator() {
        for (file, text) in [
            ("sys/firmware/devicetree/base/model", "Xilinx Zynq PYNQ-Z2\0"),
            ("proc/cpuinfo", "CPU variant\t: 0x3\nCPU part\t: 0xc09\nCPU revision\t: 0\n"),
            ("proc/cpuinfo", "flags\t\t: fpu vme\n"),
        ] {
            let (_folder, machine) = with(file, text);
            assert_eq!(by_what(&machine, false), None, "{file}: {text}");
            assert_eq!(by_what(&machine, true).as_deref(), Some("--lab was given"));
        }
    }
}
