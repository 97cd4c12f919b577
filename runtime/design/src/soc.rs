//! The processing systems that designs are for.

/// A processing system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Soc {
    /// Zynq-7000: `processing_system7`.
    Zynq7000,
    /// Zynq UltraScale+ and RFSoC: `zynq_ultra_ps_e`.
    ZynqMp,
    /// Another one, or none: a design for a `MicroBlaze`, or a part of a design.
    Other,
}

/// A port of the processing system, for masters in the fabric.
pub(super) struct PsPort {
    /// Its interface in the block design.
    pub(super) interface: &'static str,
    /// Its name as a [`Port`](contigo_core::Port): those of the crate `contigo-boards`.
    pub(super) name: &'static str,
    /// The parameter with its width; empty if it has only one.
    pub(super) width: &'static str,
    /// Its possible widths.
    pub(super) widths: &'static [u32],
    pub(super) snoops: Caches,
}

/// A port's condition for snooping the processor's caches for a master.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Caches {
    /// It never does.
    Past,
    /// `AxUSER[0]` and `AxCACHE[1]` (UG585, "Accelerator Coherency Port").
    User,
    /// A value other than 0 on `AxCACHE[3:2]` (UG1085, "APU Coherent Interfaces").
    Allocate,
    /// Always.
    Always,
}

const fn port(
    interface: &'static str,
    name: &'static str,
    width: &'static str,
    widths: &'static [u32],
    snoops: Caches,
) -> PsPort {
    PsPort { interface, name, width, widths, snoops }
}

/// UG585, "PS-PL Interfaces"; PG082, the parameters.
const ZYNQ7000: &[PsPort] = &[
    port("S_AXI_HP0", "zynq-hp0", "C_S_AXI_HP0_DATA_WIDTH", &[32, 64], Caches::Past),
    port("S_AXI_HP1", "zynq-hp1", "C_S_AXI_HP1_DATA_WIDTH", &[32, 64], Caches::Past),
    port("S_AXI_HP2", "zynq-hp2", "C_S_AXI_HP2_DATA_WIDTH", &[32, 64], Caches::Past),
    port("S_AXI_HP3", "zynq-hp3", "C_S_AXI_HP3_DATA_WIDTH", &[32, 64], Caches::Past),
    port("S_AXI_GP0", "zynq-gp0", "", &[32], Caches::Past),
    port("S_AXI_GP1", "zynq-gp1", "", &[32], Caches::Past),
    port("S_AXI_ACP", "zynq-acp", "", &[64], Caches::User),
];

/// UG1085, "PS-PL AXI Interfaces"; PG201, the parameters: `SAXIGP0` is HPC0, `SAXIGP6` is LPD.
const ZYNQMP: &[PsPort] = &[
    port(
        "S_AXI_HPC0_FPD",
        "zynqmp-hpc0",
        "PSU__SAXIGP0__DATA_WIDTH",
        &[32, 64, 128],
        Caches::Allocate,
    ),
    port(
        "S_AXI_HPC1_FPD",
        "zynqmp-hpc1",
        "PSU__SAXIGP1__DATA_WIDTH",
        &[32, 64, 128],
        Caches::Allocate,
    ),
    port("S_AXI_HP0_FPD", "zynqmp-hp0", "PSU__SAXIGP2__DATA_WIDTH", &[32, 64, 128], Caches::Past),
    port("S_AXI_HP1_FPD", "zynqmp-hp1", "PSU__SAXIGP3__DATA_WIDTH", &[32, 64, 128], Caches::Past),
    port("S_AXI_HP2_FPD", "zynqmp-hp2", "PSU__SAXIGP4__DATA_WIDTH", &[32, 64, 128], Caches::Past),
    port("S_AXI_HP3_FPD", "zynqmp-hp3", "PSU__SAXIGP5__DATA_WIDTH", &[32, 64, 128], Caches::Past),
    port("S_AXI_LPD", "zynqmp-lpd", "PSU__SAXIGP6__DATA_WIDTH", &[32, 64, 128], Caches::Allocate),
    port("S_AXI_ACP_FPD", "zynqmp-acp", "", &[128], Caches::Always),
    port("S_AXI_ACE_FPD", "zynqmp-ace", "", &[128], Caches::Always),
];

impl Soc {
    /// The system whose block is called `ip`.
    pub(super) fn of(ip: &str) -> Option<Self> {
        match ip {
            "processing_system7" => Some(Self::Zynq7000),
            "zynq_ultra_ps_e" => Some(Self::ZynqMp),
            _ => None,
        }
    }

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zynq7000 => "Zynq-7000",
            Self::ZynqMp => "Zynq UltraScale+",
            Self::Other => "no Zynq",
        }
    }

    /// Its memory's address bits and location, for every master, as in `contigo-boards`.
    pub(super) const fn memory(self) -> (u32, (u64, u64)) {
        match self {
            Self::Zynq7000 => (32, (0x0010_0000, 0x3FFF_FFFF)),
            _ => (40, (0, 0xF_FFFF_FFFF)),
        }
    }

    /// The addresses between its two parts of memory, which a window may cover. UG1085, "System
    /// Address Map": DDR is below 2 GiB, and from 32 GiB on.
    const fn gap(self) -> (u64, u64) {
        match self {
            Self::ZynqMp => (0x8000_0000, 0x7_FFFF_FFFF),
            _ => (0, 0),
        }
    }

    /// One window over both, if all memory between them is in one of them.
    pub(super) fn joined(self, one: (u64, u64), other: (u64, u64)) -> Option<(u64, u64)> {
        let (low, high) = if one.0 <= other.0 { (one, other) } else { (other, one) };
        let touch = low.1.checked_add(1).is_none_or(|behind| behind >= high.0);
        let (first, last) = self.gap();
        let nothing =
            first > 0 && low.1.saturating_add(1) >= first && high.0.saturating_sub(1) <= last;
        (touch || nothing).then_some((low.0, low.1.max(high.1)))
    }

    /// The largest of these windows, after joining those that can be.
    pub(super) fn widest(self, windows: impl Iterator<Item = (u64, u64)> + Clone) -> (u64, u64) {
        let grown = |mut window: (u64, u64)| {
            // Each turn adds one window, and there are at most as many turns as windows.
            for _ in windows.clone() {
                let all = windows.clone();
                window =
                    all.fold(window, |window, other| self.joined(window, other).unwrap_or(window));
            }
            window
        };
        let all = windows.clone().map(grown);
        all.max_by_key(|window| window.1.saturating_sub(window.0)).unwrap_or((0, 0))
    }

    pub(super) fn port(self, interface: &str) -> Option<&'static PsPort> {
        let ports = match self {
            Self::Zynq7000 => ZYNQ7000,
            Self::ZynqMp => ZYNQMP,
            Self::Other => &[],
        };
        ports.iter().find(|port| port.interface == interface)
    }

    /// The shared interrupt (SPI) that line `line` of the fabric is, of 16: the number in a device
    /// tree, 32 less than the GIC's. UG585, table 7-4: 61 to 68 and 84 to 91. UG1085, "System
    /// Interrupts": 121 to 128 and 136 to 143.
    #[must_use]
    pub const fn shared_interrupt(self, line: u8) -> Option<u16> {
        let (low, high) = match self {
            Self::Zynq7000 => (29, 52),
            Self::ZynqMp => (89, 104),
            Self::Other => return None,
        };
        match line {
            0..=7 => Some(low + line as u16),
            8..=15 => Some(high + line as u16 - 8),
            _ => None,
        }
    }

    /// The first of the fabric's 16 interrupts at the processor's pin `pin`.
    pub(super) fn interrupt_pin(self, pin: &str) -> Option<u32> {
        match (self, pin) {
            (Self::Zynq7000, "IRQ_F2P") | (Self::ZynqMp, "pl_ps_irq0") => Some(0),
            (Self::ZynqMp, "pl_ps_irq1") => Some(8),
            _ => None,
        }
    }

    /// The fabric clock at the processor's pin `pin`.
    pub(super) fn clock_pin(self, pin: &str) -> Option<u8> {
        let digit = match self {
            Self::Zynq7000 => pin.strip_prefix("FCLK_CLK"),
            Self::ZynqMp => pin.strip_prefix("pl_clk"),
            Self::Other => None,
        };
        digit?.parse().ok().filter(|clock| *clock < 4)
    }

    /// The number of the fabric's clock `clock` for the kernel's clock controller: `clkc 15` is
    /// FCLK0 (Linux `bindings/clock/zynq-7000.txt`), `zynqmp_clk 71` PL0 (`xlnx-zynqmp-clk.h`).
    #[must_use]
    pub const fn clock_number(self, clock: u8) -> Option<u8> {
        match self {
            Self::Zynq7000 if clock < 4 => Some(15 + clock),
            Self::ZynqMp if clock < 4 => Some(71 + clock),
            _ => None,
        }
    }
}
