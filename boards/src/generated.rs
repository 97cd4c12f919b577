//! Made from the folders of boards/, and never written by hand: see boards/README.md.

#![allow(clippy::doc_markdown, reason = "names of products")]

use crate::{Board, Soc};

#[path = "../soc/cyclone_v.rs"]
pub mod cyclone_v;
#[path = "../soc/pc.rs"]
pub mod pc;
#[path = "../soc/sim.rs"]
pub mod sim;
#[path = "../soc/tegra194.rs"]
pub mod tegra194;
#[path = "../soc/tegra210.rs"]
pub mod tegra210;
#[path = "../soc/tegra234.rs"]
pub mod tegra234;
#[path = "../soc/zynq7000.rs"]
pub mod zynq7000;
#[path = "../soc/zynqmp.rs"]
pub mod zynqmp;

/// Terasic DE10-Nano, 1 GiB.
///
/// - Processor: Cyclone V 5CSEBA6
/// - Memory: 1 GiB of DDR3, 0000_0000 to 3FFF_FFFF
/// - Images: Terasic's Linux
#[rustfmt::skip]
pub const DE10_NANO: Board = Board {
    name: "de10-nano",
    title: "Terasic DE10-Nano, 1 GiB",
    soc: "Cyclone V 5CSEBA6",
    ports: &[cyclone_v::F2SDRAM, cyclone_v::ACP],
    manual: "Cyclone V HPS TRM, L3 Address Space",
    compatible: &[],
    facts: "",
    crystal_hz: Some(25_000_000),
};

/// NVIDIA Jetson Nano, 4 GiB.
///
/// - Processor: Tegra X1 (T210)
/// - Memory: 4 GiB of LPDDR4, 8000_0000 to 1_7FFF_FFFF
/// - Images: JetPack 4
#[rustfmt::skip]
pub const JETSON_NANO: Board = Board {
    name: "jetson-nano",
    title: "NVIDIA Jetson Nano, 4 GiB",
    soc: "Tegra X1 (T210)",
    ports: &[],
    manual: "CUDA for Tegra, \"Memory Management\"; Linux, tegra210.dtsi",
    compatible: &["nvidia,p3450-0000"],
    facts: "PCIe has no SMMU and is not dma-coherent: VFIO has nothing there (Linux 6.12, tegra210.dtsi: pcie@1003000). Memory that CUDA pins is uncached for the CPU (CUDA for Tegra, Memory Management).",
    crystal_hz: None,
};

/// NVIDIA Jetson AGX Orin.
///
/// - Processor: Orin (T234)
/// - Memory: the module's, which the boot firmware puts into the tree
/// - Images: JetPack 5, JetPack 6
#[rustfmt::skip]
pub const JETSON_ORIN: Board = Board {
    name: "jetson-orin",
    title: "NVIDIA Jetson AGX Orin",
    soc: "Orin (T234)",
    ports: &[],
    manual: "CUDA for Tegra, \"I/O Coherency\"; Linux, tegra234.dtsi",
    compatible: &["nvidia,p3737-0000+p3701-0000", "nvidia,p3737-0000+p3701-0008"],
    facts: "PCIe is dma-coherent and behind an Arm MMU-500: a card's memory comes from VFIO (Linux 6.12, tegra234.dtsi: pcie@14180000, iommu-map). Memory that CUDA pins is cached, and the GPU snoops (CUDA for Tegra, I/O Coherency).",
    crystal_hz: None,
};

/// NVIDIA Jetson AGX Xavier.
///
/// - Processor: Xavier (T194)
/// - Memory: the module's, which the boot firmware puts into the tree
/// - Images: JetPack 4, JetPack 5
#[rustfmt::skip]
pub const JETSON_XAVIER: Board = Board {
    name: "jetson-xavier",
    title: "NVIDIA Jetson AGX Xavier",
    soc: "Xavier (T194)",
    ports: &[],
    manual: "CUDA for Tegra, \"I/O Coherency\"; Linux, tegra194.dtsi",
    compatible: &["nvidia,p2972-0000"],
    facts: "PCIe is dma-coherent and behind an Arm MMU-500: a card's memory comes from VFIO (Linux 6.12, tegra194.dtsi: pcie@14180000, iommu-map). Memory that CUDA pins is cached, and the GPU snoops (CUDA for Tegra, I/O Coherency).",
    crystal_hz: None,
};

/// AMD Kria KV260, 4 GiB.
///
/// - Processor: Zynq UltraScale+ XCK26
/// - Memory: 4 GiB of DDR4, half of it at 0 and half at 8_0000_0000
/// - Images: Ubuntu, PetaLinux
#[rustfmt::skip]
pub const KV260: Board = Board {
    name: "kv260",
    title: "AMD Kria KV260, 4 GiB",
    soc: "Zynq UltraScale+ XCK26",
    ports: &[zynqmp::HP0, zynqmp::HP1, zynqmp::HP2, zynqmp::HP3, zynqmp::HPC0, zynqmp::HPC1],
    manual: "UG1085, chapter 10; APU Coherent Interfaces",
    compatible: &[],
    facts: "",
    crystal_hz: Some(33_333_333),
};

/// PC with an FPGA card.
///
/// - Processor: x86-64
#[rustfmt::skip]
pub const PC: Board = Board {
    name: "pc",
    title: "PC with an FPGA card",
    soc: "x86-64",
    ports: &[pc::PCIE],
    manual: "PCI Express Base Specification",
    compatible: &[],
    facts: "",
    crystal_hz: None,
};

/// TUL PYNQ-Z2, 512 MiB.
///
/// - Processor: Zynq-7000 XC7Z020
/// - Memory: 512 MiB of DDR3, 0000_0000 to 1FFF_FFFF
/// - Images: PYNQ, PetaLinux
#[rustfmt::skip]
pub const PYNQ_Z2: Board = Board {
    name: "pynq-z2",
    title: "TUL PYNQ-Z2, 512 MiB",
    soc: "Zynq-7000 XC7Z020",
    ports: &[zynq7000::HP0, zynq7000::HP1, zynq7000::HP2, zynq7000::HP3, zynq7000::GP0, zynq7000::GP1, zynq7000::ACP],
    manual: "UG585, table 4-1; 3.5.1",
    compatible: &[],
    facts: "",
    crystal_hz: Some(50_000_000),
};

/// Simulated board.
///
/// - Processor: none
#[rustfmt::skip]
pub const SIM: Board = Board {
    name: "sim",
    title: "Simulated board",
    soc: "none",
    ports: &[sim::HP0, sim::ACP, sim::WIDE, sim::WIDE_COHERENT],
    manual: "contigo::sim",
    compatible: &[],
    facts: "",
    crystal_hz: None,
};

/// AMD ZC702, 1 GiB.
///
/// - Processor: Zynq-7000 XC7Z020
/// - Memory: 1 GiB of DDR3, 0000_0000 to 3FFF_FFFF
/// - Images: PetaLinux
#[rustfmt::skip]
pub const ZC702: Board = Board {
    name: "zc702",
    title: "AMD ZC702, 1 GiB",
    soc: "Zynq-7000 XC7Z020",
    ports: &[zynq7000::HP0, zynq7000::HP1, zynq7000::HP2, zynq7000::HP3, zynq7000::GP0, zynq7000::GP1, zynq7000::ACP],
    manual: "UG585, table 4-1; 3.5.1",
    compatible: &[],
    facts: "",
    crystal_hz: Some(33_333_333),
};

/// AMD ZCU102, 4 GiB.
///
/// - Processor: Zynq UltraScale+ XCZU9EG
/// - Memory: 4 GiB of DDR4, half of it at 0 and half at 8_0000_0000
/// - Images: PetaLinux
#[rustfmt::skip]
pub const ZCU102: Board = Board {
    name: "zcu102",
    title: "AMD ZCU102, 4 GiB",
    soc: "Zynq UltraScale+ XCZU9EG",
    ports: &[zynqmp::HP0, zynqmp::HP1, zynqmp::HP2, zynqmp::HP3, zynqmp::HPC0, zynqmp::HPC1],
    manual: "UG1085, chapter 10; APU Coherent Interfaces",
    compatible: &[],
    facts: "",
    crystal_hz: Some(33_333_333),
};

/// Every board here, by name.
#[rustfmt::skip]
pub const ALL: &[Board] = &[
    DE10_NANO,
    JETSON_NANO,
    JETSON_ORIN,
    JETSON_XAVIER,
    KV260,
    PC,
    PYNQ_Z2,
    SIM,
    ZC702,
    ZCU102,
];

/// Every system on chip here.
#[rustfmt::skip]
pub const SOCS: &[Soc] = &[
    cyclone_v::SOC,
    tegra194::SOC,
    tegra210::SOC,
    tegra234::SOC,
    zynq7000::SOC,
    zynqmp::SOC,
];
