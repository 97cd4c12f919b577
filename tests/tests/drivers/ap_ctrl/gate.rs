//! The gate's registers, and what it lets its driver do, without a core behind it.

use super::*;
use crate::regs::axi_gate as regs;
use contigo::drivers::axi_gate::{AxiGate, Gated, Owed};
use contigo::job::StopProgram;

const HELD: Error = Error::WillNotStop { device: "axi_gate", status: 0, waited_us: 10_000 };

/// Registers that answer as a test says, and a clock.
#[derive(Debug)]
struct Fake {
    words: [Cell<u32>; 16],
    now_us: Cell<u64>,
}

// SAFETY: there is no device.
unsafe impl Mmio for &Fake {
    fn len_bytes(&self) -> usize {
        64
    }
    fn read32(&self, offset: usize) -> u32 {
        self.words[offset / 4].get()
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        self.words[offset / 4].set(value);
    }
}

impl Wait for &Fake {
    fn now_us(&self) -> u64 {
        self.now_us.replace(self.now_us.get() + 1)
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        self.now_us.set(self.now_us.get() + u64::from(timeout_us));
        Ok(())
    }
}

fn fake(words: &[(usize, u32)]) -> Fake {
    let fake = Fake { words: Default::default(), now_us: Cell::new(0) };
    for (offset, value) in [(0x00, 0x4741_5445), (0x04, 0x1_0000)].iter().chain(words) {
        fake.words[offset / 4].set(*value);
    }
    fake
}

fn gate(fake: &Fake) -> Result<AxiGate<&Fake>, Error> {
    // SAFETY: no other code has the fake.
    unsafe { AxiGate::open(fake) }
}

fn told(words: &[(usize, u32)]) -> Option<Error> {
    gate(&fake(words)).unwrap().error()
}

/// A driver that counts how often its core is touched.
struct Touched<'c>(&'c Cell<u32>, Port);

impl Touched<'_> {
    fn touch(&self) {
        self.0.set(self.0.get() + 1);
    }
}

// SAFETY: there is no device.
unsafe impl Driver for Touched<'_> {
    fn name(&self) -> &'static str {
        "touched"
    }
    fn port(&self) -> &Port {
        &self.1
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        &[]
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        self.touch();
        Ok(())
    }
    /// Twice, so that it is no `submit`.
    unsafe fn submit_more(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        self.touch();
        self.touch();
        Ok(())
    }
    fn doorbell(&mut self) -> Result<(), Error> {
        self.touch();
        Ok(())
    }
    fn poll(&mut self, _: Duration) -> Result<Option<Completion>, Error> {
        self.touch();
        Ok(Some(Completion::of(0)))
    }
    fn stop(&mut self) -> Result<(), Error> {
        self.touch();
        Ok(())
    }
}

impl Drop for Touched<'_> {
    fn drop(&mut self) {
        self.touch();
    }
}

/// Its core is in a reset, where an access hangs, or believes that it has stopped.
#[test]
fn open_gate_keeps_the_driver_from_its_core() {
    let (touched, owes) = (Cell::new(0), fake(&[(0x10, 0)]));
    let port = SimBoard::new(1).port();
    // SAFETY: there is no core.
    let mut gated = unsafe { Gated::new(Touched(&touched, port), gate(&owes).unwrap()) };
    assert_eq!(gated.stop(), Err(HELD));
    assert_eq!(gated.poll(Duration::ZERO), Err(HELD));
    // SAFETY: as above.
    assert_eq!(unsafe { gated.submit(0, &[], &[]) }, Err(HELD));
    // SAFETY: as above.
    assert_eq!(unsafe { gated.submit_more(0, &[], &[]) }, Err(HELD));
    assert_eq!(gated.doorbell(), Err(HELD));
    assert_eq!(gated.stop_program(), StopProgram::default(), "the core's own would be believed");
    drop(gated);
    assert_eq!(touched.get(), 0, "it is leaked");
    // A program that died left it so: the next one opens no driver before memory has answered.
    owes.words[4].set(regs::IN_RESET);
    cases! { gate(&owes) => Err(Error::WillNotStop { .. }) }
    owes.words[4].set(regs::IDLE | regs::STOPPED | regs::IN_RESET);
    assert!(matches!(gate(&owes), Err(Error::WillNotStop { .. })), "the fake ends no reset");
    assert_eq!(owes.words[3].get(), regs::STOP, "it was asked to");
}

#[test]
fn burst_passes_the_gate_with_one_doorbell() {
    let (touched, idle) = (Cell::new(0), fake(&[(0x10, regs::IDLE)]));
    let port = SimBoard::new(1).port();
    // SAFETY: there is no core.
    let mut gated = unsafe { Gated::new(Touched(&touched, port), gate(&idle).unwrap()) };
    // SAFETY: as above.
    assert_eq!((unsafe { gated.submit_more(0, &[], &[]) }, touched.get()), (Ok(()), 2));
    assert_eq!((gated.doorbell(), touched.get()), (Ok(()), 3));
}

/// A core that looks at no answer says that it is done while its last write is under way.
#[test]
fn the_end_of_a_lone_job_waits_for_memory() {
    let (touched, owes) = (Cell::new(0), fake(&[(0x10, 0)]));
    // SAFETY: there is no core.
    let mut gated =
        unsafe { Gated::new(Touched(&touched, SimBoard::new(1).port()), gate(&owes).unwrap()) };
    let told = gated.poll(Duration::ZERO);
    cases! { told => Err(Error::Fault { what, .. }) if what.contains("still owes") }
    owes.words[4].set(regs::IDLE | regs::FAILED);
    cases! { gated.poll(Duration::ZERO) => Err(Error::FaultAt { .. }) }
    owes.words[4].set(regs::IDLE);
    assert_eq!(gated.poll(Duration::ZERO), Ok(Some(Completion::of(0))));
}

#[test]
fn the_gate_says_what_is_wrong() {
    let refused = |words: &[(usize, u32)]| gate(&fake(words)).map(drop);
    let wrong = |register, expected, found| {
        Err(Error::WrongDevice { device: "axi_gate", register, expected, found })
    };
    assert_eq!(refused(&[(0, 7)]), wrong("ID", 0x4741_5445, 7));
    assert_eq!(refused(&[(4, 0x2_0000)]), wrong("VERSION", 0x1_0000, 0x2_0000));

    let owes = fake(&[(0x10, 0), (0x14, 0x0100_0302)]);
    let shut = gate(&owes).unwrap();
    assert_eq!(shut.owed(), Owed { reads: 2, writes: 3, beats: 256 });
    assert_eq!(shut.shut(), Err(HELD));
    assert_eq!(owes.words[3].get(), regs::STOP | regs::RESET, "it stays shut");

    assert_eq!(told(&[]), None);
    for (error, begin) in [
        (0xF, "DECERR for a burst of writes"),
        (0xD, "SLVERR for a burst of writes"),
        (7, "DECERR for a burst of reads"),
        (5, "SLVERR for a burst of reads"),
    ] {
        cases! {
            told(&[(0x10, regs::FAILED), (0x18, error), (0x1C, 0x1234_5678), (0x20, 9)])
                => Some(Error::FaultAt { addr: 0x9_1234_5678, what, .. })
                if what.starts_with(begin),
        }
    }
    for (status, part) in
        [(regs::MISFRAMED, "WLAST"), (regs::STRAY, "no burst"), (u32::MAX, "all ones")]
    {
        assert!(told(&[(0x10, status)]).unwrap().to_string().contains(part));
    }
}
