//! Is this machine an emulated one? A report of such a machine names the sign of it, and is
//! no result of silicon.

use contigo_bringup::machine::Machine;

/// Words of a device tree's `compatible` and `model`, or of a PC's firmware, that only emulators
/// and hypervisors have.
const WORDS: [&str; 8] = [
    "qemu",
    "dummy-virt",
    "kvm",
    "virtualbox",
    "vmware",
    "bochs",
    "firecracker",
    "virtual machine",
];
/// Their files; the last one is that of this project's lab, whose Zynq-7000 has no other sign.
const FILES: [&str; 4] = [
    "sys/firmware/qemu_fw_cfg",
    "sys/firmware/devicetree/base/hypervisor",
    "sys/hypervisor/type",
    "etc/contigo-board",
];
/// Who made a PC, and its name for it.
const DMI: [&str; 3] = ["sys_vendor", "product_name", "board_vendor"];

/// By what it is known; `None` where there is no sign of it.
pub(super) fn by_what(machine: &Machine, lab: bool) -> Option<String> {
    if lab {
        return Some("--lab was given".into());
    }
    let tree = ["compatible", "model"].map(|name| format!("sys/firmware/devicetree/base/{name}"));
    let named = tree.into_iter().chain(DMI.map(|name| format!("sys/class/dmi/id/{name}")));
    named
        .filter_map(|file| said(machine, &file))
        .next()
        .or_else(|| {
            FILES.iter().find(|file| machine.has(file)).map(|file| format!("there is /{file}"))
        })
        .or_else(|| virtio(machine))
        .or_else(|| processor(machine))
        .or_else(|| interface(machine))
}

/// `VIRTIO_ID_RPMSG` (include/uapi/linux/virtio_ids.h): a SoC's second processor is such a device.
const RPMSG: &str = "0x0007";

fn virtio(machine: &Machine) -> Option<String> {
    let kind = |name: &String| {
        machine.text(format!("sys/bus/virtio/devices/{name}/device")).unwrap_or_default()
    };
    let found = machine
        .list("sys/bus/virtio/devices")
        .into_iter()
        .find(|name| kind(name).trim() != RPMSG)?;
    Some(format!("it has the virtio device {found}"))
}

/// The word of `file` that says it.
fn said(machine: &Machine, file: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&machine.bytes(file)?).to_ascii_lowercase();
    let word = WORDS.iter().find(|word| text.contains(*word))?;
    Some(format!("/{file} has the word {word}"))
}

/// A PC's processor says that it is under a hypervisor.
fn processor(machine: &Machine) -> Option<String> {
    let cpuinfo = machine.text("proc/cpuinfo")?;
    let flags = cpuinfo
        .lines()
        .find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == "flags"))?
        .1;
    let is_there = flags.split_ascii_whitespace().any(|flag| flag == "hypervisor");
    is_there.then(|| "the processor's flags have the word hypervisor".into())
}

/// The addresses that QEMU gives its network interfaces (net/net.c,
/// `qemu_macaddr_default_if_unset`).
const QEMU_ADDRESS: &str = "52:54:00:";

/// Of an interface that is a device: a bridge for a machine's own guests has such an address, too.
fn interface(machine: &Machine) -> Option<String> {
    let at = |name: &str, file: &str| format!("sys/class/net/{name}/{file}");
    let is_qemu_s = |name: &String| {
        let address = machine.text(at(name, "address")).unwrap_or_default();
        machine.has(at(name, "device")) && address.starts_with(QEMU_ADDRESS)
    };
    let found = machine.list("sys/class/net").into_iter().find(is_qemu_s)?;
    Some(format!("the network interface {found} has an address of QEMU's"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use std::fs;

    /// A machine with one file.
    fn with(file: &str, text: &str) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let machine = Machine::copy(folder.path());
        (folder, machine)
    }

    #[test]
    fn an_emulated_machine_is_known_by_each_of_its_signs() {
        for (file, text) in [
            ("sys/firmware/devicetree/base/compatible", "linux,dummy-virt\0"),
            ("sys/firmware/devicetree/base/model", "QEMU thing\0"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/firmware/qemu_fw_cfg", ""),
            ("sys/bus/virtio/devices/virtio0/device", "0x0001\n"),
            ("proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n"),
            ("etc/contigo-board", "zynq-6.1\n"),
        ] {
            let (_folder, machine) = with(file, text);
            assert!(by_what(&machine, false).is_some(), "{file}: {text}");
        }
    }

    #[test]
    fn an_interface_of_qemu_s_is_a_sign_where_it_is_a_device() {
        let (folder, machine) = with("sys/class/net/eth0/address", "52:54:00:12:34:56\n");
        assert_eq!(by_what(&machine, false), None);
        fs::create_dir(folder.path().join("sys/class/net/eth0/device")).unwrap();
        assert!(by_what(&machine, false).is_some_and(|how| how.contains("eth0")));
    }

    #[test]
    fn silicon_is_not_taken_for_an_emulator() {
        for (file, text) in [
            ("sys/firmware/devicetree/base/model", "Xilinx Zynq PYNQ-Z2\0"),
            ("proc/cpuinfo", "CPU variant\t: 0x3\nCPU part\t: 0xc09\nCPU revision\t: 0\n"),
            ("proc/cpuinfo", "flags\t\t: fpu vme\n"),
            ("sys/bus/virtio/devices/virtio0/device", "0x0007\n"),
            ("sys/class/net/virbr0/address", "52:54:00:12:34:56\n"),
        ] {
            let (_folder, machine) = with(file, text);
            assert_eq!(by_what(&machine, false), None, "{file}: {text}");
            assert_eq!(by_what(&machine, true).as_deref(), Some("--lab was given"));
        }
    }
}
