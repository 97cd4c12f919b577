#![allow(
    unsafe_code,
    reason = "what memory is translated or fenced, and who imports it, is the C program's promise"
)]
//! Regions: blocks of DMA memory, and the objects that they belong to.

use super::{SIMS, cuda, device::UsedDevice};
use crate::{
    fault::{ArgumentError, Fault},
    limits::{CONTIGO_MAX_BUFS, CONTIGO_MAX_ENGINES, CONTIGO_MAX_REGIONS},
};
use contigo::{
    Align, Error, Limits,
    linux::memory::UDmaBuf,
    mem::Requirements,
    names::{AnyMemory, MemoryName},
    sim::SimBoard,
};
use contigo_objects::{Kind, Lease, Table};

/// Regions.
pub(crate) static REGIONS: Table<Region, { Kind::Region as u8 }, { CONTIGO_MAX_REGIONS as usize }> =
    Table::new();

/// All that the other tables have of one region: buffers, of which a pool has one at least, and the
/// engines' own memory.
const LIMITS: Limits = Limits { allocations: (CONTIGO_MAX_BUFS + CONTIGO_MAX_ENGINES) as usize };

/// One region, and what it belongs to. The fields are dropped in this order.
pub(crate) struct Region {
    pub(crate) memory: contigo::Region,
    /// Counts as a use of the object.
    pub(crate) _parent: Parent,
}

/// The object that memory belongs to. The memory has a handle of its own; an object with regions is
/// not closed all the same.
#[allow(dead_code, reason = "each counts as a use of the object")]
pub(crate) enum Parent {
    None,
    Sim(Lease<SimBoard>),
    Device(UsedDevice),
}

/// Which memory: its name, and what the name does not say.
pub(crate) struct RegionOptions {
    pub(crate) name: MemoryName,
    pub(crate) len_bytes: usize,
    /// The program's own device or simulated board.
    pub(crate) device: Option<u64>,
    pub(crate) sim: Option<u64>,
    /// A u-dma-buf behind a translation.
    pub(crate) translated: bool,
    /// Of pinned memory.
    pub(crate) write_combined: bool,
}

impl RegionOptions {
    /// Refuses an option that does not fit the name, or another option.
    fn fits(&self) -> Result<(), ArgumentError> {
        const SIM: &str = "contigo_region_options.sim (for sim, without device)";
        const TRANSLATED: &str =
            "contigo_region_options.translated (for u-dma-buf:NAME, without device)";
        const WRITE_COMBINED: &str =
            "contigo_region_options.write_combined (for cuda, without device)";
        let (kind, alone) = (self.name.kind(), self.device.is_none());
        let rules = [
            (SIM, self.sim, alone && kind == "sim"),
            (TRANSLATED, self.translated.then_some(1), alone && kind == "u-dma-buf"),
            (WRITE_COMBINED, self.write_combined.then_some(1), alone && kind == "cuda"),
        ];
        let wrong = rules.into_iter().find_map(|(what, given, fits)| {
            given.filter(|_| !fits).map(|value| ArgumentError::Value { what, value })
        });
        wrong.map_or(Ok(()), Err)
    }

    /// The memory, and what it belongs to.
    ///
    /// # Safety
    /// As `Region::open`.
    unsafe fn open(&self, align: Align) -> Result<(AnyMemory, Parent), Fault> {
        let refused = |error| Fault::Memory { name: self.name, error };
        let (name, len_bytes) = (self.name.argument(), self.len_bytes);
        let of = |held: UsedDevice| match held.memory(&self.name, len_bytes) {
            Ok(memory) => Ok((memory, Parent::Device(held))),
            Err(error) => Err(refused(error)),
        };
        match *self {
            Self { device: Some(device), .. } => of(UsedDevice::of(device)?),
            Self { sim: Some(sim), .. } => {
                let board = SIMS.lease(sim)?;
                if !name.is_empty() && name.parse() != Ok(board.seed()) {
                    return Err(refused(Error::NeedsDevice { kind: "sim" }));
                }
                let memory = board.memory(len_bytes)?;
                Ok((memory.into(), Parent::Sim(board)))
            }
            // SAFETY: the caller's promise.
            Self { translated: true, .. } => Ok((
                unsafe { UDmaBuf::open_translated(name) }.map_err(refused)?.into(),
                Parent::None,
            )),
            _ if self.name.kind() == "cuda" => {
                // A name of this kind has a number, or none.
                let ordinal = name.parse().unwrap_or(0);
                Ok((
                    cuda::pinned(ordinal, len_bytes, align.max(Align::PAGE), self.write_combined)?,
                    Parent::None,
                ))
            }
            _ => match self.name.device() {
                // It is opened for this region alone, and closed with it.
                Some(owner) => of(UsedDevice::open(owner)?),
                None => Ok((self.name.open(len_bytes).map_err(refused)?, Parent::None)),
            },
        }
    }
}

impl Region {
    /// Opens memory, and checks it.
    ///
    /// # Safety
    /// As `contigo_region_open_with`.
    pub(crate) unsafe fn open(options: &RegionOptions, needs: Requirements) -> Result<u64, Fault> {
        options.fits()?;
        // Before anything else: a full table opens no device.
        let claimed = REGIONS.claim()?;
        // SAFETY: the caller's promise.
        let (memory, parent) = unsafe { options.open(needs.align)? };
        let memory = contigo::Region::with(memory, needs, LIMITS)?;
        Ok(claimed.put(Self { memory, _parent: parent }))
    }

    pub(crate) const fn memory(&self) -> &contigo::Region {
        &self.memory
    }
}
