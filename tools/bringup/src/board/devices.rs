//! The devices that programs open for DMA.

use super::NAME_MAX;
use crate::{machine::Machine, plain};

/// One device, by the name that a program opens it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// `guard:40000000.copy`, `uio:copy`, `u-dma-buf:udmabuf0`, `vfio:0000:01:00.0`, `cuda:0`.
    pub name: String,
    /// Its node.
    pub node: String,
}

/// The most that are listed: a fabric has a few, and a machine may say anything.
const DEVICES_MAX: usize = 256;

impl Device {
    /// Those of a machine.
    pub(super) fn all(machine: &Machine) -> Vec<Self> {
        let device = |kind: &str, called: &str, node: String| Self {
            name: format!("{kind}:{}", plain(called, NAME_MAX)),
            node: plain(&node, NAME_MAX),
        };
        let mut found = Vec::new();
        for name in machine.list("sys/class/contigo") {
            found.push(device("guard", &name, format!("/dev/contigo/{name}")));
        }
        for uio in machine.list("sys/class/uio") {
            let called =
                machine.text(format!("sys/class/uio/{uio}/name")).unwrap_or_else(|| uio.clone());
            found.push(device("uio", &called, format!("/dev/{uio}")));
        }
        for class in ["sys/class/u-dma-buf", "sys/class/udmabuf"] {
            for block in machine.list(class) {
                found.push(device("u-dma-buf", &block, format!("/dev/{block}")));
            }
        }
        for bus in ["sys/bus/pci/devices", "sys/bus/platform/devices"] {
            for name in machine.list(bus) {
                let last = |link: &str| {
                    Some(
                        machine
                            .link(format!("{bus}/{name}/{link}"))?
                            .file_name()?
                            .to_string_lossy()
                            .into_owned(),
                    )
                };
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
        // NVIDIA's driver may count them in another order. A Jetson has one, without a number.
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
