#![allow(unsafe_code, reason = "an address register is tried")]
//! A core's parameters, which no register has; the check of its window; and what a core takes.

use super::descriptors::{DEPTH_MAX, Transfer};
use super::regs;
use crate::checks::{has_window, is_width, outside, reads_zero, within};
use contigo_core::hw::Device;
use contigo_core::job::OperandSpec;
use contigo_core::types::{Align, Error, Result};

/// The parameters of a core, as its block design has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AxiCdmaConfig {
    /// The bits of a length: 8 to 26. Version 4.1 has 26, earlier ones 23. A narrower register
    /// would silently truncate a length, so 23 is safe everywhere.
    pub length_bits: u32,
    /// `C_ADDR_WIDTH`: 32 to 64.
    pub address_bits: u32,
    /// `C_M_AXI_DATA_WIDTH`: 32 to 1,024, a power of two.
    pub data_bits: u32,
    /// `C_INCLUDE_DRE`: copies may begin at any byte.
    pub dre: bool,
    /// `C_USE_DATAMOVER_LITE`: a copy is one burst, and crosses no multiple of 4 KiB.
    pub lite: bool,
    /// `C_M_AXI_MAX_BURST_LEN`: 2 to 256.
    pub burst_beats: u32,
    /// With descriptors, the most jobs in flight, up to 64. `None`: one less than there are
    /// descriptors. Each job has an equal share of the descriptors, which limits its length.
    pub depth: Option<usize>,
    /// With descriptors: the number of them per interrupt, 1 to 255. More than 1 needs a delay.
    pub irq_threshold: u32,
    /// With descriptors: an interrupt after this many times 125 clocks in which none ended, 0 to
    /// 255. 0: none. It may come after the last end was reported.
    pub irq_delay: u32,
    /// The time limit of the reset that stops it.
    pub stop_us: u32,
}

impl Default for AxiCdmaConfig {
    /// The core as Vivado builds it, of any version.
    fn default() -> Self {
        Self {
            length_bits: regs::LENGTH_BITS_ANY,
            address_bits: 32,
            data_bits: 32,
            dre: false,
            lite: false,
            burst_beats: 16,
            depth: None,
            irq_threshold: 1,
            irq_delay: 0,
            stop_us: 10_000,
        }
    }
}

/// No burst crosses a multiple of this (Arm IHI 0022, A3.4.1).
const BOUNDARY_BYTES: u64 = 4096;

impl AxiCdmaConfig {
    /// The configuration in the settings of its driver info.
    pub(super) fn of(settings: contigo_core::job::Settings<'_>) -> Result<Self> {
        let default = Self::default();
        Ok(Self {
            length_bits: settings.value(
                "length_bits",
                regs::LENGTH_BITS_MIN,
                regs::LENGTH_BITS_MAX,
                default.length_bits,
            )?,
            address_bits: settings.value("address_bits", 32, 64, default.address_bits)?,
            data_bits: settings.value("data_bits", 32, 1024, default.data_bits)?,
            dre: settings.flag("dre", false)?,
            lite: settings.flag("lite", false)?,
            burst_beats: settings.value("burst_beats", 2, 256, default.burst_beats)?,
            depth: settings
                .number("depth", 1, DEPTH_MAX as u64)?
                .and_then(|depth| usize::try_from(depth).ok()),
            irq_threshold: settings.value("irq_threshold", 1, 255, default.irq_threshold)?,
            irq_delay: settings.value("irq_delay", 0, 255, default.irq_delay)?,
            stop_us: settings.value("stop_us", 1, 400_000, default.stop_us)?,
        })
    }

    /// Checks that a core can have these parameters.
    fn check(&self) -> Result<()> {
        let (length_min, length_max) = (regs::LENGTH_BITS_MIN, regs::LENGTH_BITS_MAX);
        within("length_bits", self.length_bits, length_min, length_max)?;
        within("address_bits", self.address_bits, 32_u8, 64_u8)?;
        is_width("data_bits, a power of two,", self.data_bits, 32)?;
        within("burst_beats", self.burst_beats, 2_u8, 256_u16)?;
        within("depth", self.depth.unwrap_or(1) as u64, 1_u8, DEPTH_MAX as u64)?;
        within("irq_threshold", self.irq_threshold, 1_u8, 255_u8)?;
        within("irq_delay", self.irq_delay, 0_u8, 255_u8)?;
        within("stop_us", self.stop_us, 1_u8, 400_000_u32)?;
        if self.irq_threshold > 1 {
            // The last descriptors would never interrupt.
            let name = "irq_delay, beside an irq_threshold of more than 1,";
            within(name, self.irq_delay, 1_u8, 255_u8)?;
        }
        if self.dre && self.lite {
            const TOGETHER: Error = Error::Unsupported {
                what: "no AXI CDMA has both dre and lite",
                fix: "take both from the block design",
            };
            return Err(TOGETHER);
        }
        Ok(())
    }

    /// A word of the bus.
    pub(super) const fn word_bytes(&self) -> usize {
        self.data_bits as usize / 8
    }

    /// The most bytes of one transfer that another follows: whole words, so that the next is
    /// aligned too.
    pub(super) const fn piece_bytes(&self) -> usize {
        let longest = (1 << self.length_bits) - 1;
        longest / self.word_bytes() * self.word_bytes()
    }

    /// The most bytes of one transfer.
    pub(super) const fn longest(&self) -> usize {
        let longest = (1 << self.length_bits) - 1;
        let burst = self.burst_beats as usize * self.word_bytes();
        if self.lite && burst < longest { burst } else { longest }
    }

    /// An operand of at most `max_bytes`, as `spec`.
    pub(super) fn operand(&self, spec: OperandSpec, max_bytes: usize) -> OperandSpec {
        let spec = OperandSpec { max_bytes, word_bytes: self.word_bytes(), ..spec };
        // `check` has found a power of two.
        if self.dre {
            spec
        } else {
            spec.aligned(Align::new(self.word_bytes()).unwrap_or(Align::LINE))
        }
    }
}

/// The side with a fixed bus address, that of a FIFO in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Keyhole {
    /// The core reads there: jobs fill memory from it.
    Reads(u64),
    /// The core writes there: jobs send memory to it.
    Writes(u64),
}

impl Keyhole {
    /// Checks that a core with these parameters can have one there.
    fn check(self, config: &AxiCdmaConfig) -> Result<()> {
        let (Self::Reads(addr) | Self::Writes(addr)) = self;
        let max = regs::KEYHOLE_BEATS_MAX;
        within("burst_beats of a core with a keyhole", config.burst_beats, 2_u8, max)?;
        let align_bytes = config.word_bytes();
        if !addr.is_multiple_of(align_bytes as u64) {
            return Err(Error::Misaligned { addr, align_bytes });
        }
        if config.address_bits < 64 && addr >> config.address_bits != 0 {
            return Err(Error::TooHigh { last: addr, addr_bits: config.address_bits });
        }
        Ok(())
    }
}

/// Checks the window's size, the bits that read zero in an AXI CDMA, and the parameters.
pub(super) fn check(
    device: &impl Device,
    config: &AxiCdmaConfig,
    keyhole: Option<Keyhole>,
) -> Result<()> {
    config.check()?;
    if let Some(keyhole) = keyhole {
        keyhole.check(config)?;
    }
    has_window(device, "axi_cdma", regs::WINDOW_BYTES)?;
    reads_zero("axi_cdma", "CDMASR", regs::CDMASR.read(device), regs::CDMASR_ZEROES)?;
    reads_zero("axi_cdma", "CDMACR", regs::CDMACR.read(device), regs::CDMACR_ZEROES)
}

/// Whether scatter-gather is built in.
pub(super) fn has_sg(device: &impl Device, config: &AxiCdmaConfig) -> Result<()> {
    if config.lite {
        const LITE: Error = Error::Unsupported {
            what: "an AXI CDMA of the lite kind has no scatter-gather",
            fix: "open it without memory of its own",
        };
        return Err(LITE);
    }
    if regs::CDMASR.read(device) & regs::SG_INCLUDED == 0 {
        return Err(Error::Unsupported {
            what: "this AXI CDMA was built without scatter-gather (SGIncld is 0)",
            fix: "open it without memory of its own, or tick Enable Scatter Gather in the block \
                design",
        });
    }
    Ok(())
}

/// Whether this core has more than 32 address bits, whatever the settings are. The upper half of
/// its TAILDESC is then the doorbell.
pub(super) fn is_wide(device: &impl Device) -> bool {
    // SAFETY: the core is idle after a reset, and only BTT starts a copy.
    unsafe {
        regs::SA_HIGH.write(device, 1);
        let kept = regs::SA_HIGH.read(device);
        regs::SA_HIGH.write(device, 0);
        kept == 1
    }
}

/// Checks that the core takes this. Lengths and alignment were compared with the operands'
/// specifications.
pub(super) fn suits(
    config: &AxiCdmaConfig,
    keyhole: Option<Keyhole>,
    transfer: &Transfer,
) -> Result<()> {
    let value = transfer.len_bytes as u64;
    if value == 0 {
        return Err(outside("bytes to copy", value, 1, config.longest() as u64));
    }
    let word = config.word_bytes() as u64;
    if keyhole.is_some() && !value.is_multiple_of(word) {
        let max = config.piece_bytes() as u64;
        return Err(Error::Argument {
            name: "bytes through a keyhole",
            value,
            min: word,
            max,
            multiple_of: word,
        });
    }
    let sides = [
        (
            "bytes from operand 0 on, up to the next multiple of 4096,",
            transfer.from,
            transfer.from_moves,
        ),
        (
            "bytes from the last operand on, up to the next multiple of 4096,",
            transfer.to,
            transfer.to_moves,
        ),
    ];
    for (name, addr, moves) in sides {
        let max = BOUNDARY_BYTES - addr % BOUNDARY_BYTES;
        if config.lite && moves && value > max {
            return Err(outside(name, value, 1, max));
        }
    }
    Ok(())
}
