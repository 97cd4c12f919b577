//! Which PCI functions there are.

use crate::linux::os::dir::each_name;
use crate::linux::os::fd::Fd;
use crate::linux::os::path::Path;
use crate::linux::os::sysfs;
use crate::types::Error;
use core::ffi::CStr;
use core::ops::RangeInclusive;
use nix::libc::{ENOENT, O_DIRECTORY, O_RDONLY};

/// `0000:00:01.0`; some host bridges have domains of up to 8 digits.
const ADDRESS_MAX_BYTES: usize = 16;

pub(super) type Address = heapless::String<ADDRESS_MAX_BYTES>;

/// The folder of them all, for errors.
pub(super) const FOLDER: &str = "/sys/bus/pci/devices";

/// Checks that `address` is one.
pub(super) fn address(address: &str) -> Result<Address, Error> {
    let refused = Error::BadName { len_bytes: address.len(), max_bytes: ADDRESS_MAX_BYTES };
    Address::try_from(address).ok().filter(|address| is_address(address)).ok_or(refused)
}

/// The address of the one function of this `vendor` and `device`.
pub(super) fn find(root: &str, vendor: u16, device: u16) -> Result<Address, Error> {
    let (mut others, mut matches, mut found) = (0, 0, Address::new());
    if let Some(all) = functions(root)? {
        each_name(&all, FOLDER, |name| {
            match Path::join(&[name])
                .map(|path| all.open_at(path.as_c_str(), O_RDONLY | O_DIRECTORY))
            {
                Ok(Ok(folder)) if id(&folder) == Ok((vendor, device)) => {
                    matches += 1;
                    found = Address::try_from(name).unwrap_or_default();
                }
                // Gone between two reads, or its files are malformed: then it is not the one.
                _ => others += 1,
            }
            Ok(())
        })?;
    }
    match matches {
        0 => Err(Error::NotFound { what: "PCI function", among: others.into() }),
        1 => Ok(found),
        _ => Err(Error::Ambiguous { what: "PCI function", matches }),
    }
}

/// `/sys/bus/pci/devices`, or `None` where there is no PCI.
fn functions(root: &str) -> Result<Option<Fd>, Error> {
    match Fd::open(Path::join(&[root, "sys/bus/pci/devices"])?.as_c_str(), O_RDONLY | O_DIRECTORY) {
        Ok(folder) => Ok(Some(folder)),
        Err(ENOENT) => Ok(None),
        Err(errno) => Err(Error::AttributeUnreadable { name: FOLDER, errno }),
    }
}

/// How many functions there are.
pub(super) fn count(root: &str) -> Result<u32, Error> {
    let mut count = 0;
    if let Some(all) = functions(root)? {
        each_name(&all, FOLDER, |_| {
            count += 1;
            Ok(())
        })?;
    }
    Ok(count)
}

/// Vendor and device, as the function's folder says.
pub(super) fn id(folder: &Fd) -> Result<(u16, u16), Error> {
    let id = |name: &'static CStr| {
        let value = sysfs::required(folder, name)?;
        u16::try_from(value).map_err(|_| Error::Unexpected { name: sysfs::text(name), value })
    };
    Ok((id(c"vendor")?, id(c"device")?))
}

/// Domain, bus, device and function: 4 to 8, 2 and 2 hexadecimal digits, and one from 0 to 7.
fn is_address(address: &str) -> bool {
    let mut parts = address.split([':', '.']);
    let mut hexadecimal = |lengths: RangeInclusive<usize>| {
        parts.next().is_some_and(|part| {
            lengths.contains(&part.len())
                && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    let numbers = hexadecimal(4..=8) && hexadecimal(2..=2) && hexadecimal(2..=2);
    let separators = address.bytes().filter(|byte| matches!(byte, b':' | b'.')).eq(*b"::.");
    numbers
        && separators
        && matches!(parts.next(), Some("0" | "1" | "2" | "3" | "4" | "5" | "6" | "7"))
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn an_address_is_domain_bus_device_and_function() {
        for good in ["0000:00:01.0", "10000:e0:1f.7", "ffffffff:ff:1f.7"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "0000:00:01",
            "00:01.0",
            "0000:00:01.8",
            "0000:00:01.00",
            "0000:00:01.",
            "0000.00:01:0",
            "0000:00:01:0",
            "000:00:01.0",
            "0000:00:0g.0",
            "0000:0A:01.0",
            "0000:00:01.0:",
            "0000:00:01.0\n",
            "../../x:00:01.0",
            "123456789:00:01.0",
            "+000:00:01.0",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
