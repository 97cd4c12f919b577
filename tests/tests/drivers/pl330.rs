//! The driver of Arm's DMA-330 on the simulated board: copies at any address and length, every
//! error provoked, and what is left after each. The model fetches its programs through the bus, so
//! that one which was not synchronised is not the one that runs.

mod channel_faults;
mod channels;
mod ends;
mod named;
mod programs;
mod refused;

use crate::regs::pl330 as regs;
use contigo::{
    Align, Completion, CpuBuf, DevAddr, Device, Driver, Error, JobError, Mmio, PhysAddr, Pool,
    Queue, Region, Result, Wait,
    drivers::pl330::{PROGRAM_BYTES, Pl330, Pl330Config},
    forward,
    mem::DevSlice,
    sim::{
        Faults, SimBoard, SimConfig, SimDevice,
        pl330::{Pl330Model, Pl330Spec},
    },
    types::{BaseAddr, Refused},
};
use fastrand::Rng;
use std::{cell::Cell, time::Duration};

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
    // SAFETY: every window of this file is, or wraps, the one of a simulated PL330.
    unsafe { Pl330::open_with(device, program, config) }
}

/// Memory for programs and for data, on one board.
struct Memory {
    region: Region,
}

impl Memory {
    fn on(board: &SimBoard) -> Self {
        Self { region: Region::new(board.memory(1 << 20).unwrap()).unwrap() }
    }

    fn programs(&self) -> Pool {
        self.region.pool(2, PROGRAM_BYTES).unwrap()
    }

    fn data(&self) -> Pool {
        self.region.pool(4, SLOT).unwrap()
    }

    fn base(&self) -> u32 {
        let BaseAddr::Phys(PhysAddr(base)) = self.region.base() else {
            panic!("the board's memory has physical addresses")
        };
        u32::try_from(base).unwrap()
    }
}

/// Random bytes, into a buffer and beside it.
fn scribble(rng: &mut Rng, buf: &mut CpuBuf) -> Vec<u8> {
    let mut bytes = vec![0; buf.len_bytes()];
    rng.fill(&mut bytes);
    buf.view_mut::<u8>().unwrap().copy_from_slice(&bytes);
    bytes
}

/// A random copy: where from, where to, how much. Short ones are as frequent as long ones, and
/// equal offsets as different ones.
fn copy(rng: &mut Rng, longest: usize) -> (usize, usize, usize) {
    let len = match rng.u8(..3) {
        0 => rng.usize(1..=32),
        1 => rng.usize(1..=300),
        _ => rng.usize(1..=longest),
    };
    let from = rng.usize(..=SLOT - len);
    let to = rng.usize(..=SLOT - len);
    let to = if rng.bool() { (to & !127 | from & 127).min(SLOT - len) } else { to };
    (from, to, len)
}

/// `count` random copies; every byte of the destination's slot is compared after each.
fn copies<D: Device>(
    queue: &mut Queue<Pl330<D>>,
    data: &Pool,
    rng: &mut Rng,
    count: usize,
    longest: usize,
) {
    let (mut source, mut target) = (data.take().unwrap(), data.take().unwrap());
    for job in 0..count {
        let bytes = scribble(rng, &mut source);
        let mut expected = scribble(rng, &mut target);
        let (from, to, len) = copy(rng, longest);
        [source, target] = queue
            .run([source.to_device(from..from + len), target.from_device(to..to + len)], &[], WAIT)
            .unwrap()
            .buffers;
        expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
        assert!(
            target.view::<u8>().unwrap() == expected,
            "job {job}: {len} bytes from {from} to {to}"
        );
        assert!(source.view::<u8>().unwrap() == bytes, "job {job}: the source changed");
    }
}

#[test]
fn every_kind_of_controller_copies() {
    let zynq = Pl330Spec::default();
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: 1 << 5, ..zynq };
    let specs = [
        (Pl330Spec { bus_bytes: 4, buffer_words: 1, ..zynq }, Pl330Config::default()),
        (
            Pl330Spec { bus_bytes: 4, buffer_words: 31, revision: 0, ..zynq },
            Pl330Config { channel: 7, event: 15 },
        ),
        (
            Pl330Spec { bus_bytes: 16, buffer_words: 1024, ..zynq },
            Pl330Config { channel: 1, event: 2 },
        ),
        (Pl330Spec { channels: 1, events: 1, revision: 0, ..zynq }, Pl330Config::default()),
        (Pl330Spec { events: 32, ..zynq }, Pl330Config { channel: 0, event: 31 }),
        (nonsecure, Pl330Config { channel: 3, event: 5 }),
        (Pl330Spec { nonsecure_events: u32::MAX, ..nonsecure }, Pl330Config::default()),
    ];
    for (seed, (spec, config)) in specs.into_iter().enumerate() {
        let board = SimBoard::new(seed as u64);
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimDevice::with_model(&board, board.port(), Pl330Model::new(spec));
        let driver = open_with(device.window().unwrap(), programs.take().unwrap(), config).unwrap();
        copies(&mut Queue::new(driver, 1).unwrap(), &data, &mut Rng::with_seed(9), 200, 3000);
        assert_eq!(
            (board.counts().stray_accesses, board.counts().unowned_accesses),
            (0, 0),
            "{spec:?}"
        );
    }
}

/// One copy of 100 bytes, as a check that all is well; the buffers come from the pool and go back
/// to it.
fn works<D: Device>(queue: &mut Queue<Pl330<D>>, data: &Pool) {
    let (mut from, to) = (data.take().unwrap(), data.take().unwrap());
    from.view_mut::<u8>().unwrap().fill(0x5A);
    let [_, to] =
        queue.run([from.to_device(3..103), to.from_device(10..110)], &[], WAIT).unwrap().buffers;
    assert_eq!(to.view_at::<u8>(10..110).unwrap(), [0x5A; 100]);
}

// ---- Devices that are not what they should be.

/// A device whose registers do not all say what the model says.
struct Bent<D, F> {
    inner: D,
    len_bytes: usize,
    bend: F,
}

impl<D: Device, F: Fn(usize, u32) -> u32> Bent<D, F> {
    fn new(inner: D, bend: F) -> Self {
        Self { inner, len_bytes: 0x1000, bend }
    }
}

// SAFETY: the registers belong to `inner`. A test that bends their answers about being finished
// gives no memory back.
unsafe impl<D: Device, F: Fn(usize, u32) -> u32> Mmio for Bent<D, F> {
    forward!(|this| this.inner => write32);
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }
    fn read32(&self, offset: usize) -> u32 {
        (self.bend)(offset, self.inner.read32(offset))
    }
}

impl<D: Device, F> Wait for Bent<D, F> {
    forward!(|this| this.inner => now_us, wait_at_most);
}

// SAFETY: `inner`'s.
unsafe impl<D: Device, F: Fn(usize, u32) -> u32> Device for Bent<D, F> {
    forward!(|this| this.inner => port, simulated);
}
