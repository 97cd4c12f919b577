//! Which machine this is: its board by the device tree, its kernel, processor and C library, and
//! whether it is an emulated one. A report of such a machine names the sign of it, and is no result
//! of silicon.

use contigo_bringup::board;
use contigo_bringup::machine::Machine;
use nix::sys::utsname::uname;
use serde::Serialize;
use std::thread;

#[derive(Debug, Serialize)]
pub(crate) struct Board {
    /// The folder in `boards/`, where the tree has its name.
    name: Option<&'static str>,
    /// Those that it may be: of the same SoC, where the tree has no board's name.
    may_be: Vec<&'static str>,
    model: Option<String>,
    compatible: Vec<String>,
    soc: Option<&'static str>,
}

impl Board {
    pub(crate) fn of(machine: &Machine) -> Self {
        let board = board::Board::of(machine);
        let names: Vec<_> = board.known.boards.iter().map(|board| board.name).collect();
        let by_name = board.known.sure == contigo_bringup::known::Sure::ByName;
        let compatible =
            machine.bytes("sys/firmware/devicetree/base/compatible").unwrap_or_default();
        let compatible = String::from_utf8_lossy(&compatible);
        Self {
            name: names.first().copied().filter(|_| by_name),
            may_be: if by_name { Vec::new() } else { names },
            model: board.model,
            compatible: compatible.split_terminator('\0').map(str::to_owned).collect(),
            soc: board.soc.map(|soc| soc.name),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Kernel {
    release: String,
    version: String,
    preempt_rt: bool,
    command_line: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Processor {
    /// As `uname -m` has it.
    architecture: String,
    /// As `/proc/cpuinfo` has it.
    model: Option<String>,
    /// How many this program may use.
    processors: usize,
    /// Of this program's pointers.
    pointer_bits: u32,
}

fn text(of: impl Fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr) -> String {
    uname().map_or_else(|_| String::new(), |system| of(&system).to_string_lossy().into_owned())
}

impl Kernel {
    pub(crate) fn of(machine: &Machine) -> Self {
        let version = text(|system| system.version());
        let preempt_rt = version.contains("PREEMPT_RT")
            || machine.text("sys/kernel/realtime").is_some_and(|text| text == "1");
        Self {
            release: text(|system| system.release()),
            version,
            preempt_rt,
            command_line: machine.text("proc/cmdline").unwrap_or_default(),
        }
    }
}

impl Processor {
    pub(crate) fn of(machine: &Machine) -> Self {
        let cpuinfo = machine.text("proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == "model name"));
        Self {
            architecture: text(|system| system.machine()),
            model: model.map(|(_, value)| value.trim().to_owned()),
            processors: thread::available_parallelism().map_or(1, usize::from),
            pointer_bits: usize::BITS,
        }
    }
}

/// The C library that this program has: its own where it is static.
pub(crate) fn c_library() -> String {
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "the machine's" };
    format!("{}, {linked}", version())
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "a text of the C library")]
fn version() -> String {
    // SAFETY: a static string that ends with 0 (gnu_get_libc_version(3)).
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

#[cfg(not(target_env = "gnu"))]
fn version() -> String {
    "another than glibc".into()
}

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

pub(crate) fn emulated_by(machine: &Machine, lab: bool) -> Option<String> {
    if lab {
        return Some("--lab was given".into());
    }
    let tree = ["compatible", "model"].map(|name| format!("sys/firmware/devicetree/base/{name}"));
    let named = tree.into_iter().chain(DMI.map(|name| format!("sys/class/dmi/id/{name}")));
    let file = || FILES.iter().find(|file| machine.has(file));
    named
        .filter_map(|file| said(machine, &file))
        .next()
        .or_else(|| Some(format!("there is /{}", file()?)))
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

    fn with(file: &str, text: &str) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let machine = Machine::copy(folder.path());
        (folder, machine)
    }

    #[test]
    fn emulated_machine_is_known_by_any_sign() {
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
            assert!(emulated_by(&machine, false).is_some(), "{file}: {text}");
        }
    }

    #[test]
    fn qemu_interface_is_sign_if_it_is_device() {
        let (folder, machine) = with("sys/class/net/eth0/address", "52:54:00:12:34:56\n");
        assert_eq!(emulated_by(&machine, false), None);
        fs::create_dir(folder.path().join("sys/class/net/eth0/device")).unwrap();
        assert!(emulated_by(&machine, false).is_some_and(|how| how.contains("eth0")));
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
            assert_eq!(emulated_by(&machine, false), None, "{file}: {text}");
            assert_eq!(emulated_by(&machine, true).as_deref(), Some("--lab was given"));
        }
    }
}
