//! The other end of QEMU's `vfio-user-pci`.

use super::config::CONFIG_BYTES;
use super::description::{Description, Vectors};
use super::error::{PATH_MAX_BYTES, PciError};
use super::function::Function;
use super::guest::Counts;
use contigo::sim::Model;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{io, thread};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_INFO_NORESIZE, VFIO_PCI_BAR0_REGION_INDEX,
    VFIO_PCI_BAR2_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_NUM_IRQS,
    VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE,
    vfio_region_info,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion};

/// A page: less cannot be mapped into a program of the guest's.
const BAR_MIN_BYTES: usize = 4096;
/// The largest BAR of 32 bits that leaves room for others.
const BAR_MAX_BYTES: usize = 1 << 30;
/// BAR 2, of which QEMU keeps the content: the table of MSI-X.
const TABLE_BYTES: u64 = 4096;
/// `DmaUnmapFlags`: all of it. `vfio_user` 0.1.7 calls another bit so.
const UNMAP_ALL: u32 = 1 << 1;

/// Ends the program, and with it QEMU.
pub type Fatal = fn(&PciError) -> !;

/// A function that was served.
#[derive(Debug)]
pub struct Served<M> {
    /// Its counts.
    pub counts: Counts,
    /// The model as it was left.
    pub model: M,
}

/// QEMU's requests.
struct Requests<'f, M>(&'f Function<M>);

/// Serves `model` on the socket `path`, to one client, until that has gone. The socket is there
/// when a client can connect. An error that cannot be answered is handed to `fatal`.
///
/// # Errors
/// [`PciError`], where it cannot begin, or the connection breaks.
pub fn serve<M: Model>(
    model: M,
    about: &Description,
    path: &Path,
    fatal: Fatal,
) -> Result<Served<M>, PciError> {
    let len = path.as_os_str().as_bytes().len();
    if len > PATH_MAX_BYTES {
        return Err(PciError::PathTooLong { path: path.into(), len });
    }
    if path.exists() {
        return Err(PciError::PathExists { path: path.into() });
    }
    let bytes = model.window_bytes();
    if bytes == 0 || bytes > BAR_MAX_BYTES {
        return Err(PciError::Window { bytes });
    }
    let bar_bytes = bytes.next_power_of_two().max(BAR_MIN_BYTES) as u64;
    let broke = |error: vfio_user::Error| PciError::Connection { said: error.to_string() };
    let server =
        Server::new(path, true, interrupts(about), regions(about, bar_bytes)).map_err(broke)?;
    let function = Function::new(model, about, fatal);
    let counts = thread::scope(|scope| {
        scope.spawn(|| function.or_fatal(|| function.live()));
        let ended = function.or_fatal(|| server.run(&mut Requests(&function))).map_err(broke);
        let counts = function.end();
        ended.map(|()| counts)
    })?;
    Ok(Served { counts, model: function.into_model() })
}

fn regions(about: &Description, bar_bytes: u64) -> Vec<ServerRegion> {
    let size = |index| match index {
        VFIO_PCI_BAR0_REGION_INDEX => bar_bytes,
        VFIO_PCI_BAR2_REGION_INDEX if about.vectors == Vectors::MsiX => TABLE_BYTES,
        VFIO_PCI_CONFIG_REGION_INDEX => CONFIG_BYTES as u64,
        _ => 0,
    };
    let region = |index| {
        let size = size(index);
        let flags =
            if size == 0 { 0 } else { VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE };
        let region_info = vfio_region_info { argsz: 32, index, flags, size, ..Default::default() };
        ServerRegion { region_info, sparse_areas: Vec::new(), mmap_fd: None }
    };
    (0..VFIO_PCI_NUM_REGIONS).map(region).collect()
}

fn interrupts(about: &Description) -> Vec<IrqInfo> {
    let ours = about.vectors.index();
    let of = |index| match index == ours {
        true => IrqInfo { index, flags: VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE, count: 1 },
        false => IrqInfo { index, flags: 0, count: 0 },
    };
    (0..VFIO_PCI_NUM_IRQS).map(of).collect()
}

impl<M: Model> ServerBackend for Requests<'_, M> {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        match region {
            VFIO_PCI_CONFIG_REGION_INDEX => self.0.with(|state| state.config.read(at, data)),
            VFIO_PCI_BAR0_REGION_INDEX => self.0.with(|state| state.read(at, data)),
            _ => data.fill(0),
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        match region {
            VFIO_PCI_CONFIG_REGION_INDEX => self.0.with(|state| state.configure(at, data)),
            VFIO_PCI_BAR0_REGION_INDEX => self.0.with(|state| state.write(at, data)),
            _ => {}
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        file: Option<File>,
    ) -> io::Result<()> {
        self.0.with(|state| state.guest.map(flags, offset, address, size, file));
        Ok(())
    }

    /// When it returns, no access to that memory is under way, and none begins.
    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        self.0.with(|state| match flags.bits() & UNMAP_ALL {
            0 => state.guest.unmap(address, size),
            _ => state.guest.unmap_all(),
        });
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.0.with(|state| state.reset());
        Ok(())
    }

    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        start: u32,
        count: u32,
        files: Vec<File>,
    ) -> io::Result<()> {
        self.0.with(|state| state.msi.set(index, flags, start, count, files));
        Ok(())
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    unsafe_code,
    reason = "a test that panics has failed, and a model that does nothing keeps every promise"
)]
mod tests {
    use super::*;
    use crate::pci::row;
    use contigo::sim::SimBus;

    /// A model with a window of so many bytes.
    struct Window(usize);

    // SAFETY: it touches no memory.
    unsafe impl Model for Window {
        const WINDOW_BYTES: usize = usize::MAX;

        fn window_bytes(&self) -> usize {
            self.0
        }

        fn advance(&mut self, _bus: &mut SimBus<'_>) {}

        fn read32(&mut self, _offset: usize, _bus: &mut SimBus<'_>) -> u32 {
            0
        }

        fn write32(&mut self, _offset: usize, _value: u32, _bus: &mut SimBus<'_>) {}

        fn irq_at_ns(&self) -> Option<u64> {
            None
        }

        fn reset(&mut self) {}
    }

    #[test]
    fn a_window_that_is_no_bar_is_refused() {
        let about = row("litepcie").unwrap().description;
        let served = |bytes| {
            serve(Window(bytes), &about, Path::new("/no-such-folder/socket"), |error| {
                panic!("{error}")
            })
            .map(drop)
        };
        for wrong in [0, BAR_MAX_BYTES + 1] {
            assert!(
                matches!(served(wrong), Err(PciError::Window { bytes }) if bytes == wrong),
                "{wrong}"
            );
        }
        // The largest is none of that: there is only no such folder.
        assert!(matches!(served(BAR_MAX_BYTES), Err(PciError::Connection { .. })));
    }
}
