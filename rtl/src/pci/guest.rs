#![allow(
    unsafe_code,
    reason = "the guest's memory is copied through raw pointers: it is no memory of this program's"
)]
//! The guest's memory as the function reaches it: by the maps that QEMU keeps for it.

use super::PciError;
use super::description::{Fault, Faults};
use contigo::DevAddr;
use contigo::sim::{BusError, SimMemory};
use memmap2::MmapRaw;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{Ordering, fence};
use std::{io, ptr};
use vfio_user::DmaMapFlags;

/// Pieces that are mapped at once, at most: 1 GiB in pages of 4 KiB, which is how an IOMMU hands
/// memory over.
pub(super) const MAPS_MAX: usize = 1 << 18;
/// Files that the guest's memory is in, at most: QEMU makes one of each memory backend.
const FILES_MAX: usize = 8;

/// The work that a function did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Register accesses of the guest.
    pub registers: u64,
    /// Bytes that the function read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// Accesses that reached no memory.
    pub refused: u64,
    /// Pieces of memory that were mapped, and those that were taken away.
    pub maps: u64,
    /// The second of them.
    pub unmaps: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Resets.
    pub resets: u64,
}

/// One file of the guest's memory, mapped once: an IOMMU's maps are too many for one `mmap` each.
#[derive(Debug)]
struct Ram {
    /// Device and inode.
    id: (u64, u64),
    mapping: MmapRaw,
}

/// A piece of memory that the function may reach.
#[derive(Clone, Copy, Debug)]
struct Map {
    /// Not 0.
    len: u64,
    flags: DmaMapFlags,
    /// Which file, and where in it. `None`: QEMU did not share it. A neighbour's registers are such
    /// a piece.
    place: Option<(usize, usize)>,
}

/// The guest's memory.
#[derive(Debug, Default)]
pub(super) struct Guest {
    files: Vec<Ram>,
    /// By their first address. None overlaps another.
    maps: BTreeMap<u64, Map>,
    faults: Faults,
    /// The function may access memory.
    pub(super) is_bus_master: bool,
    pub(super) now_ns: u64,
    pub(super) counts: Counts,
    /// A state that must not go on.
    pub(super) wrong: Option<PciError>,
}

impl Guest {
    pub(super) fn with(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
    }

    /// Lets the function reach `len` bytes at `addr`. No bytes are no piece: one would hide an
    /// older piece from `unmap`.
    pub(super) fn map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        addr: u64,
        len: u64,
        file: Option<File>,
    ) {
        if len == 0 {
            return;
        }
        self.forget(addr, len);
        self.counts.maps += 1;
        if self.maps.len() == MAPS_MAX {
            self.wrong = Some(PciError::TooManyMaps { most: MAPS_MAX });
            return;
        }
        let place = match file.map(|file| self.place(&file, offset, len)).transpose() {
            Ok(place) => place,
            Err(error) => {
                self.wrong = Some(PciError::Mapping { error });
                return;
            }
        };
        self.maps.insert(addr, Map { len, flags, place });
    }

    /// Where `len` bytes at `offset` of `file` are.
    fn place(&mut self, file: &File, offset: u64, len: u64) -> io::Result<(usize, usize)> {
        let about = file.metadata()?;
        let id = (about.dev(), about.ino());
        let index = match self.files.iter().position(|ram| ram.id == id) {
            Some(index) => index,
            None if self.files.len() == FILES_MAX => {
                return Err(io::Error::other("it is in more than 8 files"));
            }
            None => {
                self.files.push(Ram { id, mapping: MmapRaw::map_raw(file)? });
                self.files.len() - 1
            }
        };
        let have = self.files.get(index).map_or(0, |ram| ram.mapping.len());
        let past =
            || io::Error::other(format!("{len:#x} bytes at {offset:#x} of a file of {have:#x}"));
        let end = offset
            .checked_add(len)
            .and_then(|end| usize::try_from(end).ok())
            .filter(|end| *end <= have);
        let start = usize::try_from(offset).ok().filter(|_| end.is_some());
        start.map(|start| (index, start)).ok_or_else(past)
    }

    /// Takes away every piece that has a byte of these. A piece that is only touched goes whole: a
    /// fault is better than a byte too many.
    pub(super) fn unmap(&mut self, addr: u64, len: u64) {
        if !self.faults.has(Fault::Unmap) {
            self.forget(addr, len);
        }
    }

    fn forget(&mut self, addr: u64, len: u64) {
        let Some(more) = len.checked_sub(1) else { return };
        let last = addr.saturating_add(more);
        let touches =
            |(&at, map): (&u64, &Map)| (at.saturating_add(map.len - 1) >= addr).then_some(at);
        while let Some(at) = self.maps.range(..=last).next_back().and_then(touches) {
            self.maps.remove(&at);
            self.counts.unmaps += 1;
        }
    }

    pub(super) fn unmap_all(&mut self) {
        if self.faults.has(Fault::Unmap) {
            return;
        }
        self.counts.unmaps += self.maps.len() as u64;
        self.maps.clear();
    }

    /// The memory at `addr`, and how much of it is in one run.
    fn run(&mut self, addr: u64, needs: DmaMapFlags) -> Result<(*mut u8, usize), BusError> {
        let refused = BusError { addr: DevAddr(addr) };
        let found = self.maps.range(..=addr).next_back().filter(|_| self.is_bus_master);
        let (&at, map) = found
            .filter(|(at, map)| addr - **at < map.len && map.flags.contains(needs))
            .ok_or(refused)?;
        let Some((index, start)) = map.place else {
            self.wrong = Some(PciError::NotShared { addr: at, len: map.len });
            return Err(refused);
        };
        let into = addr - at;
        let (Ok(into), Ok(rest)) = (usize::try_from(into), usize::try_from(map.len - into)) else {
            return Err(refused);
        };
        let base = self.files.get(index).ok_or(refused)?.mapping.as_mut_ptr();
        // SAFETY: `place` looked: the piece, of which `into` is a byte, is within the mapping.
        Ok((unsafe { base.add(start + into) }, rest))
    }

    /// Hands each run of `len` bytes at `addr` to `copy`, with its place among them.
    fn runs(
        &mut self,
        addr: u64,
        len: usize,
        needs: DmaMapFlags,
        mut copy: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), BusError> {
        let mut done = 0;
        while done < len {
            let at = addr.checked_add(done as u64).ok_or(BusError { addr: DevAddr(addr) })?;
            let (memory, rest) = self.run(at, needs).inspect_err(|_| self.counts.refused += 1)?;
            let many = rest.min(len - done);
            copy(memory, done, many);
            done += many;
        }
        Ok(())
    }
}

impl SimMemory for Guest {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        let (bytes, len) = (to.as_mut_ptr(), to.len());
        // SAFETY: `runs` gives as many bytes of the guest's memory at `memory`, and `done + many`
        // is within `to`. The two do not overlap: one is this program's. The guest may write
        // meanwhile, as it may under a device; no reference to its memory is made.
        self.runs(addr.0, len, DmaMapFlags::READ, |memory, done, many| unsafe {
            ptr::copy_nonoverlapping(memory, bytes.add(done), many)
        })?;
        // As on PCI, a later read does not pass this one: the guest runs on another processor.
        fence(Ordering::Acquire);
        self.counts.read_bytes += len as u64;
        Ok(())
    }

    fn write(&mut self, addr: DevAddr, from: &[u8]) -> Result<(), BusError> {
        let mut turned = Vec::new();
        let from = match from.split_first() {
            Some((first, rest)) if self.faults.has(Fault::Bytes) => {
                turned.extend([&[first ^ 1], rest].concat());
                turned.as_slice()
            }
            _ => from,
        };
        let (bytes, len) = (from.as_ptr(), from.len());
        // As on PCI, this write passes no earlier one: data is there before its descriptor.
        fence(Ordering::Release);
        // SAFETY: as in `read`, the other way round.
        self.runs(addr.0, len, DmaMapFlags::WRITE, |memory, done, many| unsafe {
            ptr::copy_nonoverlapping(bytes.add(done), memory, many);
        })?;
        self.counts.written_bytes += len as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_more_than_the_table_holds_is_told() {
        let mut guest = Guest::default();
        let page = |index: usize| index as u64 * 0x1000;
        for index in 0..MAPS_MAX {
            guest.map(DmaMapFlags::READ, 0, page(index), 0x1000, None);
        }
        assert!(guest.wrong.is_none() && guest.maps.len() == MAPS_MAX);
        // In the place of an older one there is room.
        guest.map(DmaMapFlags::READ, 0, page(7), 0x1000, None);
        assert!(guest.wrong.is_none() && guest.counts.unmaps == 1);
        guest.map(DmaMapFlags::READ, 0, page(MAPS_MAX), 0x1000, None);
        assert!(
            matches!(guest.wrong, Some(PciError::TooManyMaps { most: MAPS_MAX })),
            "{:?}",
            guest.wrong
        );
    }

    #[test]
    fn a_map_of_no_bytes_hides_none() {
        let mut guest = Guest::default();
        guest.map(DmaMapFlags::READ_WRITE, 0, 0x2000, 0, None);
        guest.map(DmaMapFlags::READ_WRITE, 0, 0x1000, 0x2000, None);
        guest.unmap(0x1800, 0);
        assert_eq!((guest.maps.len(), guest.counts.maps), (1, 1));
        guest.unmap(0x1000, 0x2000);
        assert!(guest.maps.is_empty(), "{:?}", guest.maps);
    }
}
