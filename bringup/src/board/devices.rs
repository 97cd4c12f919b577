//! The devices that programs open for DMA.

use super::NAME_MAX;
use crate::{machine::Machine, plain};

/// One device, by the name that a program opens it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// `guard:40000000.copy`, `uio:copy`, `u-dma-buf:udmabuf0`.
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
            let called = machine.text(format!("sys/class/uio/{uio}/name")).unwrap_or_else(|| uio.clone());
            found.push(device("uio", &called, format!("/dev/{uio}")));
        }
        for class in ["sys/class/u-dma-buf", "sys/class/udmabuf"] {
            for block in machine.list(class) {
                found.push(device("u-dma-buf", &block, format!("/dev/{block}")));
            }
        }
        found.truncate(DEVICES_MAX);
        found
    }
}
