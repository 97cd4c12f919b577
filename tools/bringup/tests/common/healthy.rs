//! Machines that are right in an unusual way, and machines whose fault was once overseen: each with
//! the checks that speak.

use super::Make;
use super::machines::{Root, TREE, de10, kv260, orin, pc, pynq};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

/// A machine, the one thing that is special about it, and the notes and faults that it has.
pub(crate) type Special = (&'static str, Make, fn(&Root), Wanted);
type Wanted = &'static [(&'static str, &'static str)];

const COPY: &str = "amba/copy@40000000";

/// The head of Linux 6.12's table of clocks.
const SUMMARY: &str = "clock count count protect rate accuracy phase cycle hardware\n---\n";

/// A node that gives a clock. Its phandle is 1.
fn clock(root: &Root, node: &str, compatible: &str, cells: u32) {
    root.node(node, compatible);
    root.cells(&format!("{node}/phandle"), &[1]);
    root.cells(&format!("{node}/#clock-cells"), &[cells]);
}

/// A row of [`SPECIALS`].
const fn case(name: &'static str, make: Make, wanted: Wanted, change: fn(&Root)) -> Special {
    (name, make, change, wanted)
}

pub(crate) const SPECIALS: &[Special] = &[
    case(
        "an image where all runs as root",
        pynq,
        &[("group-missing", "note"), ("uio-rights", "note")],
        |root| {
            root.put("etc/group", "root:x:0:\n");
            root.mode("dev/uio0", 0o600);
        },
    ),
    case("another group", pynq, &[], |root| group(root, "dev/uio0", 44)),
    case("root's group", pynq, &[("uio-rights", "fault")], |root| group(root, "dev/uio0", 0)),
    case("a vendor's own uio", pynq, &[], |root| {
        root.put("sys/class/uio/uio1/name", "axi_bram\n");
        root.put("dev/uio1", "");
        root.mode("dev/uio1", 0o600);
    }),
    case(
        "a virtual machine of arm64",
        |path| {
            let root = kv260(path);
            for gone in [
                "sys/class/contigo",
                "dev/contigo",
                "sys/bus/pci/devices/0000:02:00.0",
                "dev/dma_heap",
            ] {
                root.remove(gone);
            }
            root.mode("dev/vfio/3", 0o600);
            root
        },
        &[("cma-missing", "note")],
        |root| {
            root.put(&format!("{TREE}/compatible"), "linux,dummy-virt\0");
            root.put("proc/meminfo", "MemTotal:  500000 kB\n");
        },
    ),
    case("a SoC all of whose masters snoop", orin, &[], |root| {
        root.put(&format!("{TREE}/compatible"), "fsl,ls1043a-rdb\0fsl,ls1043a\0");
        root.put(&format!("{TREE}/bus@0/dma-coherent"), "");
    }),
    case("ZynqMP's engine on a port that snoops", kv260, &[], |root| {
        root.put(&format!("{TREE}/axi/dma-controller@fd500000/dma-coherent"), "")
    }),
    case("a block that is coherent by its bus", kv260, &[], |root| {
        root.node("axi/udmabuf0", "ikwzm,u-dma-buf");
        root.put(&format!("{TREE}/axi/dma-coherent"), "");
        root.folder("sys/bus/platform/drivers/u-dma-buf");
        root.put("sys/class/u-dma-buf/udmabuf0/dma_coherent", "1\n");
        // Its fault is of armv7 only.
        root.put("sys/class/u-dma-buf/udmabuf0/driver_version", "4.4.0\n");
    }),
    case("one bridge of two is closed", pynq, &[], |root| {
        root.put("sys/class/fpga_bridge/br1/name", "fpga2sdram\n");
        root.put("sys/class/fpga_bridge/br1/state", "disabled\n");
    }),
    case("the boot loader loaded", pynq, &[("fabric-empty", "note")], |root| {
        root.put("sys/class/fpga_manager/fpga0/state", "unknown\n")
    }),
    case("a name for uio, on a shared line", pynq, &[], |root| {
        root.put(&format!("{TREE}/{COPY}/linux,uio-name"), "my,copy\0");
        root.put("sys/class/uio/uio0/name", "my,copy\n");
        root.put(
            "proc/interrupts",
            " 45:         12          3  GIC-0  61 Level     other, my,copy\n",
        );
    }),
    case("two nodes of one name", pynq, &[], |root| {
        root.node("amba/copy@40010000", "generic-uio");
        root.cells("amba/copy@40010000/interrupts", &[0, 30, 4]);
        root.put("sys/class/uio/uio1/name", "copy\n");
        root.put("dev/uio1", "");
        of_node(root, "sys/class/uio/uio0", COPY);
        of_node(root, "sys/class/uio/uio1", "amba/copy@40010000");
    }),
    case(
        "two nodes of one name, one without device",
        pynq,
        &[("uio-parameter", "fault")],
        |root| {
            root.node("amba/copy@40010000", "generic-uio");
            root.cells("amba/copy@40010000/interrupts", &[0, 30, 4]);
            of_node(root, "sys/class/uio/uio0", COPY);
        },
    ),
    case("an interrupt behind AXI INTC", pynq, &[], |root| {
        root.remove(&format!("{TREE}/{COPY}/interrupts"));
        root.cells(&format!("{COPY}/interrupts-extended"), &[7, 0, 2]);
        root.cells("amba/interrupt-controller@41800000/phandle", &[7]);
        root.cells("amba/interrupt-controller@41800000/#interrupt-cells", &[2]);
    }),
    case("an engine whose address a bus translates", pynq, &[], |root| {
        root.node("amba/dmac@0x1000", "contigo,engine");
        of_node(root, "sys/class/contigo/f8001000.dmac", "amba/dmac@0x1000");
        root.put("dev/contigo/f8001000.dmac", "");
    }),
    case("Secure Boot, and an IOMMU", kv260, &[], |root| {
        root.put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    }),
    case("a vendor's driver of VFIO", kv260, &[], |root| {
        root.folder("sys/kernel/iommu_groups/3/devices/0000:01:00.1");
        root.driver("pci", "0000:01:00.1", "mlx5_vfio_pci");
    }),
    case("a small limit", kv260, &[("memlock", "note")], |root| {
        root.put("proc/self/limits", "Max locked memory  65536  65536  bytes\n")
    }),
    case("groups that are bypassed", kv260, &[("iommu-missing", "note")], |root| {
        ["3", "4"].iter().for_each(|group| {
            root.put(&format!("sys/kernel/iommu_groups/{group}/type"), "identity\n")
        })
    }),
    case("mainline's PREEMPT_RT", kv260, &[("rt-throttled", "note")], |root| {
        root.remove("sys/kernel/realtime");
        root.put("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12.9-1\n");
        root.put("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    }),
    case("a core in ZynqMP's high window", kv260, &[("fabric-empty", "note")], |root| {
        root.node("axi/core@400000000", "contigo,engine");
        root.folder("sys/module/contigo");
        root.folder("sys/class/contigo/400000000.core");
        root.put("sys/module/contigo/parameters/unprivileged", "Y\n");
        root.put("sys/class/fpga_manager/fpga0/state", "unknown\n");
    }),
    case("a heap without rights to its address", kv260, &[("heap-address", "note")], |root| {
        root.put("proc/self/status", "CapEff:\t0\n")
    }),
    case("a core that no program has open, so that its clock rests", pynq, &[], |root| {
        root.put("sys/kernel/debug/clk/fclk0/clk_enable_count", "0\n");
        root.node(COPY, "contigo,engine");
        root.cells(&format!("{COPY}/clocks"), &[1, 15]);
        root.folder("sys/class/contigo/40000000.copy");
        root.put("dev/contigo/40000000.copy", "");
    }),
    case(
        "a virtual machine's group, and a heap that only root needs",
        pynq,
        &[("heap-rights", "note"), ("vfio-rights", "note")],
        |root| {
            for node in ["dev/vfio/7", "dev/dma_heap/reserved"] {
                root.put(node, "");
                root.mode(node, 0o600);
            }
        },
    ),
    case("blocks in a pool of their own", pynq, &[("cma-missing", "note")], |root| {
        root.put("proc/meminfo", "MemTotal:  500000 kB\n")
    }),
    case(
        "blocks that have no memory yet",
        pynq,
        &[("cma-missing", "fault"), ("u-dma-buf-block", "fault")],
        |root| {
            root.put("proc/meminfo", "MemTotal:  500000 kB\n");
            root.node("udmabuf1", "ikwzm,u-dma-buf");
        },
    ),
    case(
        "a lockdown, and an IOMMU of another device",
        pynq,
        &[("contigo-lockdown", "fault")],
        |root| {
            root.folder("sys/kernel/iommu_groups/0/devices/e000b000.ethernet");
            root.put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        },
    ),
    case(
        "a device that waits, at an address that a bus translates",
        pynq,
        &[("device-waits", "fault")],
        |root| {
            root.node("amba/dmac@0x1000", "contigo,engine");
            of_node(root, "sys/class/contigo/f8001000.dmac", "amba/dmac@0x1000");
            root.put("dev/contigo/f8001000.dmac", "");
            root.of_node("sys/bus/platform/devices/f8001000.dmac", "amba/dmac@0x1000");
            root.put("sys/kernel/debug/devices_deferred", "f8001000.dmac\n");
        },
    ),
    case(
        "a class whose device lies out of the copy",
        pynq,
        &[("contigo-bound", "fault")],
        |root| {
            let outside = root.0.parent().unwrap().join("outside");
            Root(outside.clone()).of_node("device", "amba/dmac@f8003000");
            root.remove("sys/class/contigo/f8003000.dmac");
            root.link("sys/class/contigo/8000.x", &outside);
        },
    ),
    case("nouveau", pc, &[("cuda-driver", "note")], |root| {
        root.driver("pci", "0000:01:00.0", "nouveau")
    }),
    case("a container", pc, &[], |root| {
        root.remove("usr/lib");
        root.folder("usr/lib");
        root.put(".dockerenv", "");
    }),
    case("a copy without /usr", pc, &[], |root| root.remove("usr")),
    case("a user who is not in the GPU's group", orin, &[("cuda-rights", "note")], |root| {
        root.mode("dev/nvmap", 0o660);
        root.put(
            "proc/self/status",
            "Uid:\t1000\t1000\t1000\t1000\nGroups:\t4242 \nCapEff:\t0000000000200000\n",
        );
    }),
    case("a wheel in a user's environment", pynq, &[("wheel-glibc", "fault")], |root| {
        root.put(
            "home/xilinx/venv/lib/python3.10/site-packages/contigo-0.1.0.dist-info/WHEEL",
            "Tag: cp39-abi3-manylinux_2_34_armv7l\n",
        )
    }),
    case("a node of uio that the module has", pynq, &[], |root| {
        root.remove("sys/class/uio/uio0");
        platform(root, "40000000.copy", COPY, "contigo");
        root.folder("sys/class/contigo/40000000.copy");
        root.put("dev/contigo/40000000.copy", "");
        // Nothing is left for it to do.
        root.remove("sys/bus/platform/drivers/uio_pdrv_genirq");
    }),
    case("a node of uio that another driver has", pynq, &[("uio-parameter", "note")], |root| {
        root.remove("sys/class/uio/uio0");
        platform(root, "40000000.copy", COPY, "my_copy");
    }),
    case(
        "an engine that driver_override gave to uio",
        pynq,
        &[("contigo-bound", "note")],
        |root| {
            root.remove("sys/class/contigo/f8003000.dmac");
            platform(root, "f8003000.dmac", "amba/dmac@f8003000", "uio_pdrv_genirq");
        },
    ),
    case(
        "an engine on a kernel before 5.10, for which the module is not",
        pynq,
        &[("contigo-module", "note"), ("config-dma-buf", "note")],
        |root| {
            root.put("proc/sys/kernel/osrelease", "5.4.104\n");
            root.put(
                "boot/config-5.4.104",
                "CONFIG_DMA_CMA=y\nCONFIG_UIO_PDRV_GENIRQ=m\nCONFIG_XILINX_INTC=y\n",
            );
            ["sys/module/contigo", "sys/class/contigo", "dev/contigo"]
                .iter()
                .for_each(|gone| root.remove(gone));
        },
    ),
    case("a clock that the boot loader left running", pynq, &[], |root| {
        root.put("sys/kernel/debug/clk/fclk0/clk_enable_count", "0\n");
        root.put(
            "sys/kernel/debug/clk/clk_summary",
            format!("{SUMMARY} fclk0 0 0 0 100000000 0 0 50000 Y deviceless no_connection_id\n"),
        );
    }),
    case("a core with the board's own clock, while the fabric's are off", pynq, &[], |root| {
        root.put("sys/kernel/debug/clk/fclk0/clk_enable_count", "0\n");
        clock(root, "oscillator", "fixed-clock", 0);
        root.cells(&format!("{COPY}/clocks"), &[1]);
    }),
    case(
        "Cyclone V's clock, which is off, and a core that names it",
        de10,
        &[("clk-off", "fault")],
        |root| {
            root.put("proc/cmdline", "console=ttyS0\n");
            root.put("sys/kernel/debug/clk/h2f_user0_clk/clk_enable_count", "0\n");
            clock(root, "clks/h2f_user0_clk", "altr,socfpga-gate-clk", 0);
            root.cells("soc/copy@ff200000/clocks", &[1]);
        },
    ),
    case(
        "a clock that is off at its gate, and a core that names it",
        pynq,
        &[("clk-off", "fault")],
        |root| {
            clock(root, "amba/clkc@100", "xlnx,ps7-clkc", 1);
            root.cells(&format!("{COPY}/clocks"), &[1, 15]);
            root.put(
                "sys/kernel/debug/clk/clk_summary",
                format!(
                    "{SUMMARY} fclk0 1 1 0 100000000 0 0 50000 N deviceless no_connection_id\n"
                ),
            );
        },
    ),
    case("a name for uio that an overlay changed later", pynq, &[], |root| {
        root.put(&format!("{TREE}/{COPY}/linux,uio-name"), "another\0");
        of_node(root, "sys/class/uio/uio0", COPY);
    }),
    case("a bus of masters on ACP alone", pynq, &[("coherent-bus", "note")], |root| {
        root.node("fabric-bus", "simple-bus");
        root.put(&format!("{TREE}/fabric-bus/dma-coherent"), "");
        root.node("fabric-bus/core@43c00000", "acme,core");
    }),
    case("a block with a name of its own, below a bus", pynq, &[], |root| {
        root.node("amba/frames", "ikwzm,u-dma-buf");
        root.put(&format!("{TREE}/amba/frames/device-name"), "camera\0");
        root.put(&format!("{TREE}/amba/frames/dma-coherent"), "");
        root.put("sys/class/u-dma-buf/camera/dma_coherent", "1\n");
        root.node("amba/lines", "ikwzm,u-dma-buf");
        root.put("sys/class/u-dma-buf/amba:lines/dma_coherent", "0\n");
    }),
    case(
        "as many blocks as the tree has, and one of another",
        pynq,
        &[("u-dma-buf-block", "fault")],
        |root| {
            root.node("udmabuf1", "ikwzm,u-dma-buf");
            root.put("sys/class/u-dma-buf/udmabuf7/dma_coherent", "1\n");
        },
    ),
    case(
        "a block that the module takes for another than its node",
        pynq,
        &[("coherent-block", "fault")],
        |root| {
            root.put(&format!("{TREE}/udmabuf0/device-name"), "camera\0");
            root.put("sys/class/u-dma-buf/udmabuf0/dma_coherent", "1\n");
            of_node(root, "sys/class/u-dma-buf/udmabuf0", "udmabuf0");
        },
    ),
    case("a mask that reaches the block", pynq, &[], |root| {
        root.cells("udmabuf0/dma-mask", &[28]);
        root.put("sys/class/u-dma-buf/udmabuf0/phys_addr", "0x0f000000");
    }),
    case(
        "a bus that reaches a quarter of the memory, and no more",
        pynq,
        &[("mask-narrow", "fault")],
        |root| {
            for (name, cells) in [
                ("#address-cells", &[1][..]),
                ("#size-cells", &[1]),
                ("dma-ranges", &[0, 0, 0x800_0000]),
            ] {
                root.cells(&format!("amba/{name}"), cells);
            }
            root.cells("#address-cells", &[1]);
        },
    ),
    case(
        "a bus that reaches a part of the memory, and a kernel that chooses CMA's place",
        pynq,
        &[("mask-narrow", "note")],
        |root| {
            root.remove(&format!("{TREE}/reserved-memory"));
            root.node("bus@0", "simple-bus");
            root.node("bus@0/core@43c00000", "contigo,engine");
            root.folder("sys/class/contigo/43c00000.core");
            root.cells("bus@0/dma-ranges", &[0, 0, 0, 0, 0x1000_0000]);
        },
    ),
    case("CMA between ranges that the tree names", kv260, &[("cma-high", "note")], |root| {
        for (pool, range) in
            [("linux,cma", [0, 0x4000_0000, 0, 0x4000_0000]), ("frames", [8, 0, 0, 0x4000_0000])]
        {
            root.node(&format!("reserved-memory/{pool}"), "shared-dma-pool");
            root.cells(&format!("reserved-memory/{pool}/alloc-ranges"), &range);
        }
    }),
    case("CMA where the command line says", kv260, &[("cma-high", "note")], |root| {
        root.put("proc/cmdline", "cma=256M@0x800000000\n")
    }),
    case("CMA where the kernel says", kv260, &[("cma-high", "note")], |root| {
        root.put("sys/kernel/debug/cma/reserved/base_pfn", "8388608")
    }),
    case("two controllers, of which uio has one", pynq, &[("intc-driver", "fault")], |root| {
        root.node("amba/interrupt-controller@41810000", "xlnx,axi-intc-4.1");
        platform(
            root,
            "41810000.interrupt-controller",
            "amba/interrupt-controller@41810000",
            "uio_pdrv_genirq",
        );
    }),
    case(
        "two controllers, of which the kernel has one",
        pynq,
        &[("intc-driver", "fault")],
        |root| {
            root.node("amba/interrupt-controller@41810000", "xlnx,axi-intc-4.1");
            root.put("sys/kernel/debug/irq/domains/:amba:interrupt-controller@41800000", "");
        },
    ),
    case("ports in reset that no design uses", kv260, &[], |root| {
        root.put("dev/mem", "");
        root.register(0xfd1a_0100, 0x1f << 8);
    }),
    case("the port that the design uses, in reset", kv260, &[("port-width", "note")], |root| {
        root.put("dev/mem", "");
        root.register(0xfd1a_0100, 1 << 7);
    }),
    case("a user who owns the node", pynq, &[], |root| {
        // Only root may give it away. For others it is their own already.
        let _ = chown(root.0.join("dev/uio0"), Some(1000), Some(998));
        let owner = fs::metadata(root.0.join("dev/uio0")).unwrap().uid();
        root.put(
            "proc/self/status",
            format!("Uid:\t{owner}\nGid:\t4243\nGroups:\t4242 \nCapEff:\t0000000000200000\n"),
        );
        root.mode("dev/uio0", 0o660);
    }),
    case("a user who is not in the group", pynq, &[("uio-rights", "note")], |root| {
        root.put(
            "proc/self/status",
            "Uid:\t1000\nGid:\t4243\nGroups:\t4242 \nCapEff:\t0000000000200000\n",
        );
        root.mode("dev/uio0", 0o660);
        // Only root may give it away; another user's own group is none of these.
        let _ = chown(root.0.join("dev/uio0"), None, Some(998));
    }),
    case("a link that leads out of the copy", pynq, &[], |root| {
        root.link("etc/group", "/etc/group");
        root.link(&format!("{TREE}/outside"), "/proc");
    }),
];

/// The group of a node. Only root may change it: for others the test goes without.
fn group(root: &Root, path: &str, id: u32) {
    root.mode(path, 0o660);
    if chown(root.0.join(path), None, Some(id)).is_err() {
        root.mode(path, if id == 0 { 0o600 } else { 0o666 });
    }
}

/// The link from a class's device to its node, as sysfs has it.
fn of_node(root: &Root, class: &str, node: &str) {
    root.of_node(&format!("{class}/device"), node);
}

/// A device of the platform: its node, and the driver that has it.
fn platform(root: &Root, device: &str, node: &str, driver: &str) {
    root.of_node(&format!("sys/bus/platform/devices/{device}"), node);
    root.driver("platform", device, driver);
}
