//! docs/stopping.md: a kernel of HLS behind a gate.

use contigo::{
    Device, Mmio, Queue, Result, Wait,
    design::kernel::KernelMap,
    drivers::{
        ap_ctrl::ApCtrl,
        axi_gate::{AxiGate, Gated},
    },
};

/// A kernel with two pointers, whose devices the program has opened.
pub(crate) fn open<K: Device, G: Mmio + Wait>(
    kernel: K,
    gate: G,
    map: KernelMap,
) -> Result<Queue<Gated<ApCtrl<K>, G>>> {
    // SAFETY: no other code writes its registers.
    let gate = unsafe { AxiGate::open(gate)? }; // first: a dead program may have left a reset
    // SAFETY: the kernel's only master passes this gate, whose core_aresetn is the kernel's reset.
    let driver = unsafe { Gated::new(ApCtrl::open(kernel, map)?, gate) };
    let queue = Queue::new(driver, 8)?; // and jobs as without a gate
    Ok(queue)
}
