//! AMD Zynq UltraScale+ MPSoC: four Cortex-A53 and a fabric. UG1085 is its Technical Reference
//! Manual.
//!
//! The A53 lets user space clean and invalidate lines by address, so the non-coherent ports need no
//! system call.

use crate::{DmaEngine, DmaKind, Soc};
pub use crate::{KV260, ZCU102};
use contigo::{Bus, Port};

/// Bus addresses. UG1085, chapter 10 "System Addresses": DDR is 0000_0000 to 7FFF_FFFF (2 GiB) and
/// 8_0000_0000 to F_FFFF_FFFF (32 GiB). A port here has one window, so it spans both; between them
/// lie devices, where no DMA memory is ever placed. The interfaces have 49 address bits (UG1085,
/// "System Address Map Interconnects"), of which 40 are physical.
const DDR: (u64, u64) = (0, 0xF_FFFF_FFFF);

/// A port of the fabric with the SMMU not translating: bus address = physical address.
const fn port(name: &'static str, coherent: bool) -> Port {
    Port { name, bus: Bus::Soc, offset: 0, addr_bits: 40, window: DDR, coherent }
}

/// S_AXI_HP0_FPD: 128-bit port to the memory controller, past the caches: these four cannot be made
/// coherent (UG1085, "I/O Coherency").
pub const HP0: Port = port("zynqmp-hp0", false);
/// S_AXI_HP1_FPD.
pub const HP1: Port = port("zynqmp-hp1", false);
/// S_AXI_HP2_FPD.
pub const HP2: Port = port("zynqmp-hp2", false);
/// S_AXI_HP3_FPD.
pub const HP3: Port = port("zynqmp-hp3", false);

/// S_AXI_HPC0_FPD: through the cache-coherent interconnect, which can snoop the CPUs (UG1085, "APU
/// Coherent Interfaces").
///
/// Coherent only when the bitstream and the firmware make it so: the master drives a value other
/// than 0 on `AxCACHE[3:2]`, and the CCI's `Snoop_Control_Register_S3[Enable_snoops]` is set.
/// Otherwise it is as [`HP0`].
pub const HPC0: Port = port("zynqmp-hpc0", true);
/// S_AXI_HPC1_FPD, as [`HPC0`].
pub const HPC1: Port = port("zynqmp-hpc1", true);

/// The master of GDMA, the DMA controller of the full-power domain: eight channels from 0xFD50_0000
/// on, 64 KiB apart (UG1087, module ZDMA), on a bus of 128 bits. Not coherent, and never: UG1085,
/// "I/O Coherency", leaves it out of the masters that can be.
pub const GDMA: Port = port("zynqmp-gdma", false);
/// The master of ADMA, the DMA controller of the low-power domain: eight channels from 0xFFA8_0000
/// on, 64 KiB apart, on a bus of 64 bits. Not coherent as it comes out of reset; UG1085, "I/O
/// Coherency", counts it among the masters that can be made so. Where the firmware routes it
/// through the CCI and enables its snoops, it is `Port { coherent: true, ..ADMA }`.
pub const ADMA: Port = port("zynqmp-adma", false);

/// One channel; they lie 64 KiB apart (UG1087, modules GDMA and ADMA).
const fn channel(registers: u64, port: Port) -> DmaEngine {
    DmaEngine { kind: DmaKind::Zdma, registers, port }
}

/// Every Zynq UltraScale+ MPSoC.
pub const SOC: Soc = Soc {
    name: "Zynq UltraScale+",
    compatible: "xlnx,zynqmp",
    engines: &[
        channel(0xFD50_0000, GDMA),
        channel(0xFD51_0000, GDMA),
        channel(0xFD52_0000, GDMA),
        channel(0xFD53_0000, GDMA),
        channel(0xFD54_0000, GDMA),
        channel(0xFD55_0000, GDMA),
        channel(0xFD56_0000, GDMA),
        channel(0xFD57_0000, GDMA),
        channel(0xFFA8_0000, ADMA),
        channel(0xFFA9_0000, ADMA),
        channel(0xFFAA_0000, ADMA),
        channel(0xFFAB_0000, ADMA),
        channel(0xFFAC_0000, ADMA),
        channel(0xFFAD_0000, ADMA),
        channel(0xFFAE_0000, ADMA),
        channel(0xFFAF_0000, ADMA),
    ],
};
