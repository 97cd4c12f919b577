//! A board: which one this is, how its cores reach memory, what is loaded, and what is running.
//!
//! [`Board::of`] reads files only: the device tree's root, the FPGA manager, and the classes of
//! devices that programs open. It touches no register and opens no device.
//!
//! # References
//! Devicetree Specification 0.4, 2.3.1 and 2.3.2 (`compatible`, `model`); Linux,
//! `Documentation/ABI/testing/sysfs-class-fpga-manager`.

mod devices;
mod known;

pub use devices::Device;
pub use known::{Known, Sure};

use crate::{
    fpga::{Bridge, Fpga, FpgaError, State, Way, family_of, users::User},
    machine::Machine,
    plain,
};
use contigo_boards::Soc;

/// The most letters of a name that a machine gives itself; the kernel's own are shorter.
const NAME_MAX: usize = 80;

/// A board, as its files tell it. Text that the machine gave is safe for a terminal.
#[derive(Debug)]
pub struct Board {
    /// Its tree's name for it: `Zynq ZC702 Development Board`. `None`: a PC, or no tree.
    pub model: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The system on chip, where it is known here.
    pub soc: Option<&'static Soc>,
    /// The board, or those that it may be.
    pub known: Known,
    /// The fabric, or why there is none.
    pub fabric: Result<Fabric, FpgaError>,
    /// A PC, or a SoC that is known here to have no fabric: nothing is missing there.
    pub is_fabricless: bool,
    /// The devices that programs open for DMA: guards, uio, VFIO, blocks of u-dma-buf, heaps, GPUs.
    pub devices: Vec<Device>,
}

/// A board's fabric: its device, its state, and its users.
#[derive(Debug)]
pub struct Fabric {
    /// The FPGA manager's folder.
    pub manager: String,
    /// The manager's state. It is the kernel's memory of its own loads: `unknown` also where the
    /// boot loader has loaded.
    pub state: State,
    /// How a bitstream reaches it.
    pub way: Option<Way>,
    /// Which device it is, and by which file.
    pub device: String,
    /// The bridges that the kernel knows.
    pub bridges: Vec<Bridge>,
    /// Who uses it, or why that cannot be seen.
    pub users: Result<Vec<User>, FpgaError>,
}

impl Board {
    /// The board of a machine. Each fact is there or not; nonsense in the files is no error.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let tree = |name: &str| machine.bytes(format!("sys/firmware/devicetree/base/{name}"));
        let text =
            |bytes: &[u8]| plain(String::from_utf8_lossy(bytes).trim_end_matches('\0'), NAME_MAX);
        let (model, root) = (tree("model"), tree("compatible").unwrap_or_default());
        let soc = contigo_boards::by_compatible(&root);
        Self {
            known: Known::of(&root, model.as_deref().unwrap_or_default(), soc),
            model: model.map(|model| text(&model)),
            kernel: machine.kernel().map(|kernel| plain(&kernel, NAME_MAX)),
            soc,
            is_fabricless: soc.map_or(root.is_empty(), |_| family_of(machine).is_none()),
            fabric: Fpga::find(machine, None, None).map(|fpga| Fabric {
                manager: plain(&fpga.manager.id, NAME_MAX),
                state: fpga.state(),
                device: plain(&fpga.target.to_string(), NAME_MAX),
                bridges: fpga.bridges(),
                users: fpga.users(),
                way: fpga.way,
            }),
            devices: Device::all(machine),
        }
    }
}
