//! The names of a device that the kernel module has.

use super::files::{Files, LINE_MAX_BYTES, link};
use contigo_core::types::Error;

/// The devices that the module has.
pub(super) const DEV_NODES: &str = "sys/class/contigo";

/// The longest name of a device or a node here.
pub(super) type Name = heapless::String<64>;

/// The names of a contigo device.
#[derive(Default)]
pub(super) struct Called {
    /// By the kernel: `40000000.gemm8`.
    pub(super) device: Name,
    /// Its node in the device tree, `gemm8@40000000`; nothing where it has none.
    pub(super) node: Name,
}

impl Called {
    /// The one contigo device called `name`: by the kernel's name, which takes precedence; by its
    /// registers' address; or by its node, with its unit address or without.
    pub(super) fn find(name: &str, files: Files<'_>) -> Result<Self, Error> {
        const WHAT: &str = "device that is bound to the kernel module contigo";
        let (mut dev_nodes, mut matches, mut found) = (0, 0, Self::default());
        let mut exact = false;
        files.each(DEV_NODES, &mut |device| {
            dev_nodes += 1;
            let mut buffer = [0; LINE_MAX_BYTES];
            let folder = files.folder(&[DEV_NODES, device]);
            let node = folder
                .as_ref()
                .and_then(|folder| link(folder, c"device/of_node", &mut buffer))
                .unwrap_or("");
            let called = Self {
                device: device.try_into().unwrap_or_default(),
                node: node.try_into().unwrap_or_default(),
            };
            if device == name {
                (exact, found) = (true, called);
            } else if called.is(name) && !exact {
                matches += 1;
                found = called;
            }
        });
        match matches {
            _ if exact => Ok(found),
            0 => Err(Error::NotFound { what: WHAT, among: dev_nodes.into() }),
            1 => Ok(found),
            _ => Err(Error::Ambiguous { what: WHAT, matches }),
        }
    }

    /// Returns whether `name` is its address or its node.
    pub(super) fn is(&self, name: &str) -> bool {
        let (node, at) = name.split_once('@').map_or((name, None), |(node, at)| (node, Some(at)));
        let bare = self.node.split('@').next().unwrap_or("");
        let by_node = !name.is_empty() && (self.node == name || (at.is_none() && bare == name));
        // The kernel's name also has the node and the address, if it consists of both.
        by_node
            || split(&self.device).is_some_and(|(addr, word)| match at {
                Some(at) => (node, at) == (word, addr),
                None => name == addr || name == word,
            })
    }
}

/// The address and the node in the kernel's name of a device-tree device,
/// `f8003000.dma-controller`: the first register's address, then the node's name (Linux
/// `of_device_make_bus_id`). `adc.0` has no address: its number comes last.
fn split(device: &str) -> Option<(&str, &str)> {
    let (address, name) = device.split_once('.')?;
    let is_address = !address.is_empty()
        && address.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_address && name.starts_with(|letter: char| letter.is_ascii_alphabetic()))
        .then_some((address, name))
}

/// The kernel's name of the one device called `name`.
pub(super) fn name_of(name: &str, files: Files<'_>) -> Option<Name> {
    Called::find(name, files).ok().map(|called| called.device)
}

/// The address of the first register of the kernel's `device`, if that name has it.
pub(super) fn first_register(device: &str) -> Option<u64> {
    u64::from_str_radix(split(device)?.0, 16).ok()
}
