//! The fake's IOMMU: which addresses of the device are which bytes of this process.
#![allow(unsafe_code, reason = "a bus master reads and writes by address")]

use crate::mapped::is_mapped;

/// The IOMMU refused an access: nothing is mapped at this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The address.
    pub iova: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    iova: u64,
    vaddr: u64,
    size: u64,
}

/// What is mapped.
#[derive(Debug, Default)]
pub(super) struct Iommu {
    mappings: Vec<Mapping>,
    freed_too_early: bool,
}

impl Iommu {
    pub(super) const fn len(&self) -> usize {
        self.mappings.len()
    }

    pub(super) const fn freed_too_early(&self) -> bool {
        self.freed_too_early
    }

    pub(super) fn bytes(&self) -> u64 {
        self.mappings.iter().map(|mapping| mapping.size).sum()
    }

    pub(super) fn map(&mut self, vaddr: u64, iova: u64, size: u64) -> Result<(), i32> {
        if size == 0 || !(vaddr | iova | size).is_multiple_of(4096) {
            return Err(libc::EINVAL);
        }
        if !is_in_process(vaddr, size) {
            return Err(libc::EFAULT);
        }
        if self
            .mappings
            .iter()
            .any(|other| other.iova < iova + size && iova < other.iova + other.size)
        {
            return Err(libc::EEXIST);
        }
        self.mappings.push(Mapping { iova, vaddr, size });
        Ok(())
    }

    /// The mappings that lie in the range; they must not be cut. How many bytes were unmapped.
    pub(super) fn unmap(&mut self, iova: u64, size: u64) -> Result<u64, i32> {
        let end = iova + size;
        let inside = |mapping: &Mapping| iova <= mapping.iova && mapping.iova + mapping.size <= end;
        let outside =
            |mapping: &Mapping| mapping.iova + mapping.size <= iova || end <= mapping.iova;
        if self.mappings.iter().any(|mapping| !inside(mapping) && !outside(mapping)) {
            return Err(libc::EINVAL);
        }
        let before = self.bytes();
        self.freed_too_early |= self
            .mappings
            .iter()
            .any(|mapping| inside(mapping) && !is_in_process(mapping.vaddr, mapping.size));
        self.mappings.retain(|mapping| !inside(mapping));
        Ok(before - self.bytes())
    }

    pub(super) fn clear(&mut self) {
        self.mappings.clear();
    }

    pub(super) fn read(&self, iova: u64, bytes: &mut [u8]) -> Result<(), Refused> {
        let from = self.translate(iova, bytes.len())? as *const u8;
        for (index, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: the byte is pinned memory of this process (`translate`), and no view of it is
            // alive while the device owns it. Volatile, because the program is not the one that
            // accesses it.
            *byte = unsafe { from.add(index).read_volatile() };
        }
        Ok(())
    }

    pub(super) fn write(&self, iova: u64, bytes: &[u8]) -> Result<(), Refused> {
        let to = self.translate(iova, bytes.len())? as *mut u8;
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: as in `read`.
            unsafe { to.add(index).write_volatile(*byte) };
        }
        Ok(())
    }

    /// Where these bytes are in the process. All of them must lie in one mapping: nothing here maps
    /// two side by side as one.
    fn translate(&self, iova: u64, len: usize) -> Result<usize, Refused> {
        let found = self.mappings.iter().find(|mapping| {
            mapping.iova <= iova && iova + len as u64 <= mapping.iova + mapping.size
        });
        let mapping = found.ok_or(Refused { iova })?;
        usize::try_from(mapping.vaddr + (iova - mapping.iova)).map_err(|_| Refused { iova })
    }
}

/// Is all of it mapped in this process?
fn is_in_process(vaddr: u64, size: u64) -> bool {
    let (Ok(start), Ok(len_bytes)) = (usize::try_from(vaddr), usize::try_from(size)) else {
        return false;
    };
    is_mapped(start, len_bytes)
}
