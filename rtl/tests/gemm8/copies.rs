#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver, unchanged, through the suite for drivers. Its jobs are copies: A times the unit
//! matrix, with no bias and no shift. Unit matrix and bias are the driver's own memory.

use super::suite;
use contigo::mem::{DevSlice, DriverBuf};
use contigo::sim::SimWindow;
use contigo::{Completion, CpuBuf, Driver, Error, OperandSpec, Result};
use contigo_exerciser::Limits;
use contigo_gemm8::Gemm8;
use contigo_rtl::axi::{Breach, Finding, LiteConfig, SlaveConfig};
use contigo_rtl::{RtlConfig, RtlModel};
use contigo_testkit::rounds;
use contigo_testkit::suite::{Kind, Subject};
use std::time::Duration;

/// Two of each kind of fault, for each way to memory; one on a developer's machine.
fn seeds() -> u64 {
    rounds(16).max(8)
}

/// Rows and columns of the unit matrix, which is also the bytes of a row.
const SIDE: usize = 16;
const UNIT_BYTES: usize = SIDE * SIDE;
const BIAS_BYTES: usize = 4 * SIDE;

/// A gemm8 that copies.
struct Copier<D> {
    gemm8: Gemm8<D>,
    /// The unit matrix, then the bias.
    own: DriverBuf,
}

impl<D: contigo::Device> Copier<D> {
    fn four(&self, operands: &[DevSlice]) -> [DevSlice; 4] {
        let own = |at: usize, len_bytes| DevSlice {
            addr: self.own.addr_at(at),
            len_bytes,
            offset_bytes: at,
        };
        [operands[0], own(0, UNIT_BYTES), own(UNIT_BYTES, BIAS_BYTES), operands[1]]
    }
}

// SAFETY: it is the driver of gemm8 for the operands that it was given, with two of its own that
// the device only reads and that are never freed.
unsafe impl<D: contigo::Device> Driver for Copier<D> {
    contigo::forward!(|this| this.gemm8 => name, port, simulated, addr_bits, arm_irq);

    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.gemm8.check(&self.four(operands), words)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let four = self.four(operands);
        // SAFETY: the caller's promise, and the driver's own two, which no other code has.
        unsafe { self.gemm8.submit(slot, &four, words) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        // gemm8 counts bytes of C, and a copy has as many as it was told to copy.
        Ok(self.gemm8.poll(timeout)?.map(|end| Completion { bytes: None, ..end }))
    }

    fn stop(&mut self) -> Result<()> {
        self.gemm8.stop()
    }
}

/// gemm8's RTL in this memory.
struct Copies(&'static str, SlaveConfig);

impl Subject for Copies {
    type Model = RtlModel;

    fn name(&self) -> &'static str {
        self.0
    }
    fn kind(&self) -> Kind {
        Kind::Copy
    }
    fn model(&self) -> RtlModel {
        // An answer that is lost keeps the core busy for as long as a stop waits, 10 ms. So its
        // clock is slow: 25 MHz.
        let lite = LiteConfig { stalls: 100, ..LiteConfig::default() };
        RtlModel::new(
            "gemm8",
            RtlConfig { memory: self.1.clone(), lite, cycle_ns: 40, ..RtlConfig::default() },
        )
        .unwrap()
    }
    fn findings(&self, model: &RtlModel) -> Vec<String> {
        // A core that waits for an answer that was lost, which is a fault, takes no other one.
        let explained = |found: &Finding| matches!(found.breach, Breach::AnswerNotTaken { .. });
        let explained: Vec<_> = model
            .findings()
            .iter()
            .filter(|found| explained(found))
            .map(ToString::to_string)
            .collect();
        model.broken_rules().filter(|rule| !explained.contains(rule)).collect()
    }
    fn memory_bytes(&self) -> usize {
        UNIT_BYTES + BIAS_BYTES
    }
    fn limits(&self) -> Limits {
        Limits { offset_align_bytes: 64, len_align_bytes: SIDE, len_max_bytes: usize::MAX }
    }
    fn may_fail(&self, error: &Error) -> bool {
        matches!(error, Error::Fault { what, .. } if what.starts_with("a bus error while"))
    }
    fn words(&self, len_bytes: usize) -> Vec<u32> {
        let side = u32::try_from(SIDE).unwrap();
        vec![u32::try_from(len_bytes / SIDE).unwrap(), side, side, 0]
    }
    fn open<R>(
        &self,
        window: SimWindow<RtlModel>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        // SAFETY: the window is a gemm8's, and the only one.
        let gemm8 = unsafe { Gemm8::open(window)? };
        let mut own = DriverBuf::new(memory.unwrap(), gemm8.port(), gemm8.addr_bits())?;
        let mut bytes = [0; UNIT_BYTES + BIAS_BYTES];
        (0..SIDE).for_each(|n| bytes[n * SIDE + n] = 1);
        let words: Vec<_> =
            bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // SAFETY: no device knows the address yet.
        unsafe { own.write(0, &words)? };
        let mut copier = Copier { gemm8, own };
        let result = act(&mut copier);
        // SAFETY: `faults` has stopped the driver.
        drop(unsafe { copier.own.release() }.into_cpu());
        Ok(result)
    }
}

#[test]
fn in_calm_memory() {
    suite::run("gemm8", &Copies("gemm8's RTL in calm memory", SlaveConfig::CALM), seeds());
}

#[test]
fn in_hostile_memory() {
    suite::run("gemm8", &Copies("gemm8's RTL in hostile memory", SlaveConfig::HOSTILE), seeds());
}
