//! The memory that `--memory` names.

use crate::failure::Failure;
use contigo::Port;
use contigo::mem::{Mapping, SyncScope};
use contigo::names::{AnyMemory, DeviceName, Inventory, MemoryName, OpenDevice};
use contigo_boards::sim::{WIDE, WIDE_COHERENT};

/// Parses the option's value. The error for a wrong value shows the right form and this machine's
/// memory.
pub(crate) fn memory_name(text: &str) -> Result<MemoryName, String> {
    text.parse().map_err(|error| format!("{error}; {}", Inventory::here().memory_answer()))
}

/// Parses a device's name in the same way.
pub(crate) fn device_name(text: &str) -> Result<DeviceName, String> {
    text.parse().map_err(|error| format!("{error}; {}", Inventory::here().device_answer()))
}

/// Opens memory, for `device` if there is one.
pub(crate) fn open(
    name: &MemoryName,
    device: Option<&OpenDevice>,
    len_bytes: usize,
) -> Result<AnyMemory, Failure> {
    let memory =
        device.map_or_else(|| name.open(len_bytes), |device| device.memory(name, len_bytes));
    memory.map_err(|error| Failure::Memory { name: *name, error })
}

/// The memory of a simulated board, with `seed` if its name has none.
pub(crate) fn seeded(name: &MemoryName, seed: u64) -> MemoryName {
    let with_seed = || format!("sim:{seed}").parse().ok();
    Some(*name)
        .filter(|name| name.kind() != "sim" || !name.argument().is_empty())
        .or_else(with_seed)
        .unwrap_or(*name)
}

/// A simulated device, with `seed` if its name has none.
pub(crate) fn seeded_device(name: &DeviceName, seed: u64) -> DeviceName {
    if name.kind() != "sim" || name.to_string().contains('@') {
        return *name;
    }
    format!("{name}@{seed}").parse().unwrap_or(*name)
}

/// The first memory of this machine that a real device could use, judged by its files. It is not
/// opened.
pub(crate) fn first_for(device: Option<&DeviceName>) -> Option<MemoryName> {
    let mut usable = Inventory::here()
        .memories()
        .filter(|entry| entry.why.is_none())
        .filter_map(|entry| entry.name);
    match device.map(DeviceName::kind) {
        // Its own memory.
        Some("vfio" | "contigo") => device?.to_string().parse().ok(),
        // A device's memory is for that device only.
        _ => usable.find(|name| name.device().is_none()),
    }
}

/// The simulated master's port to real memory. It snoops if the memory is coherent, or if the
/// runtime cannot maintain its caches. The engine is a program on the CPU, so it sees the caches
/// either way; the port only decides whether the memory's own maintenance runs.
pub(crate) fn simulated_port(memory: &Mapping) -> Port {
    let maintained = matches!(memory.scope, SyncScope::Range { .. } | SyncScope::Whole);
    if memory.coherent.unwrap_or(!maintained) { WIDE_COHERENT } else { WIDE }
}

#[cfg(test)]
mod tests {
    use super::first_for;

    #[test]
    fn a_device_with_memory_of_its_own_gets_that() {
        for name in ["contigo:f8003000", "vfio:0000:01:00.0"] {
            let device = name.parse().ok();
            let memory = first_for(device.as_ref()).map(|memory| memory.to_string());
            assert_eq!((device.is_some(), memory.as_deref()), (true, Some(name)));
        }
    }
}
