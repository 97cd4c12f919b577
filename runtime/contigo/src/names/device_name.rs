//! Names of devices.

use super::error::{Form, NameError};
use super::grammar::Parsed;
use super::kinds::{DEVICES, DeviceKind};
use super::name::Name;
use super::text::Text;
use core::fmt;
use core::str::FromStr;

/// The name of a device: what a user writes after `--device`, in every language. It is copied like
/// a number. Whether this machine has such a device, only [`Inventory`](super::Inventory) and
/// `open` tell.
///
/// | name | device |
/// |---|---|
/// | `uio:axi_dma@40400000`, `uio:axi_dma`, `uio:0` | [`Uio`](crate::linux::device::Uio), by its node, its driver's name for it, or its number |
/// | `contigo:f8003000`, `contigo:gemm8`, `contigo:gemm8@40000000`, `contigo:40000000.gemm8` | [`DevNode`](crate::linux::dev_node::DevNode), by its registers' address, its node where that is the only one, or the kernel's name |
/// | `pci:0000:01:00.0` | [`PciFunction`](crate::linux::device::PciFunction) |
/// | `vfio:0000:01:00.0` | [`Vfio`](crate::linux::vfio::Vfio) |
/// | `cuda`, `cuda:1` | `cuda::Gpu`, for its memory (feature `cuda`) |
/// | `vulkan`, `vulkan:1`, `opencl`, `opencl:1` | a GPU, for its memory (crate `contigo-gpu`) |
/// | `sim:zdma`, `sim:pl330@7`, `sim:board` | a model on a simulated board with that seed; a board alone (feature `sim`) |
///
/// ```
/// use contigo::names::DeviceName;
/// let name: DeviceName = "uio:axi_dma@40400000".parse()?;
/// assert_eq!((name.kind(), name.argument()), ("uio", "axi_dma@40400000"));
/// # Ok::<(), contigo::names::NameError>(())
/// ```
pub type DeviceName = Name<DeviceKind>;

impl FromStr for DeviceName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::of(text, &DEVICES, Form::Device)
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceName").field(&self.text()).finish()
    }
}

impl DeviceName {
    /// The name of a simulated board, from the seed in its memory's name.
    pub(super) fn board(seed: &str) -> Option<Self> {
        let at = if seed.is_empty() { "" } else { "@" };
        Text::join(&["sim:board", at, seed])?.as_str().parse().ok()
    }

    /// The number in its argument, if it is one.
    pub(super) fn number(&self) -> Option<u32> {
        Parsed::number(self.argument()).and_then(|number| number.try_into().ok())
    }

    /// The number after its kind; 0 where there is none.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.number().unwrap_or(0)
    }

    /// The seed of a simulated device's board, where it is given.
    #[cfg(feature = "sim")]
    pub(super) fn seed(&self) -> Option<u64> {
        self.parsed.more().and_then(Parsed::number)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::super::NameRule;
    use super::DeviceName;
    use std::format;
    use std::string::ToString;

    #[test]
    fn names_are_read_and_written_alike() {
        for (text, argument) in [
            ("uio:axi_dma@40400000", "axi_dma@40400000"),
            ("uio:0", "0"),
            ("contigo:f8003000", "f8003000"),
            ("contigo:0000:00:02.0", "0000:00:02.0"),
            ("pci:00010000:01:00.7", "00010000:01:00.7"),
            ("vfio:0000:01:00.0", "0000:01:00.0"),
            ("cuda", ""),
            ("cuda:3", "3"),
            ("sim:zdma", "zdma"),
            ("sim:pl330@7", "pl330"),
        ] {
            let name: DeviceName = text.parse().unwrap();
            assert_eq!((name.to_string().as_str(), name.argument()), (text, argument));
            assert!(!name.help().is_empty() && text.starts_with(name.kind()));
        }
    }

    #[test]
    fn wrong_name_tells_rule_and_place() {
        let number = NameRule::Number { max: u64::MAX };
        for (text, rule, at) in [
            ("hugetlb", NameRule::Kind, 0),
            ("/dev/uio0", NameRule::Kind, 0),
            ("uio", NameRule::Argument, 3),
            ("uio:", NameRule::Argument, 4),
            ("uio:a/b", NameRule::Letter, 5),
            ("pci:edu", NameRule::PciAddress, 4),
            ("sim", NameRule::Argument, 3),
            ("sim:@7", NameRule::Argument, 4),
            ("sim:zdma@", number, 9),
            ("sim:zdma@x", number, 9),
            ("sim:zdma@7@8", number, 9),
        ] {
            let refused = text.parse::<DeviceName>().unwrap_err();
            assert_eq!((refused.rule, refused.at), (rule, at), "{text:?}");
        }
        let long = format!("contigo:{}", "a".repeat(64)).parse::<DeviceName>().unwrap_err();
        assert_eq!((long.rule, long.at), (NameRule::Length { max_bytes: 63 }, 71));
    }
}
