//! A field of a register, and the fields of each family. Prepare writes in this order, which is
//! AMD's for Zynq-7000 (`ps7_post_config`): level shifters, resets, then the ports behind them.

use super::Cores;
use crate::bitstream::Family;

/// The program or boot stage that sets a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setter {
    /// `contigo board prepare`, while no program and no driver has a node of the fabric. It does
    /// not see a core that runs by itself.
    Prepare,
    /// Only the boot code; the text has the reason and the way.
    Boot(&'static str),
}

/// The value that a field should have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// The width that a design gives its port.
    Width {
        /// The parameter with the width, in bits.
        parameter: &'static str,
        /// The parameter that is 0 if the design does not have the port.
        used: &'static str,
    },
    /// This value while a bitstream runs.
    Running(u32),
    /// This value while a bitstream runs, if its design has one of the parameters.
    Used {
        value: u32,
        /// The parameters, of which one is 1 in such a design.
        by: &'static [&'static str],
    },
    /// This value, if the tree has a core behind a port that snoops and the given design, if any,
    /// has one of these ports.
    Coherent {
        value: u32,
        /// The parameters, of which one is 1 in such a design.
        by: &'static [&'static str],
    },
    /// This value while a bitstream runs, if the tree has a core that needs it.
    Core {
        value: u32,
        /// Whether the tree has such a core.
        has: fn(&Cores) -> bool,
    },
    /// At least the bits that the boot code left for Linux in this register, while a bitstream runs
    /// and if the tree asks for them. They belong to the design with which the boot code was built.
    Handoff {
        /// The register's physical address.
        addr: u64,
        /// Whether the tree asks for these bits.
        asked: fn(&Cores) -> bool,
    },
    /// No design, tree or manager tells the value.
    Unknown,
}

/// A field of one of the processor's registers.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name: `HP0 read width`.
    pub name: &'static str,
    /// The register's physical address.
    pub addr: u64,
    /// The mask of its bits in the register.
    pub mask: u32,
    /// The values, shifted down, with their meaning.
    pub words: &'static [(u32, &'static str)],
    /// What can set it.
    pub setter: Setter,
    /// The manual's table, or the source code, behind this row.
    pub source: &'static str,
    pub(super) want: Want,
    /// A register, and its bits that are set while the block is held in reset.
    pub(super) held: Option<(u64, u32)>,
    /// A register, and its bits that must all be set, while a bitstream runs, before this field may
    /// be accessed.
    pub(super) after: Option<(u64, u32)>,
}

impl Field {
    /// Extracts the field from a value of its register.
    #[must_use]
    pub const fn of(&self, register: u32) -> u32 {
        (register & self.mask) >> self.mask.trailing_zeros()
    }

    /// Returns `register` with this value in the field.
    #[must_use]
    pub const fn with(&self, register: u32, value: u32) -> u32 {
        (register & !self.mask) | ((value << self.mask.trailing_zeros()) & self.mask)
    }

    /// A value in words: `32 bits`.
    #[must_use]
    pub fn say(&self, value: u32) -> String {
        let word = self.words.iter().find(|&&(known, _)| known == value).map(|&(_, word)| word);
        word.map_or_else(|| format!("{value:#x}"), str::to_owned)
    }
}

/// Zynq-7000's `32BitEn`.
const HALF: &[(u32, &str)] = &[(0, "64 bits"), (1, "32 bits")];
/// ZynqMP's `FABRIC_WIDTH`, for ports into the processor.
const DOWN: &[(u32, &str)] = &[(0, "128 bits"), (1, "64 bits"), (2, "32 bits")];
/// ZynqMP's `DW_SS_SEL`, for ports out of the processor.
const UP: &[(u32, &str)] = &[(0, "32 bits"), (1, "64 bits"), (2, "128 bits")];

/// The SLCR's LVL_SHFTR_EN. Until they are on, no fabric clock reaches a port's registers.
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
pub(crate) const BROADCAST: &str = "[init] in the .bif, \".set. 0xFF41A040 = 0x3;\": it counts \
    only before the processors leave reset";
const SDRAM: &str =
    "it opens only while no transfer to the SDRAM runs: bridge enable in U-Boot, before Linux";
const MAPPER: &str =
    "the boot code writes the mapper's dynrd and dynwr, while no transfer is on the ACP";
const BRIDGES: &str =
    "bridge enable in U-Boot, or the kernel's fpga-bridge in the tree; L3's remap cannot be read";

/// The width of a port. Two parameters of a design decide it: the width, and whether it is used.
const fn width(
    name: &'static str,
    (addr, mask): (u64, u32),
    words: &'static [(u32, &'static str)],
    source: &'static str,
    [parameter, used]: [&'static str; 2],
) -> Field {
    Field {
        name,
        addr,
        mask,
        words,
        setter: Setter::Prepare,
        source,
        want: Want::Width { parameter, used },
        held: None,
        after: None,
    }
}

/// One direction of a port of Zynq-7000.
const fn hp(name: &'static str, addr: u64, port: [&'static str; 2]) -> Field {
    Field { after: Some((LVL_SHFTR_EN, 0xf)), ..width(name, (addr, 1), HALF, UG585_AFI, port) }
}

const HP0: [&str; 2] = ["PCW_S_AXI_HP0_DATA_WIDTH", "PCW_USE_S_AXI_HP0"];
const HP1: [&str; 2] = ["PCW_S_AXI_HP1_DATA_WIDTH", "PCW_USE_S_AXI_HP1"];
const HP2: [&str; 2] = ["PCW_S_AXI_HP2_DATA_WIDTH", "PCW_USE_S_AXI_HP2"];
const HP3: [&str; 2] = ["PCW_S_AXI_HP3_DATA_WIDTH", "PCW_USE_S_AXI_HP3"];

/// A reset from FPGAn_OUT_RST to the fabric. A design may leave a reset to its program, so it is
/// wrong only if the design gives it to the fabric.
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
    hp("HP0 read width", 0xf800_8000, HP0),
    hp("HP0 write width", 0xf800_8014, HP0),
    hp("HP1 read width", 0xf800_9000, HP1),
    hp("HP1 write width", 0xf800_9014, HP1),
    hp("HP2 read width", 0xf800_a000, HP2),
    hp("HP2 write width", 0xf800_a014, HP2),
    hp("HP3 read width", 0xf800_b000, HP3),
    hp("HP3 write width", 0xf800_b014, HP3),
];

/// One direction of a port into the processor. A reset may hold its block.
const fn afifm(name: &'static str, addr: u64, port: [&'static str; 2], held: (u64, u32)) -> Field {
    Field { held: Some(held), ..width(name, (addr, 3), DOWN, UG1087_AFIFM, port) }
}

/// A port out of the processor.
const fn afi_fs(name: &'static str, place: (u64, u32), port: [&'static str; 2]) -> Field {
    width(name, place, UP, UG1087_AFI_FS, port)
}

const S_GP0: [&str; 2] = ["PSU__SAXIGP0__DATA_WIDTH", "PSU__USE__S_AXI_GP0"];
const S_GP1: [&str; 2] = ["PSU__SAXIGP1__DATA_WIDTH", "PSU__USE__S_AXI_GP1"];
const S_GP2: [&str; 2] = ["PSU__SAXIGP2__DATA_WIDTH", "PSU__USE__S_AXI_GP2"];
const S_GP3: [&str; 2] = ["PSU__SAXIGP3__DATA_WIDTH", "PSU__USE__S_AXI_GP3"];
const S_GP4: [&str; 2] = ["PSU__SAXIGP4__DATA_WIDTH", "PSU__USE__S_AXI_GP4"];
const S_GP5: [&str; 2] = ["PSU__SAXIGP5__DATA_WIDTH", "PSU__USE__S_AXI_GP5"];
const S_GP6: [&str; 2] = ["PSU__SAXIGP6__DATA_WIDTH", "PSU__USE__S_AXI_GP6"];
const M_GP0: [&str; 2] = ["PSU__MAXIGP0__DATA_WIDTH", "PSU__USE__M_AXI_GP0"];
const M_GP1: [&str; 2] = ["PSU__MAXIGP1__DATA_WIDTH", "PSU__USE__M_AXI_GP1"];
const M_GP2: [&str; 2] = ["PSU__MAXIGP2__DATA_WIDTH", "PSU__USE__M_AXI_GP2"];

static ZYNQMP: [Field; 18] = [
    afifm("HPC0 read width", 0xfd36_0000, S_GP0, (RST_FPD_TOP, 1 << 7)),
    afifm("HPC0 write width", 0xfd36_0014, S_GP0, (RST_FPD_TOP, 1 << 7)),
    afifm("HPC1 read width", 0xfd37_0000, S_GP1, (RST_FPD_TOP, 1 << 8)),
    afifm("HPC1 write width", 0xfd37_0014, S_GP1, (RST_FPD_TOP, 1 << 8)),
    afifm("HP0 read width", 0xfd38_0000, S_GP2, (RST_FPD_TOP, 1 << 9)),
    afifm("HP0 write width", 0xfd38_0014, S_GP2, (RST_FPD_TOP, 1 << 9)),
    afifm("HP1 read width", 0xfd39_0000, S_GP3, (RST_FPD_TOP, 1 << 10)),
    afifm("HP1 write width", 0xfd39_0014, S_GP3, (RST_FPD_TOP, 1 << 10)),
    afifm("HP2 read width", 0xfd3a_0000, S_GP4, (RST_FPD_TOP, 1 << 11)),
    afifm("HP2 write width", 0xfd3a_0014, S_GP4, (RST_FPD_TOP, 1 << 11)),
    afifm("HP3 read width", 0xfd3b_0000, S_GP5, (RST_FPD_TOP, 1 << 12)),
    afifm("HP3 write width", 0xfd3b_0014, S_GP5, (RST_FPD_TOP, 1 << 12)),
    afifm("LPD read width", 0xff9b_0000, S_GP6, (RST_LPD_TOP, 1 << 19)),
    afifm("LPD write width", 0xff9b_0014, S_GP6, (RST_LPD_TOP, 1 << 19)),
    afi_fs("HPM0 width", (0xfd61_5000, 0x300), M_GP0),
    afi_fs("HPM1 width", (0xfd61_5000, 0xc00), M_GP1),
    afi_fs("HPM0_LPD width", (0xff41_9000, 0x300), M_GP2),
    Field {
        name: "snooping of HPC",
        addr: 0xff41_a040,
        mask: 3,
        words: &[(0, "off"), (1, "outer alone"), (2, "on"), (3, "on")],
        setter: Setter::Boot(BROADCAST),
        source: UG1087_APU,
        // HPC need not be coherent: the tree tells whether it should be.
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

/// A field of the ACP's ID mapper, for masters whose ID is mapped dynamically: the fabric's.
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
    // The path to the ACP.
    bridge("bridge from the fabric", 4, |cores| cores.coherent),
    Field {
        name: "ports to the SDRAM",
        addr: 0xffc2_5080,
        mask: 0x3fff,
        words: &[(0, "closed"), (0x3fff, "open")],
        setter: Setter::Boot(SDRAM),
        source: CV_SDR,
        // Only the boot code tells Linux which ports a design has: iswgrp_handoff3.
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
