//! The file where the kernel looks for it: there whole, or not at all, and gone afterwards.

use super::FpgaError;
use crate::{
    bitstream::{ByteOrder, Image},
    machine::Machine,
};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// The folder that the kernel looks into first where somebody named one.
const NAMED: &str = "sys/module/firmware_class/parameters/path";
/// The folder that it looks into anyway.
const USUAL: &str = "lib/firmware";
/// The file. It is always the same, because dfx-mgr unloads by it; a lock keeps two loads apart.
pub(super) const NAME: &str = "contigo-fpga.bin";

/// A configuration in the kernel's folder. Dropping it takes it away.
pub(super) struct Firmware {
    path: PathBuf,
    /// On the folder, as long as the load: AMD's manager takes no lock of its own.
    _one: Flock<fs::File>,
    /// Its name below the folder, as the kernel is told it.
    pub(super) name: &'static str,
}

impl Firmware {
    /// Writes the configuration under a name of its own, and gives it its last name when it is
    /// whole and on the disk.
    pub(super) fn place(machine: &Machine, image: &Image, order: ByteOrder) -> Result<Self, FpgaError> {
        let named = machine.text(NAMED).filter(|named| !named.is_empty());
        let folder = machine.path(named.as_deref().unwrap_or(USUAL));
        let wrong = |error| FpgaError::Place { path: machine.name(&folder), error };
        let one = fs::File::open(&folder).map_err(wrong)?;
        let one = Flock::lock(one, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
            Errno::EWOULDBLOCK => FpgaError::Loading,
            errno => wrong(errno.into()),
        })?;
        let (path, making) = (folder.join(NAME), folder.join(format!(".{NAME}.part")));
        // It takes away what is there of either name, also when the next line fails.
        let firmware = Self { path, _one: one, name: NAME };
        match write(&making, image, order).and_then(|()| fs::rename(&making, &firmware.path)) {
            Ok(()) => Ok(firmware),
            Err(error) => {
                let _ = fs::remove_file(&making);
                Err(wrong(error))
            }
        }
    }

    /// Where it is, on the machine that this program runs on.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = fs::remove_file(&self.path);
    }
}

fn write(path: &Path, image: &Image, order: ByteOrder) -> io::Result<()> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    image.bitstream.write(image.bytes(), order, &mut file)?;
    file.flush()?;
    file.get_ref().sync_all()
}
