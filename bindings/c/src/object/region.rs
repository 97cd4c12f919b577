#![allow(
    unsafe_code,
    reason = "what memory is translated or fenced, and who imports it, is the C program's promise"
)]
//! Regions: blocks of DMA memory, and the objects that they belong to.

use super::device::{DEVICES, Opened};
use super::{SIMS, cuda, gpu};
use crate::fault::{ArgumentError, Fault};
use crate::handles::{
    CONTIGO_MAX_BUFS, CONTIGO_MAX_ENGINES, CONTIGO_MAX_REGIONS, contigo_device, contigo_sim,
};
use contigo::linux::memory::UDmaBuf;
use contigo::mem::Requirements;
use contigo::names::{AnyMemory, MemoryName};
use contigo::sim::SimBoard;
use contigo::{Align, Error, Limits};
use contigo_objects::{Kind, Lease, Table, Versioned};
use core::mem;

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
    Device(Lease<Opened>),
}

/// The properties of memory that its name does not say. A field of 0 stands for its default.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_region_options {
    /// `sizeof(contigo_region_options)`.
    pub struct_size: usize,
    /// The size in bytes, where the memory is made here; otherwise how large it must be at least.
    pub len_bytes: usize,
    /// The bus address is a multiple of so many bytes, a power of two; 0: 64.
    pub align_bytes: usize,
    /// Each byte must be reachable with so many address bits; 0: 64.
    pub addr_bits: u32,
    /// For `cuda`: 1, write-combined, for bytes that the CPU only writes, front to back. A card
    /// reads it faster; the CPU reads it very slowly.
    pub write_combined: u32,
    /// For `u-dma-buf:NAME`: 1, its node is behind `dma-ranges` or an IOMMU, so that its address is
    /// the accelerator's own.
    pub translated: u32,
    /// The opened device that the memory is for; 0: a device that it belongs to is opened with it.
    pub device: contigo_device,
    /// For `sim`: the simulated board; 0: a board of its own.
    pub sim: contigo_sim,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_region_options {
    const NAME: &'static str = "contigo_region_options";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Which memory: its name, and what the name does not say.
pub(crate) struct RegionOptions {
    pub(crate) name: MemoryName,
    pub(crate) given: contigo_region_options,
    pub(crate) translated: bool,
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
        let contigo_region_options { device, sim, translated, write_combined, .. } = self.given;
        let (kind, alone) = (self.name.kind(), device == 0);
        let rules = [
            (SIM, sim, alone && kind == "sim"),
            (TRANSLATED, translated.into(), alone && kind == "u-dma-buf"),
            (WRITE_COMBINED, write_combined.into(), alone && kind == "cuda"),
        ];
        match rules.into_iter().find(|(_, given, fits)| *given != 0 && !fits) {
            Some((what, value, _)) => Err(ArgumentError::Value { what, value }),
            None => Ok(()),
        }
    }

    /// The memory, and what it belongs to.
    ///
    /// # Safety
    /// As `Region::open`.
    unsafe fn open(&self, align: Align) -> Result<(AnyMemory, Parent), Fault> {
        let refused = |error| Fault::Memory { name: self.name, error };
        let (name, len_bytes) = (self.name.argument(), self.given.len_bytes);
        match self.given {
            contigo_region_options { device: device @ 1.., .. } => {
                let device = DEVICES.lease(device)?;
                let memory = device.memory(&self.name, len_bytes).map_err(refused)?;
                Ok((memory, Parent::Device(device)))
            }
            contigo_region_options { sim: sim @ 1.., .. } => {
                let board = SIMS.lease(sim)?;
                if !name.is_empty() && name.parse() != Ok(board.seed()) {
                    return Err(refused(Error::NeedsDevice { kind: "sim" }));
                }
                let memory = board.memory(len_bytes)?;
                Ok((AnyMemory::new(memory)?, Parent::Sim(board)))
            }
            // SAFETY: the caller's promise.
            _ if self.translated => Ok((
                AnyMemory::new(unsafe { UDmaBuf::open_translated(name) }.map_err(refused)?)?,
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
            _ => {
                let memory = match self.name.device() {
                    // The memory keeps it open.
                    Some(name) => {
                        gpu::bring()?;
                        let device = name.open().map_err(|error| Fault::Device { name, error })?;
                        device.memory(&self.name, len_bytes)
                    }
                    None => self.name.open(len_bytes),
                };
                Ok((memory.map_err(refused)?, Parent::None))
            }
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
