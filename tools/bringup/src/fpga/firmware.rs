//! The file where the kernel looks for it: there whole, or not at all, and gone afterwards.

use super::FpgaError;
use crate::{
    bitstream::{ByteOrder, Image},
    machine::{self, Machine},
};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// The kernel's parameter for the folder that it looks into first; empty where none is set.
const NAMED: &str = "sys/module/firmware_class/parameters/path";
/// The folder that it looks into anyway.
const USUAL: &str = "lib/firmware";
/// The file. It is always the same, because dfx-mgr unloads by it; a lock keeps two loads apart.
pub(super) const NAME: &str = "contigo-fpga.bin";

/// A configuration in the kernel's folder. Dropping it takes it away.
pub(super) struct Firmware {
    path: PathBuf,
    /// Its folder, locked as long as the load: AMD's manager takes no lock of its own.
    folder: Flock<File>,
    /// Its name below the folder, as it is given to the kernel.
    pub(super) name: &'static str,
}

impl Firmware {
    /// Writes the configuration under a name of its own, and gives it its last name when it is
    /// whole and on the disk.
    pub(super) fn place(
        machine: &Machine,
        image: &Image,
        order: ByteOrder,
    ) -> Result<Self, FpgaError> {
        let named = machine.text(NAMED).filter(|named| !named.is_empty());
        let folder = machine.path(named.as_deref().unwrap_or(USUAL));
        let wrong = |error| FpgaError::Place { path: machine.name(&folder), error };
        let one =
            machine.files().folder_to_write(named.as_deref().unwrap_or(USUAL)).map_err(wrong)?;
        let one =
            Flock::lock(one, FlockArg::LockExclusiveNonblock).map_err(
                |(_, errno)| match errno {
                    Errno::EWOULDBLOCK => FpgaError::Loading,
                    errno => wrong(errno.into()),
                },
            )?;
        let making = format!(".{NAME}.part");
        // It takes away what is there of either name, also when the next line fails.
        let firmware = Self { path: folder.join(NAME), folder: one, name: NAME };
        match write(&firmware.folder, &making, image, order)
            .and_then(|()| machine::rename(&*firmware.folder, &making, NAME))
        {
            Ok(()) => Ok(firmware),
            Err(error) => {
                let _ = machine::remove(&*firmware.folder, &making);
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
        let _ = machine::remove(&*self.folder, NAME);
    }
}

fn write(folder: &File, name: &str, image: &Image, order: ByteOrder) -> io::Result<()> {
    let mut file = BufWriter::new(machine::create(folder, name)?);
    image.bitstream.write(image.bytes(), order, &mut file)?;
    file.flush()?;
    file.get_ref().sync_all()
}
