//! The fields of each family. Prepare writes in this order, which is AMD's for Zynq-7000
//! (`ps7_post_config`): level shifters, resets, then the ports behind them.

use super::{
    Cores,
    field::{Field, Setter, Want},
};
use crate::bitstream::Family;

/// Zynq-7000's `32BitEn`.
const HALF: &[(u32, &str)] = &[(0, "64 bits"), (1, "32 bits")];
/// ZynqMP's `FABRIC_WIDTH`, for ports into the processor.
const DOWN: &[(u32, &str)] = &[(0, "128 bits"), (1, "64 bits"), (2, "32 bits")];
/// ZynqMP's `DW_SS_SEL`, for ports out of the processor.
const UP: &[(u32, &str)] = &[(0, "32 bits"), (1, "64 bits"), (2, "128 bits")];

/// The SLCR's LVL_SHFTR_EN. Before they are on, no clock of the fabric reaches a port's registers.
const LVL_SHFTR_EN: u64 = 0xf800_0900;
/// CRF_APB.RST_FPD_TOP, whose bits 7 to 12 hold AFI_FM0 to 5, and CRL_APB.RST_LPD_TOP.
const RST_FPD_TOP: u64 = 0xfd1a_0100;
const RST_LPD_TOP: u64 = 0xff5e_023c;

const UG585_AFI: &str = "UG585, appendix B, axi_hp: AFI_RDCHAN_CTRL, AFI_WRCHAN_CTRL";
const UG585_SLCR: &str =
    "UG585, appendix B, slcr: FPGA_RST_CTRL, LVL_SHFTR_EN; Linux, drivers/fpga/zynq-fpga.c";
const UG1087_AFIFM: &str =
    "UG1087, AFIFM: AFIFM_RDCTRL, AFIFM_WRCTRL; resets in CRF_APB and CRL_APB";
const UG1087_AFI_FS: &str = "UG1087, FPD_SLCR and LPD_SLCR: afi_fs";
const UG1087_APU: &str = "UG1087, LPD_SLCR: lpd_apu";
const CV_SDR: &str =
    "Cyclone V HPS Register Map, sdr: fpgaportrst; Linux, drivers/fpga/altera-fpga2sdram.c";
const CV_RST: &str =
    "Cyclone V HPS Register Map, rstmgr: brgmodrst; Linux, drivers/fpga/altera-hps2fpga.c";

const CV_ACP: &str =
    "Cyclone V HPS Register Map, acpidmap: dynrd_s, dynwr_s; HPS TRM, ACP ID Mapper";

/// The cure for an HPC port that does not snoop.
pub(crate) const BROADCAST: &str = "[init] in the .bif, \".set. 0xFF41A040 = 0x3;\": it counts only before the processors leave reset";
const SDRAM: &str =
    "it opens only while no transfer to the SDRAM runs: bridge enable in U-Boot, before Linux";
const MAPPER: &str =
    "the boot code writes the mapper's dynrd and dynwr, while no transfer is on the ACP";
const BRIDGES: &str =
    "bridge enable in U-Boot, or the kernel's fpga-bridge in the tree; L3's remap cannot be read";

/// One direction of a port of Zynq-7000.
macro_rules! hp {
    ($n:literal, $way:literal, $offset:literal) => {
        Field {
            name: concat!("HP", $n, " ", $way, " width"),
            addr: 0xf800_8000 + $n * 0x1000 + $offset,
            mask: 1,
            words: HALF,
            setter: Setter::Prepare,
            source: UG585_AFI,
            want: Want::Width {
                parameter: concat!("PCW_S_AXI_HP", $n, "_DATA_WIDTH"),
                used: concat!("PCW_USE_S_AXI_HP", $n),
            },
            held: None,
            after: Some((LVL_SHFTR_EN, 0xf)),
        }
    };
}

/// A reset that a fabric gets by FPGAn_OUT_RST. A design may leave one to its program: it is wrong
/// only where the design gives it to the fabric.
const fn zynq_reset(name: &'static str, bit: u32, by: &'static [&'static str]) -> Field {
    Field {
        name,
        addr: 0xf800_0240,
        mask: 1 << bit,
        words: &[(0, "released"), (1, "held")],
        setter: Setter::Prepare,
        source: UG585_SLCR,
        want: Want::Used { value: 0, by },
        held: None,
        after: None,
    }
}

static ZYNQ: [Field; 13] = [
    Field {
        name: "level shifters",
        addr: LVL_SHFTR_EN,
        mask: 0xf,
        words: &[(0, "off"), (0xa, "to the fabric only"), (0xf, "on")],
        setter: Setter::Prepare,
        source: UG585_SLCR,
        want: Want::Running(0xf),
        held: None,
        after: None,
    },
    zynq_reset("reset 0 of the fabric", 0, &["PCW_EN_RST0_PORT"]),
    zynq_reset("reset 1 of the fabric", 1, &["PCW_EN_RST1_PORT"]),
    zynq_reset("reset 2 of the fabric", 2, &["PCW_EN_RST2_PORT"]),
    zynq_reset("reset 3 of the fabric", 3, &["PCW_EN_RST3_PORT"]),
    hp!(0, "read", 0),
    hp!(0, "write", 0x14),
    hp!(1, "read", 0),
    hp!(1, "write", 0x14),
    hp!(2, "read", 0),
    hp!(2, "write", 0x14),
    hp!(3, "read", 0),
    hp!(3, "write", 0x14),
];

/// One direction of a port into the processor: its name, its GP number, its block.
macro_rules! afifm {
    ($name:literal, $way:literal, $n:literal, $base:expr, $offset:literal, $held:expr) => {
        Field {
            name: concat!($name, " ", $way, " width"),
            addr: $base + $offset,
            mask: 3,
            words: DOWN,
            setter: Setter::Prepare,
            source: UG1087_AFIFM,
            want: Want::Width {
                parameter: concat!("PSU__SAXIGP", $n, "__DATA_WIDTH"),
                used: concat!("PSU__USE__S_AXI_GP", $n),
            },
            held: Some($held),
            after: None,
        }
    };
}

macro_rules! afi_fs {
    ($name:literal, $n:literal, $addr:expr, $mask:expr) => {
        Field {
            name: concat!($name, " width"),
            addr: $addr,
            mask: $mask,
            words: UP,
            setter: Setter::Prepare,
            source: UG1087_AFI_FS,
            want: Want::Width {
                parameter: concat!("PSU__MAXIGP", $n, "__DATA_WIDTH"),
                used: concat!("PSU__USE__M_AXI_GP", $n),
            },
            held: None,
            after: None,
        }
    };
}

static ZYNQMP: [Field; 18] = [
    afifm!("HPC0", "read", 0, 0xfd36_0000, 0, (RST_FPD_TOP, 1 << 7)),
    afifm!("HPC0", "write", 0, 0xfd36_0000, 0x14, (RST_FPD_TOP, 1 << 7)),
    afifm!("HPC1", "read", 1, 0xfd37_0000, 0, (RST_FPD_TOP, 1 << 8)),
    afifm!("HPC1", "write", 1, 0xfd37_0000, 0x14, (RST_FPD_TOP, 1 << 8)),
    afifm!("HP0", "read", 2, 0xfd38_0000, 0, (RST_FPD_TOP, 1 << 9)),
    afifm!("HP0", "write", 2, 0xfd38_0000, 0x14, (RST_FPD_TOP, 1 << 9)),
    afifm!("HP1", "read", 3, 0xfd39_0000, 0, (RST_FPD_TOP, 1 << 10)),
    afifm!("HP1", "write", 3, 0xfd39_0000, 0x14, (RST_FPD_TOP, 1 << 10)),
    afifm!("HP2", "read", 4, 0xfd3a_0000, 0, (RST_FPD_TOP, 1 << 11)),
    afifm!("HP2", "write", 4, 0xfd3a_0000, 0x14, (RST_FPD_TOP, 1 << 11)),
    afifm!("HP3", "read", 5, 0xfd3b_0000, 0, (RST_FPD_TOP, 1 << 12)),
    afifm!("HP3", "write", 5, 0xfd3b_0000, 0x14, (RST_FPD_TOP, 1 << 12)),
    afifm!("LPD", "read", 6, 0xff9b_0000, 0, (RST_LPD_TOP, 1 << 19)),
    afifm!("LPD", "write", 6, 0xff9b_0000, 0x14, (RST_LPD_TOP, 1 << 19)),
    afi_fs!("HPM0", 0, 0xfd61_5000, 0x300),
    afi_fs!("HPM1", 1, 0xfd61_5000, 0xc00),
    afi_fs!("HPM0_LPD", 2, 0xff41_9000, 0x300),
    Field {
        name: "snooping of HPC",
        addr: 0xff41_a040,
        mask: 3,
        words: &[(0, "off"), (1, "outer alone"), (2, "on"), (3, "on")],
        setter: Setter::Boot(BROADCAST),
        source: UG1087_APU,
        // HPC need not be coherent: the tree says whether it is meant to be.
        want: Want::Coherent { value: 3, by: &["PSU__USE__S_AXI_GP0", "PSU__USE__S_AXI_GP1"] },
        held: None,
        after: None,
    },
];

const fn bridge(name: &'static str, mask: u32, has: fn(&Cores) -> bool) -> Field {
    Field {
        name,
        addr: 0xffd0_501c,
        mask,
        words: &[(0, "released"), (1, "in reset")],
        setter: Setter::Boot(BRIDGES),
        source: CV_RST,
        want: Want::Core { value: 0, has },
        held: None,
        after: None,
    }
}

/// A field of the ACP's ID mapper, for masters whose ID is mapped as it comes: the fabric's.
const fn mapper(
    name: &'static str,
    addr: u64,
    mask: u32,
    words: &'static [(u32, &'static str)],
) -> Field {
    Field {
        name,
        addr,
        mask,
        words,
        setter: Setter::Boot(MAPPER),
        source: CV_ACP,
        want: Want::Unknown,
        held: None,
        after: None,
    }
}

const PAGES: &[(u32, &str)] =
    &[(0, "first GiB"), (1, "second GiB"), (2, "third GiB"), (3, "fourth GiB")];
const SHARED: &[(u32, &str)] = &[(0, "not shared: no snooping"), (1, "shared")];

static CYCLONE_V: [Field; 8] = [
    bridge("bridge to the fabric", 1, |cores| cores.behind_h2f),
    bridge("bridge to its registers (LW)", 2, |cores| cores.behind_lw),
    // The way to the ACP.
    bridge("bridge from the fabric", 4, |cores| cores.coherent),
    Field {
        name: "ports to the SDRAM",
        addr: 0xffc2_5080,
        mask: 0x3fff,
        words: &[(0, "closed"), (0x3fff, "open")],
        setter: Setter::Boot(SDRAM),
        source: CV_SDR,
        // Linux learns which ports a design has from the boot code alone: iswgrp_handoff3.
        want: Want::Handoff { addr: 0xffd0_808c, asked: |cores| cores.asks_for_sdram },
        held: None,
        after: None,
    },
    mapper("ACP reads go to", 0xff70_7058, 0x3000, PAGES),
    mapper("ACP reads are", 0xff70_7058, 0x1f0, SHARED),
    mapper("ACP writes go to", 0xff70_705c, 0x3000, PAGES),
    mapper("ACP writes are", 0xff70_705c, 0x1f0, SHARED),
];

/// The fields of a family.
#[must_use]
pub fn fields(family: Family) -> &'static [Field] {
    match family {
        Family::Zynq7000 => &ZYNQ,
        Family::ZynqMp => &ZYNQMP,
        Family::CycloneV => &CYCLONE_V,
    }
}
