//! A core's parameters and its ports' offsets, which older cores have in no register. Opening
//! compares those that newer cores report.

use super::regs::{self, At};
use crate::checks::{has_window, is_width, within};
use contigo_core::hw::{Device, Mmio};
use contigo_core::job::{Descriptors, OperandSpec, Settings};
use contigo_core::types::{Align, Error, Result};

/// The most jobs in flight, however deep the core's FIFO is.
pub(super) const JOBS_MAX: usize = 128;
/// The least depth that Platform Designer offers.
pub(super) const DEPTH_MIN: usize = 8;

/// The longest `settle_us`, with which the stop program's polls take less than a second.
const SETTLE_MAX_US: u32 = 100_000;

/// The core's mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MsgdmaMode {
    /// From memory to memory.
    #[default]
    Copy,
    /// From memory to a stream, a packet a job.
    Send,
    /// From a stream to memory, a packet a job.
    Receive,
}

/// The core's "Transfer Type": which addresses and lengths it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MsgdmaTransfer {
    /// Only whole words, at multiples of a word.
    FullWords,
    /// Any length, starting at a multiple of a word.
    #[default]
    Aligned,
    /// Any address and length.
    Unaligned,
}

/// How the core is built, and where its slave ports lie in the device's window.
///
/// ```
/// use contigo::drivers::msgdma::{MsgdmaConfig, MsgdmaMode};
/// let receiver = MsgdmaConfig { mode: MsgdmaMode::Receive, resp_at: Some(0x40), max_bytes: 1 << 16, ..MsgdmaConfig::default() };
/// assert_eq!((receiver.csr_at, receiver.desc_at, receiver.data_bits), (0, 0x20, 32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsgdmaConfig {
    /// "DMA Mode".
    pub mode: MsgdmaMode,
    /// "Enable Extended Feature Support": descriptors of 32 bytes, with 64-bit addresses.
    pub extended: bool,
    /// "Descriptor FIFO Depth": 8 to 1,024. Up to 128 jobs are in flight.
    pub depth: usize,
    /// "Maximum Transfer Length": the longest job, in bytes.
    pub max_bytes: u32,
    /// "Data Width": 8 to 1,024.
    pub data_bits: u32,
    /// "Transfer Type".
    pub transfer: MsgdmaTransfer,
    /// How many bits of an address the masters drive; more than 32 only with `extended`.
    pub address_bits: u32,
    /// Where the CSR port lies, in bytes from the beginning of the window.
    pub csr_at: usize,
    /// Where the descriptor port lies. A core with a prefetcher has none.
    pub desc_at: usize,
    /// Where the response port lies, in a core that has a memory-mapped one. A receiver needs it.
    pub resp_at: Option<usize>,
    /// Where the prefetcher's CSR port lies, in a core that has a prefetcher.
    pub prefetcher_at: Option<usize>,
    /// "Enable Write Response": the core waits until its writes are answered. No register shows it.
    /// Without it, jobs end and stops succeed `settle_us` after the core's report.
    pub write_responses: bool,
    /// A core without `write_responses` reports done when the interconnect has accepted its last
    /// write, which is in memory at most this many microseconds later.
    pub settle_us: u32,
    /// The limit of each of a stop's waits, in microseconds. The first wait is for the descriptor
    /// at work, which is cut if it takes longer.
    pub stop_us: u32,
}

impl Default for MsgdmaConfig {
    /// Platform Designer's defaults: memory to memory, standard descriptors, 32 bits, 1 KiB per
    /// job, no response port and no write responses; CSR first, and the descriptor port behind it.
    fn default() -> Self {
        Self {
            mode: MsgdmaMode::Copy,
            extended: false,
            depth: 128,
            max_bytes: 1024,
            data_bits: 32,
            transfer: MsgdmaTransfer::Aligned,
            address_bits: 32,
            csr_at: 0,
            desc_at: 0x20,
            resp_at: None,
            prefetcher_at: None,
            write_responses: false,
            settle_us: 100,
            stop_us: 10_000,
        }
    }
}

impl MsgdmaConfig {
    /// The names that [`from_settings`](Self::from_settings) knows.
    pub(crate) const SETTINGS: &'static [&'static str] = &[
        Descriptors::SETTING,
        "mode",
        "extended",
        "depth",
        "max_bytes",
        "data_bits",
        "transfer",
        "address_bits",
        "csr_at",
        "desc_at",
        "resp_at",
        "prefetcher_at",
        "write_responses",
        "settle_us",
        "stop_us",
    ];

    /// The configuration in `settings`, with defaults. Offset 0 is for the CSR port only: the
    /// response port or the prefetcher at 0 is absent.
    ///
    /// # Errors
    /// As [`Settings::number`].
    #[allow(clippy::cast_possible_truncation, reason = "each number has its limit")]
    pub fn from_settings(settings: &Settings<'_>) -> Result<Self> {
        const AT_MAX: u64 = u32::MAX as u64;
        let default = Self::default();
        let number = |name, min, max, default: usize| {
            settings
                .number(name, min, max)
                .map(|found| found.map_or(default, |value| value as usize))
        };
        let some = |at: usize| (at != 0).then_some(at);
        Ok(Self {
            mode: match number("mode", 0, 2, 0)? {
                0 => MsgdmaMode::Copy,
                1 => MsgdmaMode::Send,
                _ => MsgdmaMode::Receive,
            },
            extended: number("extended", 0, 1, 0)? == 1,
            depth: number("depth", DEPTH_MIN as u64, 1024, default.depth)?,
            max_bytes: number("max_bytes", 1, AT_MAX, default.max_bytes as usize)? as u32,
            data_bits: number("data_bits", 8, 1024, default.data_bits as usize)? as u32,
            transfer: match number("transfer", 0, 2, 1)? {
                0 => MsgdmaTransfer::FullWords,
                1 => MsgdmaTransfer::Aligned,
                _ => MsgdmaTransfer::Unaligned,
            },
            address_bits: number("address_bits", 12, 64, default.address_bits as usize)? as u32,
            csr_at: number("csr_at", 0, AT_MAX, default.csr_at)?,
            desc_at: number("desc_at", 0, AT_MAX, default.desc_at)?,
            resp_at: some(number("resp_at", 0, AT_MAX, 0)?),
            prefetcher_at: some(number("prefetcher_at", 0, AT_MAX, 0)?),
            write_responses: settings.flag("write_responses", default.write_responses)?,
            settle_us: settings.value("settle_us", 1, SETTLE_MAX_US, default.settle_us)?,
            stop_us: number("stop_us", 1, 400_000, default.stop_us as usize)? as u32,
        })
    }

    /// Whether the core writes to memory.
    pub(super) const fn writes(&self) -> bool {
        !matches!(self.mode, MsgdmaMode::Send)
    }

    /// From the core's report to its bytes in memory, in microseconds; 0 if it waits for them.
    pub(super) const fn settles_us(&self) -> u32 {
        if self.writes() && !self.write_responses { self.settle_us } else { 0 }
    }

    /// Whether stopping its masters in mid-descriptor spoils the core. A receiver must be stopped
    /// while it waits for a packet.
    pub(super) const fn is_spoilt_by_stop(&self) -> bool {
        self.write_responses && matches!(self.mode, MsgdmaMode::Copy)
    }

    /// A word of the data path, in bytes.
    pub(super) const fn word_bytes(&self) -> usize {
        (self.data_bits / 8) as usize
    }

    /// The bytes of the window that the driver uses. Refuses impossible configurations.
    pub(super) fn check(&self, device: &impl Mmio) -> Result<()> {
        is_width("data_bits, a power of two,", self.data_bits, 8)?;
        within("depth", self.depth as u64, DEPTH_MIN as u64, 1024_u16)?;
        within("settle_us", self.settle_us, 1_u8, SETTLE_MAX_US)?;
        within("max_bytes", self.max_bytes, 1_u8, u32::MAX)?;
        let most: u8 = if self.extended { 64 } else { 32 };
        within("address_bits without extended descriptors", self.address_bits, 12_u8, most)?;
        if self.mode == MsgdmaMode::Receive
            && self.resp_at.is_none()
            && self.prefetcher_at.is_none()
        {
            let fix = "build the core with a memory-mapped response port, or with a prefetcher, \
                and say `resp_at` or `prefetcher_at`";
            return Err(Error::Unsupported {
                what: "without responses no driver knows how long a received packet is",
                fix,
            });
        }
        let descriptor = if self.extended { regs::EXTENDED_BYTES } else { regs::STANDARD_BYTES };
        let slave = self.prefetcher_at.is_none().then_some((self.desc_at, descriptor));
        let ports = [
            Some((self.csr_at, regs::CSR_BYTES)),
            slave,
            self.resp_at.map(|at| (at, regs::RESPONSE_BYTES)),
            self.prefetcher_at.map(|at| (at, regs::PREFETCHER_BYTES)),
        ];
        for (index, &(at, len)) in ports.iter().flatten().enumerate() {
            let (need_bytes, multiple_of) = (at.saturating_add(len), 4);
            if !at.is_multiple_of(4) {
                return Err(Error::Argument {
                    name: "a port's offset",
                    value: at as u64,
                    min: 0,
                    max: u32::MAX.into(),
                    multiple_of,
                });
            }
            has_window(device, "msgdma", need_bytes)?;
            if ports
                .iter()
                .flatten()
                .take(index)
                .any(|&(other, bytes)| at < other + bytes && other < need_bytes)
            {
                let fix = "compare csr_at, desc_at, resp_at and prefetcher_at with the base \
                    addresses in Platform Designer";
                return Err(Error::Setting {
                    name: "a port's offset, inside another port,",
                    value: at as u64,
                    fix,
                });
            }
        }
        Ok(())
    }

    /// The operands of a job; only a copy has a second one.
    pub(super) fn operands(&self) -> [OperandSpec; 2] {
        let word = Align::new(self.word_bytes()).unwrap_or(Align::LINE);
        let suit = |spec: OperandSpec| match self.transfer {
            MsgdmaTransfer::Unaligned => spec,
            MsgdmaTransfer::Aligned | MsgdmaTransfer::FullWords => spec.aligned(word),
        };
        let max_bytes = usize::try_from(self.max_bytes).unwrap_or(usize::MAX);
        let (from, to) = (
            suit(OperandSpec { word_bytes: self.word_bytes(), ..OperandSpec::to_device() }),
            suit(OperandSpec::from_device()),
        );
        match self.mode {
            MsgdmaMode::Receive => [OperandSpec { max_bytes, ..to }, to],
            MsgdmaMode::Copy | MsgdmaMode::Send => [OperandSpec { max_bytes, ..from }, to],
        }
    }
}

/// Checks that it is this core, with these parameters.
pub(super) fn is_msgdma(device: &impl Device, config: &MsgdmaConfig) -> Result<()> {
    config.check(device)?;
    let csr = At(device, config.csr_at);
    let wrong = |register, expected, found| {
        Err(Error::WrongDevice { device: "msgdma", register, expected, found })
    };
    let status = regs::STATUS.read(&csr);
    if status & regs::RESERVED != 0 {
        return wrong("STATUS", status & !regs::RESERVED, status);
    }
    // Either the core is busy, with descriptors, or it is empty.
    if status & (regs::BUSY | regs::EMPTY) == 0 {
        return wrong("STATUS", status | regs::EMPTY, status);
    }
    if let Some(at) = config.prefetcher_at {
        let found = regs::FETCH_CONTROL.read(&At(device, at));
        if found & regs::FETCH_RESERVED != 0 {
            return wrong("the prefetcher's CONTROL", found & !regs::FETCH_RESERVED, found);
        }
    }
    if config.is_spoilt_by_stop() && regs::CONTROL.read(&csr) & regs::STOP != 0 {
        let fix = "a stop cut a copy of this core, which waits for the answers of writes that it \
            never made: reset it from outside";
        return Err(Error::Setting {
            name: "mSGDMA's CONTROL",
            value: regs::CONTROL.read(&csr).into(),
            fix,
        });
    }
    if regs::COMPONENT_INFO.read(&csr) & regs::COMPONENT_TYPE_BITS != regs::COMPONENT_TYPE {
        return Ok(()); // an older core
    }
    let mode = match config.mode {
        MsgdmaMode::Copy => 0,
        MsgdmaMode::Send => 1,
        MsgdmaMode::Receive => 2,
    } << regs::COMPONENT_MODE.trailing_zeros();
    let extended = if config.extended { regs::COMPONENT_EXTENDED } else { 0 };
    let prefetcher = if config.prefetcher_at.is_some() { regs::COMPONENT_PREFETCHER } else { 0 };
    let (first, second) = (regs::COMPONENT_1.read(&csr), regs::COMPONENT_2.read(&csr));
    let (mask, expected) = (regs::COMPONENT_MODE | regs::COMPONENT_EXTENDED, mode | extended);
    if first & mask != expected {
        return wrong(
            "COMPONENT_CONFIGURATION_1 (mode in bits 17:16, extended in 18)",
            first & !mask | expected,
            first,
        );
    }
    if second & regs::COMPONENT_PREFETCHER != prefetcher {
        return wrong(
            "COMPONENT_CONFIGURATION_2 (prefetcher in bit 17)",
            second & !regs::COMPONENT_PREFETCHER | prefetcher,
            second,
        );
    }
    Ok(())
}
