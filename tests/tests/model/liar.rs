#![allow(
    unsafe_code,
    reason = "implementing `Driver` is a promise, which these drivers break where a test asks for \
        it"
)]
//! A driver around another: it tells ends out of order where it is asked to, or breaks one rule.

use crate::suite::ap_ctrl::HS;
use crate::suite::axi_dma::{COPY_SG, SEND_DIRECT};
use contigo::job::StopProgram;
use contigo::mem::DevSlice;
use contigo::sim::SimWindow;
use contigo::{Completion, CpuBuf, Driver, Error, OperandSpec, Port, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject, faults};
use fastrand::Rng;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// Which rule of `Driver`'s is broken, now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// 1: the device receives other bytes than the driver was given.
    Elsewhere,
    /// 2: an end is reported while the device is at work.
    TooEarly,
    /// 2: `stop` stops nothing.
    StopLies,
    /// 3: the device wrote more than the end says.
    FewerBytes,
    /// 3: an end says more than was handed over.
    MoreBytes,
    /// 5: the port is said to snoop, and does not.
    WrongPort,
    /// 10: an end is reported twice.
    Twice,
    /// 10: an end is reported for the next slot.
    WrongSlot,
    /// 10: an end is not reported.
    Untold,
    /// 10: the second end is reported first.
    OutOfOrder,
    /// 11: a fault is reported before the ends that came before it.
    FaultFirst,
    /// 12: after `stop` a job that had not ended is reported as ended.
    AfterStop,
    /// 12: after `stop` a job that had ended is not reported.
    ForgetsAtStop,
    /// An end has other words than the core's.
    WrongWords,
    /// A poll of timeout 0 waits.
    WaitsAtOnce,
    /// It waits, and says that it never does.
    SaysNoWaits,
}

impl Lie {
    /// Those that each job shows. [`wrong_words_are_caught`] and [`wrong_waits_are_caught`] have
    /// the others.
    pub(crate) const ALL: [Self; 13] = [
        Self::Elsewhere,
        Self::TooEarly,
        Self::StopLies,
        Self::FewerBytes,
        Self::MoreBytes,
        Self::WrongPort,
        Self::Twice,
        Self::WrongSlot,
        Self::Untold,
        Self::OutOfOrder,
        Self::FaultFirst,
        Self::AfterStop,
        Self::ForgetsAtStop,
    ];
}

/// `inner`, in its order or out of it, with or without a lie.
pub(crate) struct Liar<D> {
    inner: D,
    port: Port,
    in_order: bool,
    lie: Lie,
    rng: Rng,
    /// The caller's slots in flight, by the order of their submission, as `inner` has it.
    slots: VecDeque<usize>,
    next_inner: usize,
    /// Ended, and not told.
    held: Vec<Completion>,
    stopped: bool,
}

impl<D: Driver> Liar<D> {
    pub(crate) fn new(inner: D, in_order: bool, lie: Lie, seed: u64) -> Self {
        let port =
            Port { coherent: inner.port().coherent || lie == Lie::WrongPort, ..*inner.port() };
        let (slots, held, rng) = (VecDeque::new(), Vec::new(), Rng::with_seed(seed));
        Self { inner, port, in_order, lie, rng, slots, next_inner: 0, held, stopped: false }
    }

    /// In every third case.
    fn lies(&mut self, lie: Lie) -> bool {
        self.lie == lie && self.rng.u8(..3) == 0
    }

    /// The next end of `inner`, with the caller's slot.
    fn ended(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let at_least =
            if self.lie == Lie::WaitsAtOnce { Duration::from_micros(5) } else { Duration::ZERO };
        let Some(ended) = self.inner.poll(timeout.max(at_least))? else { return Ok(None) };
        Ok(self.slots.pop_front().map(|slot| Completion { slot, ..ended }))
    }

    fn honest(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let in_turn = self.in_order && self.lie != Lie::OutOfOrder;
        if in_turn && self.held.is_empty() {
            return self.ended(timeout);
        }
        if in_turn {
            return Ok(Some(self.held.remove(0)));
        }
        // As many as have ended, and any one of them.
        let timeout = if self.held.is_empty() { timeout } else { Duration::ZERO };
        match self.ended(timeout) {
            Ok(Some(ended)) => {
                self.held.push(ended);
                while let Ok(Some(more)) = self.ended(Duration::ZERO) {
                    self.held.push(more);
                }
            }
            // The ends before the fault come first.
            Err(error) if self.held.is_empty() => return Err(error),
            _ => {}
        }
        let one = if self.held.is_empty() { None } else { Some(self.rng.usize(..self.held.len())) };
        Ok(one.map(|one| self.held.swap_remove(one)))
    }
}

// SAFETY: `inner`'s, where no lie is asked for; with one it is for the simulated board, whose
// devices reach no other memory, and whose counts show it.
unsafe impl<D: Driver> Driver for Liar<D> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn port(&self) -> &Port {
        &self.port
    }
    contigo::forward!(|this| this.inner => simulated);
    fn addr_bits(&self) -> u32 {
        self.inner.addr_bits()
    }
    fn operands(&self) -> &[OperandSpec] {
        self.inner.operands()
    }
    fn depth(&self) -> usize {
        self.inner.depth()
    }
    fn in_order(&self) -> bool {
        self.in_order
    }
    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        self.inner.check(operands, args)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        if self.stopped {
            self.slots.clear();
            self.held.clear();
            (self.next_inner, self.stopped) = (0, false);
        }
        let shift = if self.lies(Lie::Elsewhere) { 64 } else { 0 };
        let mut operands = operands.to_vec();
        operands.iter_mut().for_each(|operand| operand.addr.0 += shift);
        // SAFETY: the caller's promise. `inner`'s slots go in a circle; this one is free, because
        // no more than `depth` are in flight and they end in order.
        unsafe { self.inner.submit(self.next_inner, &operands, args)? };
        self.slots.push_back(slot);
        self.next_inner =
            if self.next_inner + 1 >= self.inner.depth() { 0 } else { self.next_inner + 1 };
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let early =
            !self.stopped && self.lies(Lie::TooEarly) || self.stopped && self.lies(Lie::AfterStop);
        if early && let Some(slot) = self.slots.pop_front() {
            return Ok(Some(Completion { bytes: Some(64), ..Completion::of(slot) }));
        }
        if self.stopped && self.lies(Lie::ForgetsAtStop) {
            let _ = self.ended(timeout)?;
        }
        if self.lie == Lie::FaultFirst && !self.stopped {
            // The ends are kept until the fault has been told.
            while let Some(ended) = self.ended(timeout)? {
                self.held.push(ended);
            }
        }
        let told = self.honest(timeout)?;
        let Some(mut told) = told else { return Ok(None) };
        if self.lies(Lie::Untold) {
            return Ok(None);
        }
        if self.lies(Lie::Twice) {
            self.held.insert(0, told);
        }
        if self.lies(Lie::WrongSlot) {
            told.slot = if told.slot + 1 >= self.inner.depth() { 0 } else { told.slot + 1 };
        }
        if self.lies(Lie::MoreBytes) {
            told.bytes = Some(1 << 20);
        }
        if self.lies(Lie::WrongWords) {
            told.words[0] ^= 1;
        }
        if self.lies(Lie::FewerBytes) {
            told.bytes = told.bytes.map(|bytes| bytes / 2);
        }
        Ok(Some(told))
    }

    fn stop(&mut self) -> Result<()> {
        let lies = self.lies(Lie::StopLies);
        if !lies {
            self.inner.stop()?;
        }
        self.stopped = true;
        Ok(())
    }
    fn stop_program(&self) -> StopProgram {
        self.inner.stop_program()
    }
    fn underruns(&self) -> Option<u64> {
        self.inner.underruns()
    }
}

/// A driver of the suite that lies. Its stream is not passed on.
struct Lying<'s, S>(&'s S, Lie);

impl<S: Subject> Subject for Lying<'_, S> {
    type Model = S::Model;

    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn kind(&self) -> Kind {
        self.0.kind()
    }
    fn model(&self) -> S::Model {
        self.0.model()
    }
    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
    fn limits(&self) -> Limits {
        self.0.limits()
    }
    fn tells_failures(&self) -> bool {
        self.0.tells_failures()
    }
    fn words(&self, len_bytes: usize) -> Vec<u32> {
        self.0.words(len_bytes)
    }
    fn words_expected(&self, bytes: &[u8]) -> Option<[u32; 4]> {
        self.0.words_expected(bytes)
    }
    fn never(&self) -> &'static [Sight] {
        self.0.never()
    }
    fn waits_most(&self) -> u64 {
        if self.1 == Lie::SaysNoWaits { 0 } else { self.0.waits_most() }
    }
    fn may_fail(&self, error: &Error) -> bool {
        self.0.may_fail(error)
    }
    fn open<R>(
        &self,
        window: SimWindow<S::Model>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        self.0.open(window, memory, |driver| act(&mut Liar::new(driver, true, self.1, 1)))
    }
}

/// What the suite says of a copying AXI DMA whose driver lies.
pub(crate) fn found_by_the_suite(lie: Lie, seeds: Range<u64>) -> String {
    match faults(&Lying(&COPY_SG, lie), seeds) {
        Ok(_) => panic!("{lie:?} was not caught by the suite"),
        Err(failure) => failure.to_string(),
    }
}

/// A result in a register is compared, with each end and without a fault.
#[test]
fn wrong_words_are_caught() {
    assert!(faults(&Lying(&HS, Lie::None), 0..0).is_ok());
    let found = faults(&Lying(&HS, Lie::WrongWords), 0..0).unwrap_err().to_string();
    assert!(found.contains("bytes ended with the words ["), "{found}");
}

/// A core that only reads, and nothing that shows what it read.
#[test]
fn a_reader_of_which_nothing_is_compared_is_refused() {
    let found = faults(&Lying(&SEND_DIRECT, Lie::None), 0..0).unwrap_err().to_string();
    assert!(found.contains("nothing of a Kind::Send is compared"), "{found}");
}

/// Without a seed, because the waits come first.
#[test]
fn wrong_waits_are_caught() {
    assert!(faults(&Lying(&COPY_SG, Lie::None), 0..0).is_ok());
    for lie in [Lie::WaitsAtOnce, Lie::SaysNoWaits] {
        let found = found_by_the_suite(lie, 0..0);
        assert!(found.contains("waits for 1 jobs, more than 0"), "{lie:?}: {found}");
    }
}
