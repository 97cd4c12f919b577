#![allow(unsafe_code, reason = "AP_START sends the kernel to its operands")]
//! The control registers of a kernel that HLS made, and the handshake by them: UG1399, "S_AXILITE
//! Control Register Map", and the table at the top of each `x<name>_hw.h`. A kernel's arguments
//! begin behind them.

use contigo_core::hw::Device;
use contigo_core::hw::mmio::{Pointer, ReadClears, ReadWrite, Register, WriteOneToggles};
use contigo_core::types::DevAddr;
use contigo_design::kernel::{KernelMap, MAX_RESULTS, Protocol, Scalar};

/// Control. `ap_ctrl_hs`: AP_DONE and AP_READY clear when read. `ap_ctrl_chain`: AP_DONE stays
/// until AP_CONTINUE is written.
pub(crate) const CTRL: Register<ReadClears> = Register::at(0x00);
/// Global interrupt enable, bit 0.
pub(crate) const GIE: Register<ReadWrite> = Register::at(0x04);
/// Interrupt enable: [`INT_DONE`], [`INT_READY`].
pub(crate) const IER: Register<ReadWrite> = Register::at(0x08);
/// Interrupt status: writing 1 toggles a bit; kernels that are built so clear it when it is read.
pub(crate) const ISR: Register<WriteOneToggles> = Register::at(0x0C);

/// CTRL: starts a job; reads 1 until the kernel has taken it, and its arguments may change.
pub(crate) const AP_START: u32 = 1 << 0;
/// CTRL: a job is done.
pub(crate) const AP_DONE: u32 = 1 << 1;
/// CTRL: no job is under way.
pub(crate) const AP_IDLE: u32 = 1 << 2;
/// CTRL of `ap_ctrl_chain`: the end of a job was seen, and the next one may end. Clears itself.
pub(crate) const AP_CONTINUE: u32 = 1 << 4;

/// IER, ISR: a job is done.
pub(crate) const INT_DONE: u32 = 1 << 0;
/// IER, ISR: a job was taken.
pub(crate) const INT_READY: u32 = 1 << 1;

/// CTRL: the bits that show whether the kernel touches memory; if not, only [`AP_IDLE`] is set.
/// AP_START tells that from all ones, which a device that is gone returns.
pub(crate) const IDLE_MASK: u32 = AP_IDLE | AP_START;

/// Returns whether a value of CTRL shows that the kernel touches nothing.
#[must_use]
pub(crate) const fn is_idle(ctrl: u32) -> bool {
    ctrl & IDLE_MASK == AP_IDLE
}

/// Returns whether a value of CTRL shows a job done. Not for all ones, as a lost device reads.
#[must_use]
pub(crate) const fn is_done(ctrl: u32) -> bool {
    ctrl & AP_DONE != 0 && ctrl != u32::MAX
}

/// The kernel's results as they are now.
pub(super) fn results<D: Device>(device: &D, map: &KernelMap) -> [u32; MAX_RESULTS] {
    let mut words = [0; MAX_RESULTS];
    let registers = map.results().iter().flat_map(Scalar::registers);
    for (word, register) in words.iter_mut().zip(registers) {
        *word = register.read(device);
    }
    words
}

/// After an end was seen: AP_CONTINUE and the interrupt. The read after AP_CONTINUE is answered
/// once that has arrived, so that this job's AP_DONE is not taken for the next job's.
pub(super) fn release<D: Device>(device: &D, map: &KernelMap) {
    let chain = map.protocol == Protocol::Chain;
    if chain {
        // SAFETY: AP_CONTINUE starts nothing: it lets a job end that was submitted.
        unsafe { CTRL.write(device, AP_CONTINUE) };
    }
    if map.interrupt {
        acknowledge(device);
    } else if chain {
        let _ = ISR.read(device);
    }
}

/// Acknowledges a raised interrupt; false if there is none. Reading ISR clears it in some kernels,
/// and writing toggles it in the others, so only what is still set is written.
pub(super) fn acknowledge<D: Device>(device: &D) -> bool {
    if ISR.read(device) == 0 {
        return false;
    }
    let raised = ISR.read(device);
    if raised != 0 {
        // SAFETY: ISR moves no data.
        unsafe { ISR.write(device, raised) };
    }
    true
}

/// Writes a job's registers, and starts it.
///
/// # Safety
/// As [`Driver::submit`](contigo_core::Driver::submit); and the kernel has taken the job before.
#[inline]
pub(super) unsafe fn start<D: Device>(
    device: &D,
    map: &KernelMap,
    addrs: impl Iterator<Item = DevAddr>,
    words: &[u32],
) {
    // SAFETY: the caller handed the operands over, and `check` compared them with the map's rules;
    // by 2 of `ApCtrl::open` the job that AP_START starts stays inside them.
    unsafe {
        for (pointer, addr) in map.pointers().iter().zip(addrs) {
            if pointer.bits == u64::BITS {
                Pointer::at(pointer.offset as usize).write(device, addr);
            } else {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "`addr_bits` is 32 then, and the caller compared"
                )]
                Register::<ReadWrite>::at(pointer.offset as usize).write(device, addr.0 as u32);
            }
        }
        let registers = map.scalars().iter().flat_map(Scalar::registers);
        for (register, word) in registers.zip(words) {
            register.write(device, *word);
        }
        CTRL.write(device, AP_START);
    }
}
