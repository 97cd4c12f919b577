//! Intel (Altera) Cyclone V SoC: two Cortex-A9 and a fabric. Its manual is the Cyclone V Hard
//! Processor System Technical Reference Manual (683126).
//!
//! As on Zynq-7000 there is a PL310 outer cache, and user space cannot maintain either level.

pub use crate::DE10_NANO;
use crate::{DmaEngine, DmaKind, Soc};
use contigo::{Bus, Port};

/// FPGA-to-HPS SDRAM interface: six command ports straight to the SDRAM controller, past the
/// interconnect and the caches.
///
/// Bus addresses. Its masters see the SDRAM address space: 4 GiB from address 0, with no
/// translation (HPS TRM, "System Interconnect Address Spaces", the table of address spaces; "SDRAM
/// Controller Subsystem"). They cannot reach the ACP (AN 796, 2.1.2 "FPGA-to-HPS SDRAM Access"), so
/// nothing through them is ever coherent.
pub const F2SDRAM: Port = Port {
    name: "cyclone-v-f2sdram",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0, 0xFFFF_FFFF),
    coherent: false,
};

/// The ACP through the FPGA-to-HPS bridge (`f2h_axi_slave`, 32 address bits).
///
/// Bus addresses: 0x8000_0000 to 0xBFFF_FFFF of the interconnect's address space is a coherent
/// window of 1 GiB onto the CPUs' address space. So bus address = physical address + 0x8000_0000
/// (HPS TRM, "L3 Address Space"; "ACP ID Mapper"). The ID mapper's `page` field says which GiB it
/// shows. It is 0 after reset: the first ("Memory Region Remap", table of page decoder values;
/// registers `dynrd` and `dynwr`).
///
/// It snoops only for requests that are cacheable (`AxCACHE[1] = 1`) and shared (`AxUSER[0] = 1`).
/// The ID mapper sets `AxUSER` from the field `user` of the same registers, which is 0 after reset.
/// Until the boot code has written 1 there, the port is not coherent, whatever the master drives.
pub const ACP: Port = Port {
    name: "cyclone-v-acp",
    bus: Bus::Soc,
    offset: 0x8000_0000,
    addr_bits: 32,
    window: (0x8000_0000, 0xBFFF_FFFF),
    coherent: true,
};

/// The hard processor system's own DMA controller, a DMA-330 with 8 channels at 0xFFE0_1000
/// (`contigo::drivers::pl330`), on its way straight to the SDRAM, past the caches.
///
/// Bus addresses. On the L3 interconnect the first megabyte is memory or not, as its `remap`
/// register says, and SDRAM ends where the ACP's window begins (HPS TRM, "L3 Address Space"). Linux
/// uses physical addresses and maintains the caches: `pdma` in
/// `arch/arm/boot/dts/intel/socfpga/socfpga.dtsi` has neither `dma-ranges` nor `dma-coherent`. The
/// same node says that a reset (`DMA_RESET`) holds the controller until a driver releases it, which
/// uio does not.
pub const PDMA: Port = Port {
    name: "cyclone-v-pdma",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0x0010_0000, 0x7FFF_FFFF),
    coherent: false,
};

/// Every Cyclone V SoC. The PL330's registers are at FFE0_1000 for secure accesses (HPS TRM, "DMA
/// Controller Address Map": `dmasecure`); Linux uses these (`socfpga.dtsi`, `pdma`).
pub const SOC: Soc = Soc {
    name: "Cyclone V SoC",
    compatible: "altr,socfpga-cyclone5",
    engines: &[DmaEngine { kind: DmaKind::Pl330, registers: 0xFFE0_1000, port: PDMA }],
};
