#![allow(unsafe_code, reason = "files below a root that a caller chooses")]
//! Devices of every kind: which there are, and how one is opened by its name.

use super::contigo_device::ContigoDevice;
use super::device_name::DeviceName;
use super::files::Files;
use super::found::{self, Facts};
use super::kernel_registers::KernelRegisters;
use super::kinds::DeviceKind;
use super::opened::{OpenDevice, Opened};
#[cfg(feature = "sim")]
use super::text::Text;
use super::{called, provided};
use contigo_core::linux::dev_node::DevNode;
use contigo_core::linux::vfio::Vfio;
use contigo_core::types::Error;

impl DeviceName {
    /// Opens it, once: the result gives its registers, interrupt and memory.
    ///
    /// # Errors
    /// [`Error::NotBuiltIn`]: this program was built without it. The errors of the function that
    /// opens this kind: the table above names it.
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
        open(self, "")
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
        open(self, root)
    }

    /// The seam: opens a contigo device with `kernel` in place of the module, and with `root`
    /// before `/sys` and `/dev`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`Uio::find_under`](crate::linux::device::Uio::find_under).
    #[cfg(feature = "testkit")]
    pub unsafe fn open_dev_node_with(
        &self,
        root: &'static str,
        kernel: contigo_core::linux::os::seam::Test,
    ) -> Result<OpenDevice, Error> {
        let open = |device: &str| contigo_core::linux::dev_node::DevNode::open_from(kernel, device);
        OpenDevice::new(
            self,
            Opened::ContigoDevice(ContigoDevice::open(self.argument(), Files { root }, open)?),
        )
    }

    /// The seam: opens a PCI function behind an IOMMU, with `kernel` in place of VFIO.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "testkit")]
    pub fn open_vfio_with(
        &self,
        kernel: contigo_core::linux::os::seam::Test,
    ) -> Result<OpenDevice, Error> {
        OpenDevice::new(self, Opened::Vfio(Vfio::open_from(kernel, self.argument())?))
    }
}

#[cfg(feature = "sim")]
impl OpenDevice {
    /// The model of `driver`'s core, on the program's own board: with faults, and beside other
    /// devices. It has a handle to the board.
    ///
    /// ```
    /// use contigo::{names::OpenDevice, sim::{Faults, SimBoard}};
    /// let board = SimBoard::with(1, Faults::OFTEN);
    /// let [from, to] = [OpenDevice::on_board(&board, "zdma")?, OpenDevice::on_board(&board, "axi_dma")?];
    /// assert_eq!(from.port(), to.port());
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: no driver of that name has a model. [`Error::BadName`].
    pub fn on_board(board: &contigo_sim::SimBoard, driver: &str) -> Result<Self, Error> {
        Self::of_model(board, driver, contigo_sim::named(driver)?)
    }

    /// `model` on the program's own board, by the name `sim:NAME`: a core of the program's own.
    ///
    /// # Errors
    /// [`Error::BadName`].
    pub fn of_model(
        board: &contigo_sim::SimBoard,
        name: &str,
        model: contigo_sim::AnyModel,
    ) -> Result<Self, Error> {
        let long = Error::BadName { len_bytes: name.len(), max_bytes: Text::MAX_BYTES };
        let name = Text::join(&["sim:", name]).ok_or(long)?;
        Self::new(&name.as_str().parse()?, Opened::Simulated(board.clone(), Some(model)))
    }
}

/// Opens it, with a root before `/sys` and `/dev` where its files can be elsewhere.
#[cfg_attr(feature = "audit", track_caller)]
fn open(name: &DeviceName, root: &str) -> Result<OpenDevice, Error> {
    let row = name.row();
    let opened = match row.id {
        DeviceKind::Uio => Opened::Plain(KernelRegisters::uio(name, root)?),
        DeviceKind::Pci => Opened::Plain(KernelRegisters::pci(name.argument(), root)?),
        DeviceKind::Contigo => Opened::ContigoDevice(ContigoDevice::open(
            name.argument(),
            Files { root: "" },
            DevNode::open,
        )?),
        DeviceKind::Vfio => Opened::Vfio(Vfio::open(name.argument())?),
        #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
        DeviceKind::Cuda => Opened::Gpu(super::gpu::open(name.ordinal())?),
        #[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
        DeviceKind::Cuda => return Err(Error::NotBuiltIn { kind: row.kind, feature: row.feature }),
        DeviceKind::Vulkan | DeviceKind::OpenCl => {
            Opened::Provided(provided::open(row.kind, row.feature, name.ordinal())?)
        }
        #[cfg(feature = "sim")]
        DeviceKind::Sim => {
            let (board, models) = super::simulated::open(name)?;
            Opened::Simulated(board, models)
        }
        #[cfg(not(feature = "sim"))]
        DeviceKind::Sim => return Err(Error::NotBuiltIn { kind: row.kind, feature: row.feature }),
    };
    OpenDevice::new(name, opened)
}

/// Calls `each` with the argument of every name that exists of a kind.
pub(super) fn find(kind: DeviceKind, files: Files<'_>, each: &mut dyn FnMut(&str)) {
    match kind {
        DeviceKind::Uio => found::uio_devices(files, each),
        DeviceKind::Contigo => files.each(called::DEV_NODES, each),
        DeviceKind::Pci => files.each(found::FUNCTIONS, each),
        DeviceKind::Vfio => found::vfio_functions(files, each),
        DeviceKind::Cuda => found::gpus(files, each),
        DeviceKind::Vulkan => found::vulkan_drivers(files, each),
        DeviceKind::OpenCl => found::opencl_drivers(files, each),
        #[cfg(feature = "sim")]
        DeviceKind::Sim => super::simulated::models(each),
        #[cfg(not(feature = "sim"))]
        DeviceKind::Sim => {}
    }
}

/// What is known of one device.
pub(super) fn facts(kind: DeviceKind, files: Files<'_>, argument: &str) -> Facts {
    match kind {
        DeviceKind::Uio => found::uio(files, argument),
        DeviceKind::Contigo => found::dev_node(files, argument),
        DeviceKind::Pci => found::pci(files, argument),
        DeviceKind::Vfio => found::vfio(files, argument),
        DeviceKind::Cuda | DeviceKind::Vulkan | DeviceKind::OpenCl | DeviceKind::Sim => {
            Facts::default()
        }
    }
}

#[cfg(test)]
#[cfg(feature = "sim")]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::{DeviceName, Error};
    use std::string::ToString;

    #[test]
    fn missing_model_is_told_similar_ones() {
        let name: DeviceName = "sim:axi_dam".parse().unwrap();
        let told = name.open().map(|_| ()).unwrap_err();
        let Error::NotFound { what: "simulated device", among } = told else { panic!("{told:?}") };
        let mut names = std::vec::Vec::new();
        among.each(|name| names.push(name.to_string()));
        assert_eq!(
            (names.len(), names.first().map(std::string::String::as_str)),
            (8, Some("axi_dma")),
            "{told}"
        );
        assert!(among.count() > 8 && told.to_string().contains("axi_dma, "), "{told}");
    }
}
