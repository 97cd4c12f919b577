//! AMD Zynq-7000: two Cortex-A9 and a fabric. UG585 is its Technical Reference Manual.
//!
//! The CPUs have a PL310 as their outer cache, and user space has no instruction to maintain either
//! level. So on the HP and GP ports the kernel must do it (u-dma-buf).

pub use crate::PYNQ_Z2;
use crate::{DmaEngine, DmaKind, Soc};
use contigo::{Bus, Port};

/// Bus addresses. UG585, "System Addresses", table 4-1 "System-Level Address Map": 0010_0000 to
/// 3FFF_FFFF is DDR for the CPUs, the ACP, AXI_HP and all other masters alike. Below it some
/// masters find on-chip memory or nothing, depending on the SCU's filter, so that megabyte is left
/// out.
const DDR: (u64, u64) = (0x0010_0000, 0x3FFF_FFFF);

/// A port of the fabric that does not snoop. Every AXI interface between PS and PL has 32 address
/// bits (UG585, "PS-PL Interfaces", AXI signal tables), and no interconnect translates.
const fn plain(name: &'static str) -> Port {
    Port { name, bus: Bus::Soc, offset: 0, addr_bits: 32, window: DDR, coherent: false }
}

/// S_AXI_HP0: the first of four 64-bit ports with FIFOs, straight to the memory controller, past
/// the caches (UG585, "AXI_HP Interfaces"; "Interconnect").
pub const HP0: Port = plain("zynq-hp0");
/// S_AXI_HP1.
pub const HP1: Port = plain("zynq-hp1");
/// S_AXI_HP2.
pub const HP2: Port = plain("zynq-hp2");
/// S_AXI_HP3.
pub const HP3: Port = plain("zynq-hp3");
/// S_AXI_GP0: the first of two 32-bit ports through the central interconnect, past the caches
/// (UG585, "AXI_GP Interfaces").
pub const GP0: Port = plain("zynq-gp0");
/// S_AXI_GP1.
pub const GP1: Port = plain("zynq-gp1");

/// S_AXI_ACP: through the snoop control unit, into the CPUs' caches (UG585, 3.5.1 "PL Co-processing
/// Interfaces").
///
/// It snoops only for requests with `AxUSER[0] = 1` and `AxCACHE[1] = 1`; a master that drives 0
/// there is not coherent, and this port is then the wrong one. Writes of whole lines with some
/// strobes off corrupt the line ("ACP Limitations").
pub const ACP: Port = Port { coherent: true, ..plain("zynq-acp") };

/// The processing system's own DMA controller, a DMA-330 with 8 channels at 0xF800_3000 in the
/// Secure state (`contigo::drivers::pl330`).
///
/// Its 64-bit master goes through the central interconnect, past the caches (UG585, 9.1
/// "Introduction"; "Interconnect"). Linux agrees: `dmac_s` in
/// `arch/arm/boot/dts/xilinx/zynq-7000.dtsi` has neither `dma-coherent` nor `dma-ranges`. That node
/// lists `irq_abort` first; for uio, whose first interrupt must be that of event 0, list `<0 14 4>`
/// alone.
pub const DMAC: Port = plain("zynq-dmac");

/// Every Zynq-7000. The PL330's registers are at F800_3000 for secure accesses, F800_4000 for
/// others (UG585, "PS System Register Map", dmac0_s and dmac0_ns); Linux runs secure and uses the
/// first (`zynq-7000.dtsi`, `dmac_s`).
pub const SOC: Soc = Soc {
    name: "Zynq-7000",
    compatible: "xlnx,zynq-7000",
    engines: &[DmaEngine { kind: DmaKind::Pl330, registers: 0xF800_3000, port: DMAC }],
};
