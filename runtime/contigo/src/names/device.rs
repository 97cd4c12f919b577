#![allow(unsafe_code, reason = "files below a root that a caller chooses")]
//! Names of devices.

use super::{
    error::Form,
    grammar::Parsed,
    name::is_text,
    open_device::OpenDevice,
    rows::{DEVICES, DeviceRow},
    text::Text,
};
use contigo_core::types::Error;

/// The name of a device: what a user writes after `--device`, in every language. It is copied like
/// a number, and says nothing of whether this machine has such a device:
/// [`Inventory`](super::Inventory) does, and [`open`](Self::open).
///
/// | name | device |
/// |---|---|
/// | `uio:axi_dma@40400000`, `uio:axi_dma`, `uio:0` | [`Uio`](crate::linux::device::Uio), by its node, its driver's name for it, or its number |
/// | `guard:f8003000`, `guard:gemm8`, `guard:gemm8@40000000`, `guard:40000000.gemm8` | [`Guard`](crate::linux::guard::Guard), by its registers' address, its node where that is the only one, or the kernel's name |
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
#[derive(Clone, Copy)]
pub struct DeviceName {
    parsed: Parsed,
    row: &'static DeviceRow,
}

impl DeviceName {
    /// The text after it; of a simulated device its model alone, without the seed.
    #[must_use]
    pub fn argument(&self) -> &str {
        self.parsed.argument()
    }

    /// Opens it, once: registers, interrupt and memory come from what is returned.
    ///
    /// # Errors
    /// [`Error::NotBuiltIn`]: this program was built without it. What its own function says: the
    /// table above names it.
    ///
    /// ```
    /// use contigo::names::DeviceName;
    /// let name: DeviceName = "sim:zdma".parse()?;
    /// let device = name.open()?;
    /// assert_eq!(device.port().map(|port| port.name), Some("sim-hp0"));
    /// # Ok::<(), contigo::Error>(())
    /// ```
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn open(&self) -> Result<OpenDevice, Error> {
        self.open_at("")
    }

    /// As [`open`](Self::open), with `root` before `/sys` and `/dev` of a `uio:` or a `pci:`: for
    /// tests, and for a container that has them elsewhere. Every other device is one of this
    /// machine.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`Uio::find_under`](crate::linux::device::Uio::find_under).
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn open_under(&self, root: &str) -> Result<OpenDevice, Error> {
        self.open_at(root)
    }

    /// The seam: opens a guard with `kernel` in the module's place, and with `root` before `/sys`
    /// and `/dev`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`Uio::find_under`](crate::linux::device::Uio::find_under).
    #[cfg(feature = "testkit")]
    pub unsafe fn open_guard_with(
        &self,
        root: &'static str,
        kernel: contigo_core::linux::os::seam::Test<dyn contigo_core::linux::guard::seam::GuardKernel>,
    ) -> Result<OpenDevice, Error> {
        OpenDevice::guarded_by(self, super::files::Files { root }, |device| contigo_core::linux::guard::Guard::open_from(kernel, device))
    }

    /// The seam: opens a PCI function behind an IOMMU, with `kernel` in the place of VFIO.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "testkit")]
    pub fn open_vfio_with(
        &self,
        kernel: contigo_core::linux::os::seam::Test<dyn contigo_core::linux::vfio::seam::VfioKernel>,
    ) -> Result<OpenDevice, Error> {
        OpenDevice::vfio_by(self, |address| contigo_core::linux::vfio::Vfio::open_from(kernel, address))
    }

    #[cfg_attr(feature = "audit", track_caller)]
    fn open_at(&self, root: &str) -> Result<OpenDevice, Error> {
        let open = self.row.open.ok_or(Error::NotBuiltIn { kind: self.row.kind, feature: self.row.feature })?;
        open(self, root)
    }

    /// Every form that a name has, and a sentence about each, for a program's help.
    pub(crate) fn syntaxes() -> impl Iterator<Item = (&'static str, &'static str)> {
        DEVICES.iter().map(|row| (row.syntax, row.help))
    }

    /// A simulated board, by what its memory's name has for a seed.
    pub(super) fn board(seed: &str) -> Option<Self> {
        let at = if seed.is_empty() { "" } else { "@" };
        Text::join(&["sim:board", at, seed])?.as_str().parse().ok()
    }

    /// The number in its argument, where it is one.
    pub(super) fn number(&self) -> Option<u32> {
        Parsed::number(self.argument()).and_then(|number| number.try_into().ok())
    }

    /// The number after its kind; 0 where there is none.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.number().unwrap_or(0)
    }

    /// The feature that builds its kind in.
    pub(super) const fn feature(&self) -> &'static str {
        self.row.feature
    }

    /// The seed of a simulated device's board, where it is given.
    #[cfg(feature = "sim")]
    pub(super) fn seed(&self) -> Option<u64> {
        self.parsed.more().and_then(Parsed::number)
    }

    fn text(&self) -> &str {
        self.parsed.text()
    }
}

is_text!(DeviceName, DEVICES, Form::Device);

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::{super::NameRule, DeviceName, Error};
    use std::{format, string::ToString};

    #[test]
    fn names_are_read_and_written_alike() {
        for (text, argument) in [
            ("uio:axi_dma@40400000", "axi_dma@40400000"),
            ("uio:0", "0"),
            ("guard:f8003000", "f8003000"),
            ("guard:0000:00:02.0", "0000:00:02.0"),
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
    fn what_is_no_name_is_told_the_rule_and_the_place() {
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
        let long = format!("guard:{}", "a".repeat(64)).parse::<DeviceName>().unwrap_err();
        assert_eq!((long.rule, long.at), (NameRule::Length { max_bytes: 63 }, 69));
    }

    #[cfg(feature = "sim")]
    #[test]
    fn a_model_that_is_not_there_is_told_those_that_are_like_it() {
        let name: DeviceName = "sim:axi_dam".parse().unwrap();
        let told = name.open().map(|_| ()).unwrap_err();
        let Error::NotFound { what: "simulated device", among } = told else { panic!("{told:?}") };
        let mut names = std::vec::Vec::new();
        among.each(|name| names.push(name.to_string()));
        assert_eq!((names.len(), names.first().map(std::string::String::as_str)), (8, Some("axi_dma")), "{told}");
        assert!(among.count() > 8 && told.to_string().contains("axi_dma, "), "{told}");
    }
}
