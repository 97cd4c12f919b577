//! The function's PCI configuration space, through the device's file: bus mastering, and whether it
//! may ask not to be snooped.

use super::abi::{self, RegionInfo};
use super::space::os;
use crate::linux::os::fd::Fd;
use crate::linux::os::{Kernel, SystemCalls, ask};
use crate::types::Error;
use nix::libc::EIO;

/// PCI Local Bus Specification 3.0, 6.2.2: the command register. Memory space, bus master.
const COMMAND: u64 = 0x04;
const MEMORY: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;
/// 6.2.3: the status register. There is a list of capabilities.
const STATUS: u64 = 0x06;
const HAS_CAPABILITIES: u16 = 1 << 4;
/// 6.7: where the list begins, and the most capabilities that 192 bytes hold.
const CAPABILITIES: u64 = 0x34;
const MAX_CAPABILITIES: u32 = 48;
/// PCI Express Base Specification 5.0, 7.5.3: the PCI Express capability, and its device control
/// register.
const EXPRESS: u8 = 0x10;
const DEVICE_CONTROL: u64 = 0x08;
/// 7.5.3.4, "Enable No Snoop": while it is clear, the function sets the No Snoop attribute in none
/// of its requests.
const ENABLE_NO_SNOOP: u16 = 1 << 11;

const COMMAND_NAME: &str = "the PCI command register";

/// Where the configuration space is in the device's file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    offset: u64,
}

impl Config {
    /// Asks the kernel where it is.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub(super) fn find(kernel: &Kernel, device: &Fd) -> Result<Self, Error> {
        let mut info = RegionInfo::ask(abi::CONFIG_REGION);
        let found = ask(kernel, device, &mut info);
        found.map_err(|errno| os("ioctl(VFIO_DEVICE_GET_REGION_INFO)", errno))?;
        Ok(Self { offset: info.offset })
    }

    /// Enables the function's registers, and turns its bus mastering on or off.
    ///
    /// It then reads the register back. With bus mastering off, none of the function's earlier
    /// writes is under way after that: a read's answer does not overtake posted writes (PCI Express
    /// Base Specification 5.0, 2.4.1).
    ///
    /// # Errors
    /// [`Error::Os`]; [`Error::Unexpected`] where the bits do not stay as they were written.
    pub(super) fn enable(
        self,
        kernel: &Kernel,
        device: &Fd,
        bus_master: bool,
    ) -> Result<(), Error> {
        let before = self.read(kernel, device, COMMAND)?;
        let wanted = (before & !BUS_MASTER) | MEMORY | if bus_master { BUS_MASTER } else { 0 };
        self.write(kernel, device, COMMAND, wanted)?;
        let found = self.read(kernel, device, COMMAND)?;
        if (found ^ wanted) & (MEMORY | BUS_MASTER) == 0 {
            return Ok(());
        }
        Err(Error::Unexpected { name: COMMAND_NAME, value: found.into() })
    }

    /// Forbids the function to set No Snoop. Functions without PCI Express cannot set it.
    ///
    /// # Errors
    /// [`Error::Os`]; [`Error::Setting`] where the bit stays set.
    pub(super) fn forbid_no_snoop(self, kernel: &Kernel, device: &Fd) -> Result<(), Error> {
        let Some(express) = self.find_express(kernel, device)? else { return Ok(()) };
        let control = express + DEVICE_CONTROL;
        let before = self.read(kernel, device, control)?;
        if before & ENABLE_NO_SNOOP == 0 {
            return Ok(());
        }
        self.write(kernel, device, control, before & !ENABLE_NO_SNOOP)?;
        let found = self.read(kernel, device, control)?;
        if found & ENABLE_NO_SNOOP == 0 {
            return Ok(());
        }
        let fix = "this function may leave the caches out whatever its driver says: use an IOMMU \
         that makes every access snoop";
        Err(Error::Setting {
            name: "Enable No Snoop of the PCI function",
            value: found.into(),
            fix,
        })
    }

    /// Where the PCI Express capability is.
    fn find_express(self, kernel: &Kernel, device: &Fd) -> Result<Option<u64>, Error> {
        if self.read(kernel, device, STATUS)? & HAS_CAPABILITIES == 0 {
            return Ok(None);
        }
        let [mut at, _] = self.read(kernel, device, CAPABILITIES)?.to_le_bytes();
        for _ in 0..MAX_CAPABILITIES {
            at &= !0b11;
            if at == 0 {
                return Ok(None);
            }
            let [id, next] = self.read(kernel, device, at.into())?.to_le_bytes();
            if id == EXPRESS {
                return Ok(Some(at.into()));
            }
            at = next;
        }
        Err(Error::Unexpected { name: "the PCI function's list of capabilities", value: at.into() })
    }

    fn read(self, kernel: &Kernel, device: &Fd, at: u64) -> Result<u16, Error> {
        let mut bytes = [0; 2];
        const CALL: &str = "pread(PCI configuration)";
        let read = kernel.read_at(device, self.offset.saturating_add(at), &mut bytes);
        match read.map_err(|errno| os(CALL, errno))? {
            2 => Ok(u16::from_le_bytes(bytes)),
            _ => Err(os(CALL, EIO)),
        }
    }

    fn write(self, kernel: &Kernel, device: &Fd, at: u64, value: u16) -> Result<(), Error> {
        const CALL: &str = "pwrite(PCI configuration)";
        let written = kernel.write_at(device, self.offset.saturating_add(at), &value.to_le_bytes());
        match written.map_err(|errno| os(CALL, errno))? {
            2 => Ok(()),
            _ => Err(os(CALL, EIO)),
        }
    }
}
