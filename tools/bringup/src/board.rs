//! A board: its name, how its cores reach memory, the loaded bitstream, and the running programs.
//!
//! [`Board::of`] only reads files: the device tree's root, the FPGA manager, and the classes of
//! devices that programs open. It touches no register and opens no device.
//!
//! # References
//! Devicetree Specification 0.4, 2.3.1 and 2.3.2 (`compatible`, `model`); Linux,
//! `Documentation/ABI/testing/sysfs-class-fpga-manager`.

use crate::fpga::{Bridge, Fpga, FpgaError, State, User, Way};
use crate::known::{Known, family_of};
use crate::machine::Machine;
use crate::plain;
use contigo_boards::Soc;

/// The longest name that a machine gives itself, in letters. The kernel's own names are shorter.
const NAME_MAX: usize = 80;

/// A board, as its files describe it. Text from the machine is safe for a terminal.
#[derive(Debug)]
pub struct Board {
    /// The device tree's name for it: `Zynq ZC702 Development Board`. `None`: a PC, or no tree.
    pub model: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The system on chip, if it is known here.
    pub soc: Option<&'static Soc>,
    /// The board, or the boards that it may be.
    pub known: Known,
    /// The fabric, or the reason why there is none.
    pub fabric: Result<Fabric, FpgaError>,
    /// Whether it is a PC, or a SoC that is known here to have no fabric: then nothing is missing.
    pub is_fabricless: bool,
    /// The devices that programs open for DMA: contigo devices, uio, VFIO, blocks of u-dma-buf,
    /// heaps, GPUs.
    pub devices: Vec<Device>,
}

/// A board's fabric: its device, its state, and its users.
#[derive(Debug)]
pub struct Fabric {
    /// The FPGA manager's folder.
    pub manager: String,
    /// The manager's state. It records the kernel's own loads only: it is `unknown` even if the
    /// boot loader has loaded a bitstream.
    pub state: State,
    /// The way by which a bitstream reaches it.
    pub way: Option<Way>,
    /// The device, and the file that names it.
    pub device: String,
    /// The bridges that the kernel knows.
    pub bridges: Vec<Bridge>,
    /// Its users, or the reason why they cannot be seen.
    pub users: Result<Vec<User>, FpgaError>,
}

impl Board {
    /// Reads the board of a machine. Each fact is optional, and nonsense in the files is no error.
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

/// One device, with the name by which a program opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// `contigo:40000000.copy`, `uio:copy`, `u-dma-buf:udmabuf0`, `vfio:0000:01:00.0`, `cuda:0`.
    pub name: String,
    /// Its node.
    pub node: String,
}

/// The most devices that are listed. A fabric has a few, but a machine's files may have any number.
const DEVICES_MAX: usize = 256;

impl Device {
    pub(super) fn all(machine: &Machine) -> Vec<Self> {
        let device = |kind: &str, called: &str, node: String| Self {
            name: format!("{kind}:{}", plain(called, NAME_MAX)),
            node: plain(&node, NAME_MAX),
        };
        let mut found = Vec::new();
        for name in machine.list("sys/class/contigo") {
            found.push(device("contigo", &name, format!("/dev/contigo/{name}")));
        }
        for uio in machine.list("sys/class/uio") {
            let called =
                machine.text(format!("sys/class/uio/{uio}/name")).unwrap_or_else(|| uio.clone());
            found.push(device("uio", &called, format!("/dev/{uio}")));
        }
        for block in machine.blocks() {
            let name = block.rsplit('/').next().unwrap_or(&block);
            found.push(device("u-dma-buf", name, format!("/dev/{name}")));
        }
        for bus in ["sys/bus/pci/devices", "sys/bus/platform/devices"] {
            for name in machine.list(bus) {
                let last = |link: &str| machine.link_name(format!("{bus}/{name}/{link}"));
                if last("driver").is_some_and(|driver| driver.contains("vfio")) {
                    let group = last("iommu_group").map_or_else(
                        || "no group".to_owned(),
                        |group| format!("/dev/vfio/{group}"),
                    );
                    found.push(device("vfio", &name, group));
                }
            }
        }
        for heap in machine.list("dev/dma_heap") {
            found.push(device("dma-heap", &heap, format!("/dev/dma_heap/{heap}")));
        }
        // NVIDIA's driver may number them in another order. A Jetson has one, without a number.
        let nodes = machine.list("dev").into_iter();
        let gpus = nodes.filter(|node| {
            node.strip_prefix("nvidia").is_some_and(|number| number.parse::<u8>().is_ok())
        });
        let jetson = machine.has("dev/nvmap").then(|| "nvmap".to_owned());
        for (index, node) in gpus.chain(jetson).enumerate() {
            found.push(device("cuda", &index.to_string(), format!("/dev/{node}")));
        }
        found.truncate(DEVICES_MAX);
        found
    }
}
