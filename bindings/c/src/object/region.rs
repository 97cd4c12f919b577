#![allow(
    unsafe_code,
    reason = "what memory is translated or fenced, and who imports it, is the C program's promise"
)]
//! Regions: blocks of DMA memory, and the objects that they belong to.

use super::{SIMS, cuda, device::UsedDevice};
use crate::{
    fault::{ArgumentError, Fault},
    limits,
};
use contigo::{
    Align, Error, Limits,
    linux::memory::UDmaBuf,
    mem::Requirements,
    names::{AnyMemory, MemoryName},
    sim::SimBoard,
};
use contigo_objects::{Kind, Lease, Table};
use core::ffi::c_int;
use std::os::fd::IntoRawFd;

/// Regions.
pub(crate) static REGIONS: Table<Region, { Kind::Region as u8 }, { limits::REGIONS }> =
    Table::new();

/// All that the other tables have of one region: buffers, of which a pool has one at least, and the
/// engines' own memory.
const LIMITS: Limits = Limits { allocations: limits::BUFS + limits::ENGINES };

/// One region, and what it belongs to. The fields are dropped in this order.
pub(crate) struct Region {
    memory: contigo::Region,
    _parent: Parent,
}

/// The object that memory belongs to. The memory has a handle of its own; an object with regions is
/// not closed all the same.
#[allow(dead_code, reason = "each counts as a use of the object")]
enum Parent {
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
        let mut claimed = REGIONS.claim()?;
        // SAFETY: the caller's promise.
        let (memory, parent) = unsafe { options.open(needs.align)? };
        let memory = contigo::Region::with(memory, needs, LIMITS)?;
        claimed.locked.put(Self { memory, _parent: parent });
        Ok(claimed.raw())
    }

    pub(crate) const fn memory(&self) -> &contigo::Region {
        &self.memory
    }

    /// A descriptor of a dma-buf that holds the whole block. It is the caller's, who closes it.
    ///
    /// # Safety
    /// As `Region::export`.
    pub(crate) unsafe fn export(&self) -> Result<c_int, Fault> {
        // SAFETY: the caller's promise.
        Ok(unsafe { self.memory.export()? }.into_raw_fd())
    }

    /// Gives the memory back. Refused while anything of it is out.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        REGIONS.lock(raw)?.clear();
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::*;
    use contigo_testkit::fake_u_dma_buf::{Config, FakeUDmaBuf};
    use std::{fs, os::unix::fs::FileExt};

    /// A region on a u-dma-buf that is a file.
    fn region(fake: &FakeUDmaBuf) -> contigo_region {
        let memory = contigo::Region::new(fake.open().unwrap()).unwrap();
        REGIONS.insert(Region { memory, _parent: Parent::None }).unwrap()
    }

    fn export(region: contigo_region) -> (contigo_status, c_int) {
        let mut fd = 7;
        // SAFETY: the pointer is a reference; no code imports the block.
        (unsafe { contigo_region_export(region, &raw mut fd) }, fd)
    }

    #[test]
    fn an_exported_region_is_the_same_memory_and_the_programs_file() {
        let fake = FakeUDmaBuf::new(Config::default());
        let region = region(&fake);
        let (status, fd) = export(region);
        assert_eq!((status, fd > 2), (CONTIGO_OK, true), "{fd}");
        let flags = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
        let flags =
            flags.lines().find_map(|line| line.strip_prefix("flags:").map(str::trim)).unwrap();
        assert_ne!(
            u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000,
            0,
            "O_CLOEXEC: no program that is started gets it"
        );

        let mut buf = 0;
        let word = [0x3C_u8; 64];
        // SAFETY: the pointers are references, and so many bytes are there.
        let wrote = unsafe {
            [
                contigo_carve(region, 64, 0, &raw mut buf),
                contigo_buf_write(buf, word.as_ptr().cast(), 64),
            ]
        };
        assert_eq!((wrote, contigo_buf_release(buf)), ([CONTIGO_OK; 2], CONTIGO_OK));
        assert_eq!(contigo_region_close(region), CONTIGO_OK);
        // SAFETY: it was given to this test, which closes it by dropping the file.
        let file = unsafe { <fs::File as std::os::fd::FromRawFd>::from_raw_fd(fd) };
        let mut bytes = [0; 64];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, word, "the pages live as long as the descriptor");
        assert_eq!(export(region), (CONTIGO_E_STALE, -1));
    }

    #[test]
    fn what_the_kernel_does_not_give_back_stays_a_devices() {
        // Two syncs when the region is made, and one for the device; then the device is gone.
        let fake = FakeUDmaBuf::new(Config { vanish_after: 3, ..Config::default() });
        let (region, mut port, mut buf) = (region(&fake), 0, 0);
        // SAFETY: the pointers are references, and the name is a text.
        let made = unsafe {
            [
                contigo_carve(region, 64, 0, &raw mut buf),
                contigo_port_find(c"zynq-hp0".as_ptr(), &raw mut port),
            ]
        };
        assert_eq!(made, [CONTIGO_OK; 2]);
        let mut addr = 0;
        // SAFETY: as above; no device receives the address.
        let given = unsafe { contigo_buf_give(buf, port, 0, 64, CONTIGO_WRITES, &raw mut addr) };
        assert_eq!((given, contigo_buf_take_back(buf)), (CONTIGO_OK, CONTIGO_E_OS));
        let mut info =
            contigo_buf_info { struct_size: size_of::<contigo_buf_info>(), ..Default::default() };
        // SAFETY: the pointer is a reference.
        let told = unsafe { contigo_buf_get_info(buf, &raw mut info) };
        assert_eq!((told, info.addr, info.len_bytes, info.device_owned), (CONTIGO_OK, addr, 64, 1));
        assert_eq!(
            (contigo_port_close(port), contigo_region_close(region)),
            (CONTIGO_OK, CONTIGO_E_STILL_USED)
        );
    }

    #[test]
    fn what_the_kernel_says_is_passed_on() {
        let fake =
            FakeUDmaBuf::new(Config { ioctls: false, class: "udmabuf", ..Config::default() });
        let region = region(&fake);
        assert_eq!(export(region), (CONTIGO_E_OS, -1));
        let text = crate::last_error::with_text(|text| String::from_utf8_lossy(text).into_owned());
        assert!(text.is_some_and(
            |text| text.contains("U_DMA_BUF_IOCTL_EXPORT") && text.contains("errno 25")
        ));
        assert_eq!(contigo_region_close(region), CONTIGO_OK);
    }
}
