#![allow(unsafe_code, reason = "registers are tried by writing to them")]
//! A core's parameters: those that no register has, and those that its registers show, when read or
//! by which written bits they hold. Nothing written here starts a transfer.

use super::regs::{self, Side};
use crate::checks::{has_window, reads_zero};
use contigo_core::hw::Device;
use contigo_core::hw::mmio::{ReadWrite, Register};
use contigo_core::job::{Descriptors, OperandSpec, Settings};
use contigo_core::types::{Align, Error, Result};

/// `FIFO_SIZE`, as `axi_dmac_ip.tcl` offers it.
const FIFO_MIN: u32 = 2;
const FIFO_MAX: u32 = 32;
/// `MAX_BYTES_PER_BURST`: two beats of a byte, and what AXI allows a burst.
const BURST_MIN: usize = 2;
const BURST_MAX: usize = 4096;

/// The settings of an AXI DMAC, which its registers do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmacConfig {
    /// `MAX_BYTES_PER_BURST`, for versions before 4.5, which do not report it.
    pub burst_bytes: usize,
    /// `FIFO_SIZE`, in bursts: 2, 4, 8, 16 or 32. If a job has more than four rows, they must be so
    /// long that the core cannot have four of them under way: in bursts, longer than two thirds of
    /// this and a third of a burst. Shorter rows lose their ends (`dmac_2d_transfer.v`), so the
    /// core reports the job's end while it still writes.
    pub fifo_bursts: u32,
    /// The core queues jobs of one burst correctly. No release does, up to 4.5 at least:
    /// `address_generator.v` gives them other jobs' lengths. Set it for a core that takes a burst's
    /// length only with its address.
    pub single_bursts: bool,
    /// The longest packet of the stream, in bytes; 0 if unknown. If set, each buffer must hold it,
    /// and a receiver with `single_bursts` queues several buffers at once if each is three bursts
    /// longer than such a packet. A packet that ends in one of the last three bursts may hang the
    /// next buffer, so a shorter buffer has the core to itself.
    pub packet_bytes: u32,
    /// The limit of a stop, in microseconds.
    pub stop_us: u32,
}

impl Default for DmacConfig {
    /// Bursts of 128 bytes, the core's default; the largest FIFO, which is safe for all; only what
    /// the core was seen to do; and 10 ms.
    fn default() -> Self {
        Self {
            burst_bytes: 128,
            fifo_bursts: 32,
            single_bursts: false,
            packet_bytes: 0,
            stop_us: 10_000,
        }
    }
}

impl DmacConfig {
    /// # Errors
    /// [`Error::Setting`]: a FIFO or a burst that no core has.
    pub(super) const fn check(&self) -> Result<()> {
        let Self { fifo_bursts, burst_bytes, .. } = *self;
        if !fifo_bursts.is_power_of_two() || fifo_bursts < FIFO_MIN || fifo_bursts > FIFO_MAX {
            let fix = "FIFO_SIZE is a power of two from 2 to 32: say what the core is built with";
            return Err(Error::Setting { name: "fifo_bursts", value: fifo_bursts as u64, fix });
        }
        if !burst_bytes.is_power_of_two() || burst_bytes < BURST_MIN || burst_bytes > BURST_MAX {
            let fix = "MAX_BYTES_PER_BURST is a power of two from 2 to 4096: say what the core is \
                built with";
            return Err(Error::Setting { name: "burst_bytes", value: burst_bytes as u64, fix });
        }
        Ok(())
    }

    /// The names that [`from_settings`](Self::from_settings) knows.
    pub(crate) const SETTINGS: &'static [&'static str] = &[
        "burst_bytes",
        "fifo_bursts",
        "single_bursts",
        "packet_bytes",
        "stop_us",
        Descriptors::SETTING,
    ];

    /// The configuration in `settings`, with defaults.
    ///
    /// # Errors
    /// As [`Settings::number`]; [`Error::Setting`] for a FIFO or a burst that no core has.
    #[allow(clippy::cast_possible_truncation, reason = "each number has its limit")]
    pub fn from_settings(settings: &Settings<'_>) -> Result<Self> {
        let default = Self::default();
        let burst_bytes = settings
            .number("burst_bytes", BURST_MIN as u64, BURST_MAX as u64)?
            .map_or(default.burst_bytes, |bytes| bytes as usize);
        let fifo_bursts = settings.value("fifo_bursts", FIFO_MIN, FIFO_MAX, default.fifo_bursts)?;
        let single_bursts = settings.flag("single_bursts", default.single_bursts)?;
        let packet_bytes = settings.value("packet_bytes", 0, u32::MAX, default.packet_bytes)?;
        let stop_us =
            settings.number("stop_us", 1, 1_000_000)?.map_or(default.stop_us, |us| us as u32);
        let config = Self { burst_bytes, fifo_bursts, single_bursts, packet_bytes, stop_us };
        config.check().map(|()| config)
    }
}

/// The work of a core, by the types of its two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmacKind {
    /// From memory to memory.
    Copy,
    /// From memory to a stream, a packet a job.
    Send,
    /// From a stream to memory, a packet a job.
    Receive,
}

/// A core's parameters, and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DmacFound {
    /// The VERSION register.
    pub version: u32,
    /// Its work, by the types of its sides.
    pub kind: DmacKind,
    /// The words of source and destination, in bytes.
    pub words: [usize; 2],
    /// The longest transfer, or row.
    pub max_bytes: u64,
    /// Lengths are multiples of this.
    pub length_align: usize,
    /// Bytes of a burst, by the core or the setting.
    pub burst_bytes: usize,
    /// Addresses in memory are multiples of this: a burst, which must not cross 4 KiB.
    pub address_align: usize,
    /// 2D transfers are built in.
    pub rows: bool,
    /// Descriptors are built in.
    pub lists: bool,
    /// The address bits that it drives.
    pub address_bits: u32,
    /// The source marks where packets end.
    pub reports: bool,
}

/// The content of `register` after `value` was written.
///
/// # Safety
/// Writing it starts nothing.
unsafe fn holds(device: &impl Device, register: Register<ReadWrite>, value: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { register.write(device, value) };
    register.read(device)
}

/// The address bits that its registers hold: Vivado builds as many as the segments behind its
/// masters need, which can be fewer than 32. The core drops the others.
///
/// # Safety
/// The core is not enabled.
unsafe fn address_bits(device: &impl Device, kind: DmacKind) -> u32 {
    let (low, high) = match kind {
        DmacKind::Send => (regs::SRC_ADDR, regs::SRC_ADDR_HIGH),
        DmacKind::Copy | DmacKind::Receive => (regs::DEST_ADDR, regs::DEST_ADDR_HIGH),
    };
    // SAFETY: the registers are read when a transfer is submitted.
    let (low, high) = unsafe { (holds(device, low, u32::MAX), holds(device, high, u32::MAX)) };
    64 - (u64::from(high) << 32 | u64::from(low)).leading_zeros()
}

/// Checks that it is an AXI DMAC, of a version that this driver knows.
pub(super) fn identify(device: &impl Device) -> Result<()> {
    let wrong = |register, expected, found| {
        Err(Error::WrongDevice { device: "axi_dmac", register, expected, found })
    };
    has_window(device, "axi_dmac", regs::WINDOW_BYTES)?;
    let identification = regs::IDENTIFICATION.read(device);
    if identification != regs::DMAC {
        return wrong("IDENTIFICATION", regs::DMAC, identification);
    }
    let version = regs::VERSION.read(device);
    if version & regs::VERSION_BITS < regs::VERSION_MIN || version >> 16 != regs::VERSION_MIN >> 16
    {
        let fix = "build it from an HDL release whose axi_dmac has version 4.3 or a later 4.x: \
            older ones do not tell their types";
        return Err(Error::Setting { name: "axi_dmac's VERSION", value: version.into(), fix });
    }
    Ok(())
}

/// Whether the debug word has a state. It reads 0 in a core built without it.
pub(super) fn tells_stops(device: &impl Device) -> Result<()> {
    let state = regs::STATE.read(device);
    reads_zero("axi_dmac", "the debug word at 0x43C", state, regs::STATE_RESERVED)?;
    if state == 0 {
        let fix = "build it with DISABLE_DEBUG_REGISTERS = 0, which is the default";
        return Err(Error::Unsupported {
            what: "without its debug registers no driver sees that this AXI DMAC has stopped",
            fix,
        });
    }
    Ok(())
}

/// The parameters of the stopped core behind `device`. `burst_bytes` is for versions that do not
/// report it.
pub(super) fn look(device: &impl Device, burst_bytes: usize) -> Result<DmacFound> {
    let version = regs::VERSION.read(device);
    let interface = regs::INTERFACE.read(device);
    let (Some((source, source_word)), Some((destination, destination_word))) =
        (regs::source(interface), regs::destination(interface))
    else {
        return Err(Error::Unexpected { name: "INTERFACE_DESCRIPTION_1", value: interface.into() });
    };
    let kind = match (source, destination) {
        (Side::Memory, Side::Memory) => DmacKind::Copy,
        (Side::Memory, _) => DmacKind::Send,
        (_, Side::Memory) => DmacKind::Receive,
        _ => {
            return Err(Error::Unsupported {
                what: "this AXI DMAC goes from a stream to a stream, and reaches no memory",
                fix: "open another one",
            });
        }
    };
    let coherent = version & regs::VERSION_BITS >= regs::VERSION_COHERENCY
        && regs::COHERENCY.read(device) & regs::COHERENT != 0;
    if device.port().coherent && !coherent {
        let fix = "say that its port does not snoop, or build it with CACHE_COHERENT = 1";
        return Err(Error::Setting { name: "CACHE_COHERENT", value: 0, fix });
    }
    // SAFETY: a core that is not enabled starts nothing, and these registers are read when a
    // transfer is submitted.
    let (longest, align_mask, y_length, lists, address_bits) = unsafe {
        let longest = holds(device, regs::X_LENGTH, u32::MAX);
        let align_mask = holds(device, regs::X_LENGTH, 0);
        let y_length = holds(device, regs::Y_LENGTH, 1);
        let lists = holds(device, regs::SG_ADDR, u32::MAX);
        (longest, align_mask, y_length, lists, address_bits(device, kind))
    };
    if address_bits == 0 {
        return Err(Error::Unexpected { name: "an address register that holds nothing", value: 0 });
    }
    let told_align = u64::from(align_mask) + 1;
    if !told_align.is_power_of_two() || longest < align_mask {
        return Err(Error::Unexpected { name: "X_LENGTH", value: longest.into() });
    }
    let told = regs::burst(interface);
    let burst_bytes = if told > 1 { told } else { burst_bytes };
    let words = [source_word, destination_word];
    if burst_bytes < 2 * source_word.max(destination_word) {
        // `axi_dmac_burst_memory.v` counts beats of the wider word, with one bit at least.
        let fix = "a burst has two words of the wider side at least: build the core so, or before \
            4.5 say it by burst_bytes";
        return Err(Error::Setting { name: "MAX_BYTES_PER_BURST", value: burst_bytes as u64, fix });
    }
    // The register takes less, but the write's WLAST then comes before its AWLEN says.
    let source_align =
        if kind == DmacKind::Copy && source_word > destination_word { source_word } else { 1 };
    Ok(DmacFound {
        version,
        kind,
        words,
        max_bytes: u64::from(longest) + 1,
        length_align: usize::try_from(told_align).unwrap_or(1).max(source_align),
        burst_bytes,
        address_align: words.into_iter().fold(burst_bytes, usize::max),
        rows: y_length == 1,
        lists: version & regs::VERSION_BITS >= regs::VERSION_SG && lists != 0,
        address_bits,
        reports: source == Side::Stream,
    })
}

impl DmacFound {
    /// The operands of a job, of which only a copy has a second; `most` is the longest.
    pub(super) fn operands(&self, most: u64) -> [OperandSpec; 2] {
        let align = Align::new(self.address_align).unwrap_or(Align::PAGE);
        let max_bytes = usize::try_from(most).unwrap_or(usize::MAX);
        let from =
            OperandSpec { word_bytes: self.words[0], ..OperandSpec::to_device().aligned(align) };
        let to = OperandSpec::from_device().aligned(align);
        match self.kind {
            DmacKind::Receive => [OperandSpec { max_bytes, ..to }, to],
            DmacKind::Copy | DmacKind::Send => [OperandSpec { max_bytes, ..from }, to],
        }
    }
}
