//! Which devices of a machine are DMA engines of its board.

use contigo::names::{DeviceName, Inventory, OpenDevice};
use contigo::{Error, PhysAddr};
use contigo_boards::{DmaEngine, Soc, by_compatible};
use std::fs;
use std::path::Path;

/// A DMA engine, and the device that is it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundEngine {
    /// The board's facts about it.
    pub engine: DmaEngine,
    /// The device.
    pub device: DeviceName,
}

impl FoundEngine {
    /// The contigo devices and the UIO devices under `root` (`""` for the running kernel's) that
    /// are DMA engines of its board, in the board's order. They are known by the address of their
    /// registers, whatever their nodes are called.
    #[must_use]
    pub fn all(root: &str) -> Vec<Self> {
        let engines = soc(root).map_or(&[] as &[DmaEngine], |soc| soc.engines).iter();
        engines
            .filter_map(|engine| {
                Some(Self { engine: *engine, device: at(root, engine.registers)? })
            })
            .collect()
    }

    /// Its name on a command line: `pl330@dma-controller@f8003000`.
    #[must_use]
    pub fn label(&self) -> String {
        [self.engine.kind.name(), self.device.argument()].join("@")
    }
}

/// The device whose registers are at `addr`.
fn at(root: &str, addr: u64) -> Option<DeviceName> {
    let found = Inventory::under(root)
        .devices()
        .find(|entry| ["uio", "contigo"].contains(&entry.kind) && entry.facts.addr == Some(addr));
    found.and_then(|entry| entry.name)
}

/// Are the registers of `opened` at `addr`? Between the look that found it and its opening, its
/// name may have become another device's.
///
/// # Errors
/// [`Error::NotFound`]: they are elsewhere.
pub fn ensure_at(opened: &OpenDevice, addr: u64) -> Result<(), Error> {
    let is_there = opened.addr() == Some(PhysAddr(addr));
    is_there.then_some(()).ok_or(Error::NotFound {
        what: "DMA engine whose registers are at the board's address",
        among: 1.into(),
    })
}

/// The system on chip, by the device tree under `root`.
#[must_use]
pub fn soc(root: &str) -> Option<&'static Soc> {
    by_compatible(
        &fs::read(Path::new(&format!("{root}/")).join("proc/device-tree/compatible")).ok()?,
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use contigo_boards::DmaKind;
    use contigo_testkit::fake_devices::FakeDevices;

    #[test]
    fn engines_are_known_by_their_registers() {
        let tree = FakeDevices::new();
        assert_eq!((soc(tree.root()), FoundEngine::all(tree.root())), (None, vec![]));
        tree.file("proc/device-tree/compatible", "xlnx,zynq-zc702\0xlnx,zynq-7000\0");
        tree.uio(2, Some("gpio@e000a000"), "gpio");
        tree.map(2, 0, "0xe000a000", "0x1000", "0x0");
        tree.uio(10, Some("dma-controller@f8003000"), "dmac");
        let [dmac] = <[_; 1]>::try_from(FoundEngine::all(tree.root())).unwrap();
        assert_eq!(
            (dmac.engine.kind, dmac.device.to_string().as_str()),
            (DmaKind::Pl330, "uio:dma-controller@f8003000")
        );
        assert_eq!(dmac.label(), "pl330@dma-controller@f8003000");
        let tree = FakeDevices::new();
        tree.file("proc/device-tree/compatible", "xlnx,zynq-zc702\0xlnx,zynq-7000\0");
        tree.folder("sys/class/contigo/f8003000.dma-controller");
        let [dmac] = <[_; 1]>::try_from(FoundEngine::all(tree.root())).unwrap();
        assert_eq!(dmac.device.to_string(), "contigo:f8003000.dma-controller");
    }
}
