//! Right machines in folders: each file as the kernel has it, or a part of it.

pub(crate) use contigo_bringup::machine::fake::Root;
use std::path::Path;

pub(crate) const TREE: &str = "sys/firmware/devicetree/base";
pub(crate) const CONFIG: &str = "CONFIG_DMA_CMA=y\nCONFIG_UIO_PDRV_GENIRQ=m\n\
    CONFIG_DMA_SHARED_BUFFER=y\nCONFIG_XILINX_INTC=y\nCONFIG_VFIO=m\n";
const LIBC: &str = "GNU C Library (Debian GLIBC) stable release version 2.31.\n";

fn all(root: &Root, kernel: &str, cma_kib: u32, end_page: u64) {
    root.put(
        "proc/meminfo",
        format!("MemTotal:  500000 kB\nCmaTotal:  {cma_kib} kB\nCmaFree:  {cma_kib} kB\n"),
    );
    root.put(
        "proc/zoneinfo",
        format!(
            "Node 0, zone  Normal\n  spanned {end_page}\n  start_pfn:  0\n\
             Node 0, zone  Movable\n  spanned 0\n  start_pfn:  99999999\n"
        ),
    );
    root.put("proc/sys/kernel/osrelease", format!("{kernel}\n"));
    root.put("proc/cmdline", "console=ttyPS0,115200 rw rootwait\n");
    root.put("etc/group", "root:x:0:\ndma:x:998:user\n");
    root.put("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
}

/// PYNQ-Z2: u-dma-buf, uio, the module contigo, a fabric with a core at 4000_0000.
pub(crate) fn pynq(root: &Path) -> Root {
    let root = Root(root.to_owned());
    all(&root, "6.6.10-xilinx", 131_072, 131_072);
    root.put("boot/config-6.6.10-xilinx", CONFIG);
    root.put(&format!("{TREE}/compatible"), "tul,pynq-z2\0xlnx,zynq-7000\0");
    root.node("reserved-memory/linux,cma", "shared-dma-pool");
    root.cells("reserved-memory/linux,cma/reg", &[0x1000_0000, 0x800_0000]);
    root.put(&format!("{TREE}/reserved-memory/linux,cma/linux,cma-default"), "");
    root.node("amba", "simple-bus");
    root.node("amba/dmac@f8003000", "contigo,engine");
    root.node("amba/clkc@100", "xlnx,ps7-clkc");
    root.cells("amba/clkc@100/ps-clk-frequency", &[50_000_000]);
    root.node("amba/copy@40000000", "generic-uio");
    root.cells("amba/copy@40000000/interrupts", &[0, 29, 4]);
    root.node("amba/interrupt-controller@41800000", "xlnx,xps-intc-1.00.a");
    root.node("udmabuf0", "ikwzm,u-dma-buf");
    root.folder("sys/bus/platform/drivers/uio_pdrv_genirq");
    root.folder("sys/bus/platform/drivers/u-dma-buf");
    root.put("sys/class/uio/uio0/name", "copy\n");
    root.put(
        "proc/interrupts",
        "           CPU0       CPU1\n 45:         12          3  GIC-0  61 Level     copy\n",
    );
    for (name, text) in [
        ("size", "16777216"),
        ("phys_addr", "0x10000000"),
        ("sync_mode", "1"),
        ("dma_coherent", "0"),
        ("driver_version", "5.3.0"),
    ] {
        root.put(&format!("sys/class/u-dma-buf/udmabuf0/{name}"), text);
    }
    root.put("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    root.folder("sys/class/contigo/f8003000.dmac");
    root.put("sys/module/contigo/parameters/unprivileged", "Y\n");
    for node in ["uio0", "udmabuf0", "dma_heap/linux,cma", "contigo/f8003000.dmac"] {
        root.put(&format!("dev/{node}"), "");
    }
    root.put("sys/kernel/mm/cma/linux,cma/alloc_pages_fail", "0\n");
    for (name, pages) in [("count", "32768"), ("used", "4096"), ("maxchunk", "28672")] {
        root.put(&format!("sys/kernel/debug/cma/linux,cma/{name}"), pages);
    }
    root.put("sys/kernel/debug/clk/fclk0/clk_enable_count", "1\n");
    root.put("sys/kernel/debug/devices_deferred", "f8801000.etb\nf8803000.tpiu\n");
    root.put("sys/class/fpga_manager/fpga0/state", "operating\n");
    root.put("sys/class/fpga_bridge/br0/name", "lwhps2fpga\n");
    root.put("sys/class/fpga_bridge/br0/state", "enabled\n");
    root.put("lib/arm-linux-gnueabihf/libc.so.6", LIBC);
    root.put(
        "usr/local/lib/python3.10/dist-packages/contigo-0.1.0.dist-info/WHEEL",
        "Wheel-Version: 1.0\nTag: cp39-abi3-manylinux_2_27_armv7l\n",
    );
    root
}

/// DE10-Nano: u-dma-buf, a core behind the lightweight bridge, which is open.
pub(crate) fn de10(root: &Path) -> Root {
    let root = Root(root.to_owned());
    all(&root, "5.4.104", 65_536, 262_144);
    root.put("boot/config-5.4.104", CONFIG);
    root.put(
        &format!("{TREE}/compatible"),
        "terasic,de10-nano\0altr,socfpga-cyclone5\0altr,socfpga\0",
    );
    root.node("udmabuf0", "ikwzm,u-dma-buf");
    root.folder("sys/bus/platform/drivers/u-dma-buf");
    for (name, text) in [
        ("size", "16777216"),
        ("phys_addr", "0x30000000"),
        ("sync_mode", "1"),
        ("dma_coherent", "0"),
    ] {
        root.put(&format!("sys/class/u-dma-buf/udmabuf0/{name}"), text);
    }
    root.node("soc/copy@ff200000", "generic-uio");
    root.cells("soc/copy@ff200000/interrupts", &[0, 40, 4]);
    root.folder("sys/bus/platform/drivers/uio_pdrv_genirq");
    root.put("sys/class/uio/uio0/name", "copy\n");
    root.put("proc/interrupts", " 72:         12          3  GIC-0  72 Level     copy\n");
    for node in ["uio0", "udmabuf0"] {
        root.put(&format!("dev/{node}"), "");
    }
    for (number, name) in ["lwhps2fpga", "hps2fpga", "fpga2hps"].iter().enumerate() {
        root.put(&format!("sys/class/fpga_bridge/br{number}/name"), name);
        root.put(&format!("sys/class/fpga_bridge/br{number}/state"), "enabled");
    }
    root.put("proc/cmdline", "clk_ignore_unused\n");
    root.put("sys/class/fpga_manager/fpga0/state", "operating\n");
    root
}

/// KV260: a real-time kernel, an SMMU, a card behind VFIO, a dma-heap.
pub(crate) fn kv260(root: &Path) -> Root {
    use std::io::Write;
    let root = Root(root.to_owned());
    all(&root, "6.1.30-xilinx", 262_144, 0x88_0000);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(CONFIG.as_bytes()).unwrap();
    root.put("proc/config.gz", packed.finish().unwrap());
    root.put(&format!("{TREE}/compatible"), "xlnx,zynqmp-sk-kv260\0xlnx,zynqmp\0");
    root.node("axi/dma-controller@fd500000", "xlnx,zynqmp-dma-1.0");
    root.node("axi/iommu@fd800000", "arm,mmu-500");
    root.folder("sys/kernel/iommu_groups/3/devices/0000:01:00.0");
    root.put("sys/kernel/iommu_groups/3/type", "DMA\n");
    root.driver("pci", "0000:01:00.0", "vfio-pci");
    root.folder("sys/kernel/iommu_groups/4/devices/0000:02:00.0");
    root.put("sys/kernel/iommu_groups/4/type", "DMA\n");
    root.driver("pci", "0000:02:00.0", "contigo");
    root.folder("sys/class/contigo/0000:02:00.0");
    root.put("dev/contigo/0000:02:00.0", "");
    root.put("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
    root.put(
        "proc/self/limits",
        "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         134217728            \
         134217728            bytes\n",
    );
    root.put(
        "proc/self/status",
        "Uid:\t1000\t1000\t1000\t1000\nGroups:\t998 1000 \nCapEff:\t0000000000200000\n",
    );
    for node in ["vfio/3", "vfio/vfio", "dma_heap/linux,cma", "dma_heap/system"] {
        root.put(&format!("dev/{node}"), "");
    }
    root.mode("dev/dma_heap/system", 0o600);
    root.put("sys/kernel/realtime", "1\n");
    root.put("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    root.put("sys/kernel/debug/swiotlb/io_tlb_used", "0\n");
    root.put("lib/aarch64-linux-gnu/libc.so.6", LIBC);
    root
}

/// A PC with a card of uio's, huge pages, and a GPU.
pub(crate) fn pc(root: &Path) -> Root {
    let root = Root(root.to_owned());
    all(&root, "6.12.9-amd64", 0, 0x10_0000);
    root.put("proc/meminfo", "MemTotal:  500000 kB\nHugePages_Total:  16\nHugePages_Free:  9\n");
    root.driver("pci", "0000:00:02.0", "uio_pci_generic");
    root.driver("pci", "0000:00:03.0", "contigo");
    root.driver("pci", "0000:01:00.0", "nvidia");
    root.put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    root.put("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
    root.put(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun 6\n",
    );
    root.put("usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03", "");
    root.put("usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
    root
}

/// A Jetson Orin.
pub(crate) fn orin(root: &Path) -> Root {
    let root = Root(root.to_owned());
    all(&root, "5.15.148-tegra", 262_144, 0x10_0000);
    root.put(&format!("{TREE}/compatible"), "nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0");
    root.node("bus@0", "simple-bus");
    root.put("dev/nvmap", "");
    root.put("dev/dma_heap/linux,cma", "");
    root.put("usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1", "");
    for (file, text) in [
        ("name", "ina3221"),
        ("in1_label", "VDD_GPU_SOC"),
        ("in1_input", "19000"),
        ("curr1_input", "210"),
    ] {
        root.put(&format!("sys/class/hwmon/hwmon3/{file}"), text);
    }
    root
}
