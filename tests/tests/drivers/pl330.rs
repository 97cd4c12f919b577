//! The driver of Arm's DMA-330 on the simulated board: copies at any address and length, every
//! error provoked, and what is left after each. The model fetches its programs through the bus, so
//! that one which was not synchronised is not the one that runs.
#![allow(unsafe_code, reason = "programs of one's own, and windows that are bent")]

mod channel_faults;
mod channels;
mod ends;
mod named;
mod programs;
mod refused;

use crate::prelude::*;
use crate::regs::pl330 as regs;
use contigo::drivers::pl330::{Controller, PROGRAM_BYTES, Pl330, Pl330Config};
use contigo::sim::pl330::{Pl330Model, Pl330Spec};
use fastrand::Rng;

const WAIT: Duration = Duration::from_millis(50);
const SLOT: usize = 8192;

// ---- Programs of one's own, and what goes wrong in them.

const END: u8 = 0x00;
const LOAD: u8 = 0x04;
const STORE: u8 = 0x08;
/// DMAWFE of event 9, which no program raises.
const WAIT_FOR_EVER: [u8; 2] = [0x36, 9 << 3];
/// CCR: one byte from and to addresses that count up.
const BYTE: u32 = 1 | 1 << 14;

/// The driver of a model, whatever a test bends in what its window says.
fn open<D: Device>(device: D, program: CpuBuf) -> Result<Pl330<D>, Refused<CpuBuf>> {
    open_with(device, program, Pl330Config::default())
}

/// The same, by a channel and an event.
fn open_with<D: Device>(
    device: D,
    program: CpuBuf,
    config: Pl330Config,
) -> Result<Pl330<D>, Refused<CpuBuf>> {
    // SAFETY: every window of these files is, or wraps, the one of a simulated PL330.
    unsafe { Pl330::open_with(device, program, config) }
}

/// A board with memory for programs, which come first, and for data.
struct Ground {
    board: SimBoard,
    region: Region,
    programs: Pool,
    data: Pool,
}

fn ground(seed: u64, faults: Faults) -> Ground {
    let board = SimBoard::with(seed, faults);
    let region = region(&board, 1 << 20);
    let programs = region.pool(8, PROGRAM_BYTES).unwrap();
    let data = region.pool(32, SLOT).unwrap();
    Ground { board, region, programs, data }
}

impl Ground {
    fn device(&self, spec: Pl330Spec) -> SimDevice<Pl330Model> {
        SimDevice::with_model(&self.board, self.board.port(), Pl330Model::new(spec))
    }

    fn program(&self) -> CpuBuf {
        self.programs.take().unwrap()
    }

    /// The driver of a device, with its queue.
    fn queue<D: Device>(&self, device: D) -> Queue<Pl330<D>> {
        Queue::new(open(device, self.program()).unwrap(), 1).unwrap()
    }

    /// Everything is given back, and nothing else was touched.
    #[track_caller]
    fn is_clean(&self) {
        assert_eq!((self.programs.taken(), self.data.taken()), (0, 0));
        clean(&self.board);
    }

    /// A random copy into a slot of random bytes. Short ones are as frequent as long ones, and
    /// equal offsets as different ones.
    fn random_copy(&self, rng: &mut Rng, longest: usize) -> ([Operand; 2], Expected) {
        let len = match rng.u8(..3) {
            0 => rng.usize(1..=32),
            1 => rng.usize(1..=300),
            _ => rng.usize(1..=longest),
        };
        let (at, to_at) = (rng.usize(..=SLOT - len), rng.usize(..=SLOT - len));
        let to_at = if rng.bool() { (to_at & !127 | at & 127).min(SLOT - len) } else { to_at };
        let [(from, bytes), (to, mut expected)] = [(); 2].map(|()| {
            let (mut buf, mut bytes) = (self.data.take().unwrap(), vec![0; SLOT]);
            rng.fill(&mut bytes);
            buf.copy_from_slice(&bytes).unwrap();
            (buf, bytes)
        });
        expected[to_at..to_at + len].copy_from_slice(&bytes[at..at + len]);
        let operands = [from.to_device(at..at + len), to.from_device(to_at..to_at + len)];
        let what = format!("{len} bytes from {at} to {to_at}");
        (operands, Expected { slots: [bytes, expected], what })
    }

    /// `count` random copies, one after the other.
    fn copies<D: Driver>(&self, queue: &mut Queue<D>, rng: &mut Rng, count: u64, longest: usize) {
        for _ in 0..count {
            let (operands, expected) = self.random_copy(rng, longest);
            expected.arrived(queue.run(operands, &[], WAIT).unwrap());
        }
    }

    /// A few, as a check that all is well.
    fn works<D: Driver>(&self, queue: &mut Queue<D>) {
        self.copies(queue, &mut Rng::with_seed(1), 2, 2000);
    }

    /// A copy under way.
    fn starts<D: Driver>(&self, queue: &mut Queue<D>) {
        queue.give(copies(&self.data, ..900, ..900));
    }
}

/// All bytes of both slots after a copy.
struct Expected {
    slots: [Vec<u8>; 2],
    what: String,
}

impl Expected {
    #[track_caller]
    fn arrived(&self, done: Done<[CpuBuf; 2]>) {
        for (buf, bytes) in done.buffers.iter().zip(&self.slots) {
            assert!(buf.view::<u8>().unwrap() == bytes, "{}", self.what);
        }
    }
}

#[test]
fn every_kind_of_controller_copies() {
    let zynq = Pl330Spec::default();
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: 1 << 5, ..zynq };
    for (seed, (spec, channel, event)) in [
        (Pl330Spec { bus_bytes: 4, buffer_words: 1, ..zynq }, 0, 0),
        (Pl330Spec { bus_bytes: 4, buffer_words: 31, revision: 0, ..zynq }, 7, 15),
        (Pl330Spec { bus_bytes: 16, buffer_words: 1024, ..zynq }, 1, 2),
        (Pl330Spec { channels: 1, events: 1, revision: 0, ..zynq }, 0, 0),
        (Pl330Spec { events: 32, ..zynq }, 0, 31),
        (nonsecure, 3, 5),
        (Pl330Spec { nonsecure_events: u32::MAX, ..nonsecure }, 0, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let (ground, config) = (ground(seed as u64, Faults::NONE), Pl330Config { channel, event });
        let window = ground.device(spec).window().unwrap();
        let driver = open_with(window, ground.program(), config).unwrap();
        let mut queue = Queue::new(driver, 1).unwrap();
        ground.copies(&mut queue, &mut Rng::with_seed(9), 200, 3000);
        drop(queue);
        ground.is_clean();
    }
}
