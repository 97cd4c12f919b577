#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! `edu`, QEMU's educational PCI device (1234:11e8), as a copy engine: two operands, `from` (to the
//! device) and `to` (from the device).
//!
//! It has one internal buffer, and moves at most 4,095 bytes between memory and that buffer, so
//! that a copy is two transfers. Each begins **100 ms after** its doorbell, which leaves time to do
//! things to it that must do no harm.
//!
//! | missing in edu | consequence |
//! |---|---|
//! | an abort | `stop` waits for the end of the transfer under way, at most 100 ms; registers that are written before are ignored |
//! | registers that take an address in two halves | the upper half is ignored, and a write of the lower half clears it: addresses of 32 bits, at most |
//! | a register that tells its `dma_mask` | `ADDR_BITS` is the program's word; edu cuts larger addresses without a word, so they are refused before the doorbell |
//! | an error bit | a transfer that the bus refuses ends like any other: see [`FaultWatch`] |
//!
//! Sources: QEMU 10.0 `docs/specs/edu.rst` and `hw/misc/edu.c`.

mod fault_log;
pub mod regs;

pub use self::fault_log::{FaultLog, FaultWatch, IommuFault, Unwatched};

use contigo::hw::poll_until;
use contigo::hw::wait::poll_every;
use contigo::job::{StopProgram, StopStep, exactly};
use contigo::mem::DevSlice;
use contigo::types::timeout_us;
use contigo::{Completion, Device, Driver, Error, OperandSpec, Result};
use std::time::Duration;

/// How long `stop` waits: the 100 ms of one transfer, and as much again for an emulator on a busy
/// machine, twice.
const STOP_US: u32 = 400_000;
/// Between two looks while it waits.
const STOP_STEP_US: u32 = 1_000;
/// How long the kernel's report of a refused access may come after the end of the transfer. A
/// thread that the IOMMU's interrupt wakes prints it (`arm_smmu_evtq_thread`), within a millisecond
/// or two under QEMU.
const REPORT_US: u32 = 50_000;

/// Which transfer of a copy is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    Idle,
    /// Memory to edu's buffer; then the buffer to `to`.
    In {
        to: DevSlice,
    },
    /// Edu's buffer to memory.
    Out,
}

/// The driver of one edu whose mask has `ADDR_BITS` bits: 28 where QEMU was told nothing (`-device
/// edu`), up to 32.
#[derive(Debug)]
pub struct Edu<D, const ADDR_BITS: u32, W = Unwatched> {
    device: D,
    watch: W,
    leg: Leg,
}

impl<D: Device, const ADDR_BITS: u32> Edu<D, ADDR_BITS> {
    /// The driver of `device`. A transfer that the bus refuses is not noticed.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`]; [`Error::WrongDevice`] where its identification differs from
    /// edu's.
    ///
    /// # Safety
    /// The window is an edu's whose mask has at least `ADDR_BITS` bits, and no other code drives it
    /// while this value lives.
    pub unsafe fn open(device: D) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::watched(device, Unwatched) }
    }
}

impl<D: Device, const ADDR_BITS: u32, W: FaultWatch> Edu<D, ADDR_BITS, W> {
    /// As [`open`](Edu::open), with a source that reports refused accesses.
    ///
    /// # Errors
    /// As [`open`](Edu::open).
    ///
    /// # Safety
    /// As [`open`](Edu::open).
    pub unsafe fn watched(device: D, watch: W) -> Result<Self> {
        const {
            assert!(
                1 <= ADDR_BITS && ADDR_BITS <= 32,
                "edu's registers keep what one access of 32 bits brings"
            )
        };
        if device.len_bytes() < regs::WINDOW_BYTES {
            return Err(Error::RegisterWindow {
                device: "edu",
                need_bytes: regs::WINDOW_BYTES,
                have_bytes: device.len_bytes(),
            });
        }
        let id = regs::ID.read(&device);
        if id & regs::ID_MASK != regs::ID_VALUE {
            let expected = regs::ID_VALUE | id & !regs::ID_MASK;
            return Err(Error::WrongDevice {
                device: "edu",
                register: "identification",
                expected,
                found: id,
            });
        }
        Ok(Self { device, watch, leg: Leg::Idle })
    }

    /// Starts the transfer of `count` bytes from `source` to `target`; one of them is edu's buffer.
    ///
    /// # Safety
    /// The other one is memory that was handed over, of that many bytes.
    unsafe fn transfer(&self, source: u32, target: u32, count: u32, direction: u32) {
        // SAFETY: the first three start nothing; the last one's transfer stays inside what the
        // caller handed over, and inside edu's buffer (`check`).
        unsafe {
            regs::SOURCE.write(&self.device, source);
            regs::TARGET.write(&self.device, target);
            regs::COUNT.write(&self.device, count);
            regs::COMMAND.write(&self.device, regs::RUN | regs::INTERRUPT | direction);
        }
    }

    /// Takes back a raised interrupt.
    fn acknowledge(&self) {
        let raised = regs::RAISED.read(&self.device);
        if raised != 0 && raised != u32::MAX {
            // SAFETY: it moves no data.
            unsafe { regs::ACKNOWLEDGE.write(&self.device, raised) };
        }
    }

    /// The result of the accesses of the transfer that ended.
    fn verdict(&mut self) -> Result<()> {
        match self.watch.seen(REPORT_US)? {
            None => Ok(()),
            Some(fault) => {
                let what = if fault.write {
                    "a write that the IOMMU refused"
                } else {
                    "a read that the IOMMU refused"
                };
                Err(Error::Fault { device: "edu", status: fault.event, what })
            }
        }
    }
}

/// All ones is what a device that is gone answers: its bit RUN is set.
fn is_idle(device: &impl Device) -> bool {
    regs::COMMAND.read(device) & regs::RUN == 0
}

/// The low word, which is all of it: `ADDR_BITS` is 32 at most, and `check` bounds the lengths.
#[allow(clippy::cast_possible_truncation, reason = "see above")]
const fn low(value: u64) -> u32 {
    value as u32
}

// SAFETY: hw/misc/edu.c: 1. a transfer moves the count's bytes between its buffer and the address,
// reading `from` and writing `to`. They lie inside the operands by `check`. The mask of `ADDR_BITS`
// bits cuts nothing off: the engine refused such addresses.
// 2. RUN clears after the last byte was moved, and `poll` starts the second transfer before it says
//    anything; without RUN nothing is moved. 3. No bytes are told. 4. `check` reads no register. 5.
//    The port is the device's. 6. The device is owned. 7. The program only waits for RUN to clear.
unsafe impl<D: Device, const ADDR_BITS: u32, W: FaultWatch> Driver for Edu<D, ADDR_BITS, W> {
    fn name(&self) -> &'static str {
        "edu"
    }

    fn addr_bits(&self) -> u32 {
        ADDR_BITS
    }

    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }

    contigo::forward!(|this| this.device => port, simulated);

    fn check(&self, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        let (need_bytes, max) = (from.len_bytes as u64, u64::from(regs::TRANSFER_BYTES));
        if need_bytes > max {
            return Err(Error::Argument {
                name: "the length of a copy",
                value: need_bytes,
                min: 1,
                max,
                multiple_of: 1,
            });
        }
        if to.len_bytes < from.len_bytes {
            return Err(Error::BufferSize { index: 1, need_bytes, have_bytes: to.len_bytes });
        }
        Ok(())
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        self.watch.forget()?;
        let count = low(from.len_bytes as u64);
        self.leg = Leg::In { to: DevSlice { len_bytes: from.len_bytes, ..*to } };
        // SAFETY: the caller handed `from` over, and it has that many bytes.
        unsafe { self.transfer(low(from.addr.0), regs::BUFFER, count, regs::TO_EDU) };
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let limit_us = u64::from(timeout_us(timeout)?);
        let deadline_us = self.device.now_us().saturating_add(limit_us);
        // Two transfers, so at most two rounds.
        for _ in 0..2 {
            let left_us = deadline_us.saturating_sub(self.device.now_us());
            if !poll_until(&self.device, Duration::from_micros(left_us.min(limit_us)), is_idle)? {
                return Ok(None);
            }
            self.acknowledge();
            match self.leg {
                Leg::Idle => return Ok(None),
                Leg::In { to } => {
                    self.verdict()?;
                    self.leg = Leg::Out;
                    // SAFETY: `submit`'s caller handed `to` over, and `check` found it long enough
                    // for what `submit` put here.
                    unsafe {
                        self.transfer(
                            regs::BUFFER,
                            low(to.addr.0),
                            low(to.len_bytes as u64),
                            regs::FROM_EDU,
                        )
                    };
                }
                Leg::Out => {
                    self.leg = Leg::Idle;
                    self.verdict()?;
                    return Ok(Some(Completion::of(0)));
                }
            }
        }
        Ok(None)
    }

    fn stop(&mut self) -> Result<()> {
        self.leg = Leg::Idle;
        // An interrupt's file that fails only ends the waiting: what counts is RUN.
        let _ =
            poll_every(&self.device, STOP_STEP_US, Duration::from_micros(STOP_US.into()), is_idle);
        if !is_idle(&self.device) {
            let status = regs::COMMAND.read(&self.device);
            return Err(Error::WillNotStop { device: "edu", status, waited_us: STOP_US });
        }
        self.acknowledge();
        Ok(())
    }

    /// edu has no abort: waits for the end of the transfer under way. All ones, of a device that is
    /// gone, have RUN set.
    fn stop_program(&self) -> StopProgram {
        StopProgram::new(&[StopStep::poll_while(
            regs::COMMAND.offset(),
            regs::RUN,
            regs::RUN,
            STOP_US,
        )])
        .unwrap_or_default()
    }
}
