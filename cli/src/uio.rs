//! The UIO devices and DMA engines of a machine.

use crate::machine::Machine;
use contigo_boards::Soc;
use contigo_testkit::uio::{FoundEngine, UioDevice, soc};

impl Machine {
    /// The system on chip, by the device tree.
    pub(crate) fn soc(&self) -> Option<&'static Soc> {
        soc(self.root())
    }

    /// The UIO devices, by number.
    pub(crate) fn uio_devices(&self) -> Vec<UioDevice> {
        UioDevice::all(self.root())
    }

    /// Those that are DMA engines of this board.
    pub(crate) fn dma_engines(&self) -> Vec<FoundEngine> {
        FoundEngine::all(self.root())
    }
}

#[cfg(test)]
mod tests {
    use contigo_boards::DmaKind;
    use std::{fs, io, os::unix::fs::symlink};

    #[test]
    fn engines_are_known_by_their_registers() -> io::Result<()> {
        let (folder, machine) = crate::machine::tests::board()?;
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
            fs::write(path, text)
        };
        write("proc/device-tree/compatible", "xlnx,zynq-zc702\0xlnx,zynq-7000\0")?;
        for (index, name, addr, node) in [(10, "dmac", "0xf8003000", "dma-controller@f8003000"), (2, "gpio", "0xe000a000", "gpio@e000a000")]
        {
            write(&format!("sys/class/uio/uio{index}/name"), name)?;
            write(&format!("sys/class/uio/uio{index}/maps/map0/addr"), &format!("{addr}\n"))?;
            fs::create_dir_all(folder.path().join(format!("sys/class/uio/uio{index}/device")))?;
            symlink(
                format!("../../../firmware/devicetree/{node}"),
                folder.path().join(format!("sys/class/uio/uio{index}/device/of_node")),
            )?;
        }
        assert_eq!(machine.uio_devices().iter().map(|device| device.index).collect::<Vec<_>>(), [2, 10]);
        let [dmac] = <[_; 1]>::try_from(machine.dma_engines()).map_err(|_| io::ErrorKind::Other)?;
        assert_eq!((dmac.kind, dmac.device.index), (DmaKind::Pl330, 10));
        assert_eq!(dmac.label(), "pl330@dma-controller@f8003000");
        for name in ["dma-controller@f8003000", "dma-controller", "dmac"] {
            assert!(dmac.device.is_called(name), "{name}");
        }
        assert!(!dmac.device.is_called("dma-controller@f8004000") && !dmac.device.is_called("dma"));
        Ok(())
    }

    #[test]
    fn a_machine_without_any_has_none() -> io::Result<()> {
        let (_folder, machine) = crate::machine::tests::board()?;
        assert!(machine.soc().is_none() && machine.uio_devices().is_empty() && machine.dma_engines().is_empty());
        Ok(())
    }
}
