//! The doctor: nothing on a right machine, and each check by one change to it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

#[path = "common/healthy.rs"]
mod healthy;
#[path = "common/machines.rs"]
mod machines;

use contigo_bringup::bitstream::Family;
use contigo_bringup::doctor::{DoctorError, Finding, Verdict, checks, doctor, doctor_with};
use contigo_bringup::ports::{self, AccessError, Cores, DevMem, Known};
use machines::{CONFIG, Root, TREE, de10, kv260, orin, pc, pynq};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};
use tempfile::TempDir;

type Make = fn(&Path) -> Root;

/// A check, a right machine, and the one change that makes it wrong.
type Case = (&'static str, Make, fn(&Root));

const BLOCK: &str = "sys/class/u-dma-buf/udmabuf0";

const CASES: &[Case] = &[
    ("cma-missing", pynq, |root| root.put("proc/meminfo", "MemTotal:  500000 kB\n")),
    ("cma-small", pynq, |root| {
        root.put("proc/meminfo", "MemTotal:  500000 kB\nCmaTotal:  8192 kB\n")
    }),
    ("cma-failed", pynq, |root| root.put("sys/kernel/mm/cma/linux,cma/alloc_pages_fail", "2040\n")),
    ("cma-fragmented", pynq, |root| root.put("sys/kernel/debug/cma/linux,cma/maxchunk", "512")),
    ("cma-twice", pynq, |root| root.put("proc/cmdline", "cma=64M console=ttyPS0")),
    ("cma-high", pynq, |root| root.cells("reserved-memory/linux,cma/reg", &[8, 0, 0, 0x8000_0000])),
    ("u-dma-buf-module", pynq, |root| root.remove("sys/bus/platform/drivers/u-dma-buf")),
    ("u-dma-buf-block", pynq, |root| root.node("udmabuf1", "ikwzm,u-dma-buf")),
    ("u-dma-buf-version", pynq, |root| root.put(&format!("{BLOCK}/driver_version"), "4.4.0\n")),
    ("u-dma-buf-size", pynq, |root| root.put(&format!("{BLOCK}/size"), "16777232\n")),
    ("u-dma-buf-sync-mode", pynq, |root| root.put(&format!("{BLOCK}/sync_mode"), "5\n")),
    ("u-dma-buf-reach", pynq, |root| {
        root.put(&format!("{BLOCK}/phys_addr"), "0x0000000800000000\n")
    }),
    ("heap-missing", kv260, |root| root.remove("dev/dma_heap/linux,cma")),
    ("heap-address", kv260, |root| root.put("proc/sys/kernel/osrelease", "6.12.40-xilinx\n")),
    ("coherent-engine", pynq, |root| {
        root.put(&format!("{TREE}/amba/dmac@f8003000/dma-coherent"), "")
    }),
    ("coherent-bus", pynq, |root| root.put(&format!("{TREE}/amba/dma-coherent"), "")),
    ("coherent-block", pynq, |root| root.put(&format!("{BLOCK}/dma_coherent"), "1\n")),
    ("uio-module", pynq, |root| root.remove("sys/bus/platform/drivers/uio_pdrv_genirq")),
    ("uio-parameter", pynq, |root| root.remove("sys/class/uio/uio0")),
    ("uio-interrupt-wired", pynq, |root| {
        root.remove(&format!("{TREE}/amba/copy@40000000/interrupts"))
    }),
    ("uio-interrupt-named", pynq, |root| root.put("proc/interrupts", "           CPU0\n")),
    ("uio-interrupt-counts", pynq, |root| {
        root.put("proc/interrupts", " 45:   0   0  GIC-0  61 Level     copy\n")
    }),
    ("uio-one-interrupt", pynq, |root| {
        root.cells("amba/copy@40000000/interrupts", &[0, 29, 4, 0, 30, 4])
    }),
    ("intc-driver", pynq, |root| without(root, "XILINX_INTC")),
    ("contigo-module", pynq, |root| root.remove("sys/module/contigo")),
    ("contigo-bound", pynq, |root| root.remove("sys/class/contigo/f8003000.dmac")),
    ("contigo-rights", pynq, |root| root.put("sys/module/contigo/parameters/unprivileged", "N\n")),
    ("contigo-lockdown", pynq, |root| {
        root.put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    }),
    ("iommu-missing", kv260, |root| root.remove("sys/kernel/iommu_groups")),
    ("iommu-strict", kv260, |root| root.put("sys/kernel/iommu_groups/4/type", "DMA-FQ\n")),
    ("vfio-viable", kv260, |root| {
        root.folder("sys/kernel/iommu_groups/3/devices/0000:01:00.1");
        root.driver("pci", "0000:01:00.1", "xhci_hcd");
    }),
    ("vfio-noiommu", kv260, |root| {
        root.put("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n")
    }),
    ("memlock", kv260, |root| {
        root.put(
            "proc/self/limits",
            "Max locked memory         65536            65536            bytes\n",
        )
    }),
    ("mask-narrow", pynq, |root| root.cells("udmabuf0/dma-mask", &[28])),
    ("swiotlb-forced", pc, |root| root.put("proc/cmdline", "quiet swiotlb=65536,force\n")),
    ("swiotlb-used", kv260, |root| root.put("sys/kernel/debug/swiotlb/io_tlb_used", "512\n")),
    ("hugepages-used", pc, |root| {
        root.put("proc/meminfo", "MemTotal:  500000 kB\nHugePages_Total:  16\nHugePages_Free:  0\n")
    }),
    ("clk-off", pynq, |root| root.put("sys/kernel/debug/clk/fclk0/clk_enable_count", "0\n")),
    ("clk-crystal", pynq, |root| root.cells("amba/clkc@100/ps-clk-frequency", &[33_333_333])),
    ("clk-unused", pynq, |root| root.remove("sys/kernel/debug/clk")),
    ("device-waits", pynq, |root| {
        root.put(
            "sys/kernel/debug/devices_deferred",
            "40000000.copy\tplatform: wait for supplier clkc\n",
        )
    }),
    ("bridge-closed", pynq, |root| root.put("sys/class/fpga_bridge/br0/state", "disabled\n")),
    ("fabric-empty", pynq, |root| root.put("sys/class/fpga_manager/fpga0/state", "unknown\n")),
    ("port-width", probed, |root| root.register(0xf800_8000, 1)),
    ("level-shifters", probed, |root| root.register(0xf800_0900, 0xa)),
    ("fabric-reset", probed, |root| root.register(0xf800_0240, 1)),
    ("hpc-snooping", coherent, |root| root.register(0xff41_a040, 1)),
    ("group-missing", pynq, |root| root.put("etc/group", "root:x:0:\n")),
    ("heap-rights", pynq, |root| root.mode("dev/dma_heap/linux,cma", 0o600)),
    ("u-dma-buf-rights", pynq, |root| root.mode("dev/udmabuf0", 0o600)),
    ("uio-rights", pynq, |root| root.mode("dev/uio0", 0o600)),
    ("contigo-rights-node", pynq, |root| root.mode("dev/contigo/f8003000.dmac", 0o600)),
    ("vfio-rights", kv260, |root| root.mode("dev/vfio/3", 0o600)),
    ("governor", pynq, |root| {
        root.put("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "ondemand\n")
    }),
    ("rt-throttled", kv260, |root| root.put("proc/sys/kernel/sched_rt_runtime_us", "950000\n")),
    ("config-dma-cma", pynq, |root| without(root, "DMA_CMA")),
    ("config-uio", pynq, |root| without(root, "UIO_PDRV_GENIRQ")),
    ("config-dma-buf", pynq, |root| without(root, "DMA_SHARED_BUFFER")),
    ("config-vfio", kv260, |root| {
        root.remove("proc/config.gz");
        root.put("boot/config-6.1.30-xilinx", "CONFIG_DMA_CMA=y\n# CONFIG_VFIO is not set\n");
    }),
    ("glibc-old", kv260, |root| {
        root.put(
            "lib/aarch64-linux-gnu/libc.so.6",
            "stable release version 2.24, by Roland McGrath",
        )
    }),
    ("wheel-glibc", pynq, |root| {
        let wheel = "usr/local/lib/python3.10/dist-packages/contigo-0.1.0.dist-info/WHEEL";
        root.put(wheel, "Tag: cp39-abi3-manylinux_2_34_armv7l\n");
    }),
    ("cuda-driver", pc, |root| root.driver("pci", "0000:01:00.0", "nouveau")),
    ("cuda-library", orin, |root| root.remove("usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1")),
    ("cuda-version", pc, |root| {
        root.put(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  530.30.02  Tue Jun 6\n",
        );
    }),
    ("cuda-rights", orin, |root| root.mode("dev/nvmap", 0o600)),
    ("cuda-uncached", orin, |root| {
        root.put(&format!("{TREE}/compatible"), "nvidia,p3450-0000\0nvidia,tegra210\0")
    }),
];

/// A PYNQ-Z2 with the registers of its ports, as a design with one port wants them.
fn probed(path: &Path) -> Root {
    let root = pynq(path);
    root.put("dev/mem", "");
    root.register(0xf800_0900, 0xf);
    root
}

/// A KV260 with a core behind an HPC port, which snoops.
fn coherent(path: &Path) -> Root {
    let root = kv260(path);
    root.put("dev/mem", "");
    root.register(0xff41_a040, 3);
    // The overlay's bus says it for all that is on it.
    root.node("fabric/copy@a0000000", "contigo,engine");
    root.put(&format!("{TREE}/fabric/dma-coherent"), "");
    root.folder("sys/class/contigo/a0000000.copy");
    root.put("dev/contigo/a0000000.copy", "");
    root.put("sys/module/contigo/parameters/unprivileged", "Y\n");
    root
}

fn design(parameter: &str) -> Option<u64> {
    match parameter {
        "PCW_USE_S_AXI_HP0" | "PCW_EN_RST0_PORT" | "PSU__USE__S_AXI_GP0" => Some(1),
        "PCW_S_AXI_HP0_DATA_WIDTH" => Some(64),
        "PSU__SAXIGP0__DATA_WIDTH" => Some(128),
        _ => None,
    }
}

/// All findings. Where the machine has registers, they are read.
fn findings(root: &Root) -> Vec<Finding> {
    let machine = root.machine();
    let registers = root.0.join("dev/mem").exists().then(|| {
        let registers = DevMem::open(&machine, false).map_err(|error| error.to_string())?;
        let family = ports::family(&machine).map_err(|error| error.to_string())?;
        let known = Known {
            design: Some(&design),
            running: true,
            cores: Cores::of(&machine, family),
            ..Known::default()
        };
        Ok(ports::read(family, &registers, &known))
    });
    doctor_with(&machine, registers).unwrap()
}

/// In memory where there is such a place: thousands of small files.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn without(root: &Root, option: &str) {
    root.put(
        "boot/config-6.6.10-xilinx",
        CONFIG.replace(&format!("CONFIG_{option}="), &format!("# CONFIG_{option} ")),
    );
}

/// The checks that found something.
fn found(root: &Root) -> Vec<(&'static str, String)> {
    findings(root)
        .into_iter()
        .filter(|finding| finding.outcome.verdict >= Verdict::Note)
        .map(|finding| (finding.check.id, finding.outcome.found))
        .collect()
}

#[test]
fn a_right_machine_has_nothing() {
    for (name, make) in
        [("pynq", pynq as Make), ("de10", de10), ("kv260", kv260), ("pc", pc), ("orin", orin)]
    {
        let folder = folder();
        assert_eq!(found(&make(folder.path())), [], "{name}");
    }
}

#[test]
fn each_check_is_provoked_alone() {
    let ids: BTreeSet<_> = checks().map(|(_, check)| check.id).collect();
    assert!(ids.len() >= 40 && ids.len() == checks().count(), "{}", ids.len());
    assert_eq!(CASES.iter().map(|(id, ..)| *id).collect::<BTreeSet<_>>(), ids);
    for (id, make, change) in CASES {
        let folder = folder();
        let root = make(folder.path());
        let fine = findings(&root);
        // It looks at this machine at all: what it skips here it could never find.
        let before = fine.iter().find(|finding| finding.check.id == *id).unwrap().outcome.verdict;
        assert_eq!(before, Verdict::Fine, "{id}");
        change(&root);
        let found = found(&root);
        assert!(
            found.len() == 1 && found.iter().all(|(one, words)| one == id && !words.is_empty()),
            "{id}: {found:?}"
        );
    }
}

/// A doctor that finds faults on a right machine is worse than none: users stop believing it.
#[test]
fn right_machine_of_other_kind_is_no_fault() {
    let mut wrong = Vec::new();
    for (name, make, change, wanted) in healthy::SPECIALS {
        let folder = folder();
        let root = make(&folder.path().join("machine"));
        change(&root);
        let findings = findings(&root);
        let spoke = findings.iter().filter(|finding| finding.outcome.verdict >= Verdict::Note);
        let spoke: Vec<_> =
            spoke.map(|finding| (finding.check.id, finding.outcome.verdict.name())).collect();
        if spoke != *wanted {
            wrong.push(format!("{name}: {spoke:?}"));
        }
    }
    assert_eq!(wrong, <[String; 0]>::default());
}

/// No register was read, or could be: each check of them reports it, and none of them is fine.
#[test]
fn unread_registers_are_not_measurable() {
    let folder = folder();
    let machine = pynq(folder.path()).machine();
    for registers in [None, Some(Err("/dev/mem: Permission denied".to_owned()))] {
        let findings = doctor_with(&machine, registers).unwrap();
        let ports: Vec<_> = findings.iter().filter(|finding| finding.area == "ports").collect();
        assert!(
            ports.len() == 4 && ports.iter().all(|one| one.outcome.verdict == Verdict::Skipped)
        );
        assert!(
            ports.iter().all(|one| one.outcome.found.starts_with("not measurable: ")),
            "{ports:?}"
        );
    }
}

/// The processor that read it waits there until the board is restarted.
#[test]
fn a_register_that_does_not_answer_is_a_fault() {
    /// Registers whose first port hangs, behind level shifters that are on.
    struct Hangs;
    impl ports::Registers for Hangs {
        fn read(&self, addr: u64) -> Result<u32, AccessError> {
            if addr == 0xf800_8000 {
                Err(AccessError::NoAnswer { addr })
            } else {
                Ok(if addr == 0xf800_0900 { 0xf } else { 0 })
            }
        }
        fn write(&self, addr: u64, _: u32) -> Result<(), AccessError> {
            Err(AccessError::Bus { addr })
        }
    }
    let folder = folder();
    let known = Known { design: Some(&design), running: true, ..Known::default() };
    let facts = ports::read(Family::Zynq7000, &Hangs, &known);
    let findings = doctor_with(&pynq(folder.path()).machine(), Some(Ok(facts))).unwrap();
    let bad: Vec<_> =
        findings.iter().filter(|finding| finding.outcome.verdict >= Verdict::Note).collect();
    let [Finding { check, outcome, .. }] = bad.as_slice() else { panic!("{bad:?}") };
    assert_eq!((check.id, outcome.verdict), ("port-width", Verdict::Fault));
    assert!(
        outcome.found.contains("no answer from 0xf8008000")
            && outcome.found.contains("restart the board"),
        "{}",
        outcome.found
    );
}

#[test]
fn machine_text_cannot_control_screen() {
    let folder = folder();
    let root = pynq(folder.path());
    root.put("proc/cmdline", format!("swiotlb=force,\u{1b}[2J\u{202e}{}", "x".repeat(5000)));
    let [(id, words)] = found(&root).try_into().unwrap();
    assert!(
        id == "swiotlb-forced"
            && words.starts_with("swiotlb=force,\\u{1b}[2J\\u{202e}xxx")
            && words.len() < 500,
        "{words}"
    );
}

#[test]
fn nonsense_ends_soon() {
    let began = Instant::now();
    for seed in 0..12 {
        let folder = folder();
        let makes = [pynq as Make, kv260, pc, orin];
        let root = makes.into_iter().nth(seed % 4).unwrap()(folder.path());
        let mut random = fastrand::Rng::with_seed(seed as u64);
        spoil(&root.0, &mut random, 0);
        assert!(
            matches!(
                doctor(&root.machine()),
                Err(DoctorError::Nonsense(_) | DoctorError::NoProc(_))
            ),
            "{seed}"
        );
        let meminfo = root.0.join("proc/meminfo");
        let _ = fs::remove_dir_all(&meminfo).or_else(|_| fs::remove_file(&meminfo));
        root.put("proc/meminfo", "MemTotal: many\nCmaTotal: 99999999999999999999 kB\n");
        assert_eq!(doctor(&root.machine()).unwrap().len(), checks().count());
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let error = doctor(&Root(PathBuf::from("/nowhere")).machine()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/proc/meminfo cannot be read: mount /proc and /sys, or "),
        "{error}"
    );
}

/// An attribute has room for 16,384 interrupts of a controller that needs no more than its phandle.
#[test]
fn tree_naming_node_often_is_read_soon() {
    let folder = folder();
    let root = pynq(folder.path());
    (0..500).for_each(|n| root.folder(&format!("{TREE}/amba/n{n}")));
    root.cells("zz/phandle", &[77]);
    root.cells("zz/#interrupt-cells", &[0]);
    root.cells("amba/copy@40000000/interrupts-extended", &[77; 16_000]);
    let began = Instant::now();
    let found = doctor(&root.machine()).unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let second = found.iter().find(|finding| finding.check.id == "uio-one-interrupt").unwrap();
    assert_eq!(second.outcome.verdict, Verdict::Note, "{second:?}");
}

/// Each file becomes random bytes, some of them digits, a folder, a deep one, a link to its own
/// folder or to a device, a pipe, or a file that is longer than a disk.
fn spoil(folder: &Path, random: &mut fastrand::Rng, depth: u32) {
    assert!(depth < 20);
    for entry in
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    {
        if entry.is_dir() && !entry.is_symlink() {
            spoil(&entry, random, depth + 1);
            continue;
        }
        fs::remove_file(&entry).unwrap();
        match random.u32(..12) {
            8 => std::os::unix::fs::symlink("/dev/zero", &entry).unwrap(),
            9 => mkfifo(&entry, Mode::S_IRWXU).unwrap(),
            10 => fs::File::create(&entry).and_then(|file| file.set_len(1 << 42)).unwrap(),
            11 => fs::create_dir_all(entry.join("deep/".repeat(100))).unwrap(),
            0 => fs::create_dir(&entry).unwrap(),
            1 => std::os::unix::fs::symlink(folder, &entry).unwrap(),
            2 => fs::write(&entry, format!("{}", random.u64(..))).unwrap(),
            _ => fs::write(
                &entry,
                (0..random.usize(..300)).map(|_| random.u8(..)).collect::<Vec<_>>(),
            )
            .unwrap(),
        }
    }
}

/// The table of docs/doctor.md is the checks' own.
#[test]
fn the_page_has_each_check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let (begin, end) = (
        "<!-- The checks: tools/bringup/tests/doctor.rs writes them. -->\n",
        "<!-- Their end. -->",
    );
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let mut table = String::from("\n| area | check: it holds that |\n|---|---|\n");
    let mut last = "";
    for (area, check) in checks() {
        let before = match last {
            "" => format!("| {area} | "),
            same if same == area => "; ".to_owned(),
            _ => format!(" |\n| {area} | "),
        };
        table += &format!("{before}`{}`: {}", check.id, check.title);
        last = area;
    }
    table += " |\n";
    let wanted = format!("{before}{begin}{table}\n{end}{after}");
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        wanted,
        "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-bringup --test doctor"
    );
}
