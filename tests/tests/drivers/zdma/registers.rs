//! The driver's writes and their order: a device that takes notes, and answers as the test tells
//! it.
#![allow(unsafe_code, reason = "a device of the test's own")]

use super::{LIMIT, alloc};
use crate::regs::zdma as regs;
use contigo::{
    CpuBuf, Device, Error, Mmio, Port, Queue, Region, Result, Wait, drivers::zdma::Zdma,
    sim::SimBoard,
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

/// The answers of a device's registers, and the writes to them.
struct Notes {
    writes: RefCell<Vec<(usize, u32)>>,
    answers: RefCell<Vec<(usize, u32)>>,
    /// The values of ISR, STATUS and TOTAL_BYTE once the doorbell has been rung.
    ending: Cell<(u32, u32, u32)>,
    /// The values of STATUS, read by read; the last answer stays.
    states: RefCell<VecDeque<u32>>,
    /// EN was cleared while STATUS said that the channel is at work.
    cleared_at_work: Cell<bool>,
    len_bytes: usize,
}

impl Notes {
    fn new() -> Rc<Self> {
        let answers = RefCell::new(vec![]);
        Rc::new(Self {
            writes: RefCell::default(),
            answers,
            ending: Cell::new((regs::INT_DONE, 0, 0)),
            states: RefCell::default(),
            cleared_at_work: Cell::new(false),
            len_bytes: 4096,
        })
    }

    /// The register at `offset` answers `value`.
    fn answer(&self, offset: usize, value: u32) {
        let mut answers = self.answers.borrow_mut();
        answers.retain(|(at, _)| *at != offset);
        answers.push((offset, value));
    }

    fn written(&self) -> Vec<(usize, u32)> {
        self.writes.take()
    }
}

struct Noted {
    notes: Rc<Notes>,
    port: Port,
    now_us: Cell<u64>,
}

// SAFETY: nothing happens to any memory: the registers are numbers.
unsafe impl Mmio for Noted {
    fn len_bytes(&self) -> usize {
        self.notes.len_bytes
    }
    fn read32(&self, offset: usize) -> u32 {
        let mut states = self.notes.states.borrow_mut();
        if let (true, Some(&state)) = (offset == regs::STATUS.offset(), states.front()) {
            if states.len() > 1 {
                states.pop_front();
            }
            return state;
        }
        let answers = self.notes.answers.borrow();
        answers.iter().find(|(at, _)| *at == offset).map_or(0, |(_, value)| *value)
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        self.notes.writes.borrow_mut().push((offset, value));
        if (offset, value) == (regs::CTRL2.offset(), 0)
            && self.notes.states.borrow().front() == Some(&regs::STATE_BUSY)
        {
            self.notes.cleared_at_work.set(true);
        }
        if offset == regs::DATA_ATTR.offset() {
            self.notes.answer(offset, value);
        }
        if (offset, value) == (regs::CTRL2.offset(), regs::ENABLE) {
            let (isr, status, bytes) = self.notes.ending.get();
            self.notes.answer(regs::ISR.offset(), isr);
            self.notes.answer(regs::STATUS.offset(), status);
            self.notes.answer(regs::TOTAL_BYTE.offset(), bytes);
        }
    }
}

impl Wait for Noted {
    fn now_us(&self) -> u64 {
        self.now_us.get()
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.now_us.set(self.now_us.get() + u64::from(timeout_us.min(1000)));
        Ok(())
    }
}

// SAFETY: it puts no address on any bus.
unsafe impl Device for Noted {
    fn port(&self) -> &Port {
        &self.port
    }
}

fn noted(notes: &Rc<Notes>, port: Port) -> Noted {
    Noted { notes: Rc::clone(notes), port, now_us: Cell::new(0) }
}

/// The driver of a device that takes notes.
fn simple<D: Device>(device: D) -> Result<Zdma<D>> {
    // SAFETY: the devices of this file touch no memory, whatever is written to them.
    unsafe { Zdma::simple(device) }
}

fn addr_of(region: &Region, board: &SimBoard, buf: &CpuBuf) -> u32 {
    let addr = region.dev_addr_of(&board.port(), buf.view::<u8>().unwrap().as_ptr(), 1).unwrap();
    u32::try_from(addr.0).unwrap()
}

#[test]
fn opening_writes_nothing() {
    let board = SimBoard::new(1);
    for (port, data, descriptors) in
        [(board.port(), 0x0483_D20F, 0), (board.coherent_port(), 0x07C3_DF0F, 0x1F0)]
    {
        let notes = Notes::new();
        let zdma = simple(noted(&notes, port)).unwrap();
        assert_eq!(notes.written(), []);
        let queue = Queue::new(zdma, 1).unwrap();
        let masked_stopped_acknowledged = [(0x10C, 0xFFF), (0x200, 0), (0x100, 0xFFF)];
        let configured =
            [(0x114, 0x3FF), (0x118, 0), (0x120, data), (0x124, descriptors), (0x108, 0x7C0)];
        assert_eq!(notes.written(), [&masked_stopped_acknowledged[..], &configured].concat());
        drop(queue);
        assert_eq!(
            notes.written(),
            masked_stopped_acknowledged,
            "dropping it leaves its interrupts masked"
        );
    }
}

#[test]
fn a_transfer_in_registers() {
    let board = SimBoard::new(1);
    for (port, coherent) in [(board.port(), 0), (board.coherent_port(), 1)] {
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let notes = Notes::new();
        let mut queue = Queue::new(simple(noted(&notes, port)).unwrap(), 1).unwrap();
        let (from, to) = (alloc!(region)(256), alloc!(region)(256));
        notes.written();
        notes.answer(0x188, 77);
        notes.ending.set((regs::INT_DONE, 0, 100));
        let base = addr_of(&region, &board, &from);
        let [_, _] =
            queue.run([from.to_device(3..103), to.from_device(7..)], &[], LIMIT).unwrap().buffers;
        let started = [(0x100, 0xFFF), (0x188, 77), (0x110, 0)];
        let source = [(0x128, base + 3), (0x12C, 0), (0x130, 100), (0x134, coherent)];
        let destination = [(0x138, base + 256 + 7), (0x13C, 0), (0x140, 100), (0x144, coherent)];
        let rung_and_acknowledged = [(0x200, 1), (0x100, regs::INT_DONE)];
        assert_eq!(
            notes.written(),
            [&started[..], &source, &destination, &rung_and_acknowledged].concat()
        );
    }
}

#[test]
fn a_list_in_memory_and_where_it_begins() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let notes = Notes::new();
    let port = board.port();
    let descriptors = alloc!(region)(4096);
    let base = addr_of(&region, &board, &descriptors);
    // SAFETY: as in `simple`.
    let driver = unsafe { Zdma::linked(noted(&notes, port), descriptors) }.unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let (from, to) = (alloc!(region)(8192), alloc!(region)(8192));
    notes.written();
    notes.ending.set((regs::INT_DONE, 0, 8192));
    let [_, _] = queue.run([from.to_device(..), to.from_device(..)], &[], LIMIT).unwrap().buffers;
    let started = [(0x100, 0xFFF), (0x188, 0), (0x110, 0x40)];
    let lists = [(0x158, base), (0x15C, 0), (0x160, base + 32), (0x164, 0)];
    assert_eq!(
        notes.written(),
        [&started[..], &lists, &[(0x200, 1), (0x100, regs::INT_DONE)]].concat()
    );
}

#[test]
fn what_a_channel_says_is_compared() {
    let (done, wrong, busy) = (regs::INT_DONE, regs::STATE_FAILED, regs::STATE_BUSY);
    let fault = |status, what: &'static str| Error::Fault { device: "zdma", status, what };
    let timeout = Error::Timeout { timeout_us: 20_000 };
    let will_not_stop = |status| Error::WillNotStop { device: "zdma", status, waited_us: 20_001 };
    // The values of ISR, STATUS and TOTAL_BYTE, the job's answer, and the error of stopping where
    // it fails.
    let endings = [
        ((done, 0, 99), Error::ShortTransfer { need_bytes: 100, done_bytes: 99 }, None),
        ((done, 0, 101), Error::ShortTransfer { need_bytes: 100, done_bytes: 101 }, None),
        (
            (done, 0, u32::MAX),
            Error::ShortTransfer { need_bytes: 100, done_bytes: u64::from(u32::MAX) },
            None,
        ),
        ((done, wrong, 100), fault(done, regs::describe(done)), None),
        (
            (done | regs::INT_READ, wrong, 3),
            fault(done | regs::INT_READ, regs::describe(regs::INT_READ)),
            None,
        ),
        // Without DMA_DONE, as QEMU's model ends a descriptor that it cannot read.
        (
            (regs::INT_SRC_DESCRIPTOR, wrong, 0),
            fault(regs::INT_SRC_DESCRIPTOR, regs::describe(regs::INT_SRC_DESCRIPTOR)),
            None,
        ),
        // Done by one register, at work by the other.
        ((done, busy, 100), timeout, Some(will_not_stop(busy))),
        (
            (done | regs::INT_WRITE, busy, 0),
            fault(done | regs::INT_WRITE, regs::describe(regs::INT_WRITE)),
            Some(will_not_stop(busy)),
        ),
        ((done, regs::STATE_PAUSED, 100), timeout, Some(will_not_stop(regs::STATE_PAUSED))),
        // A device that is gone.
        ((u32::MAX, u32::MAX, u32::MAX), timeout, Some(will_not_stop(u32::MAX))),
        ((0, 0, 100), timeout, None),
    ];
    for (ending, cause, stopping) in endings {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let notes = Notes::new();
        let mut queue = Queue::new(simple(noted(&notes, board.port())).unwrap(), 1).unwrap();
        notes.ending.set(ending);
        let operands =
            [alloc!(region)(256).to_device(..100), alloc!(region)(256).from_device(..100)];
        let failed = queue.run(operands, &[], LIMIT).unwrap_err();
        assert_eq!((failed.cause, failed.error), (cause, stopping.unwrap_or(cause)), "{ending:x?}");
        assert_eq!(failed.buffers.is_some(), stopping.is_none(), "{ending:x?}");
    }
}

#[test]
fn lagging_status_is_not_taken_for_stopped() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let notes = Notes::new();
    let mut queue = Queue::new(simple(noted(&notes, board.port())).unwrap(), 1).unwrap();
    notes.ending.set((0, 0, 0));
    notes.states.replace([regs::STATE_DONE, regs::STATE_BUSY].into());
    queue
        .submit([alloc!(region)(256).to_device(..), alloc!(region)(256).from_device(..)], &[])
        .unwrap();
    assert!(queue.clear().is_err() && queue.len() == 1, "it is at work, and keeps its buffers");
    assert!(
        notes.cleared_at_work.get(),
        "after the copy should have ended, EN is cleared all the same"
    );
    notes.states.replace([regs::STATE_DONE].into());
    queue.clear().unwrap();
}

#[test]
fn a_channel_at_work_is_let_come_to_its_end() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let notes = Notes::new();
    let mut queue = Queue::new(simple(noted(&notes, board.port())).unwrap(), 1).unwrap();
    notes.ending.set((0, 0, 0));
    let mut states = VecDeque::from([regs::STATE_BUSY; 100]);
    states.push_back(regs::STATE_DONE);
    notes.states.replace(states);
    queue
        .submit([alloc!(region)(256).to_device(..), alloc!(region)(256).from_device(..)], &[])
        .unwrap();
    queue.clear().unwrap();
    assert!(!notes.cleared_at_work.get());
}

#[test]
fn windows_that_no_zdma_has() {
    let board = SimBoard::new(1);
    let wrong = [
        (0x000, 2),
        (0x100, 1 << 12),
        (0x104, u32::MAX),
        (0x110, 1),
        (0x114, 0x400),
        (0x11C, 4),
        (0x120, 1 << 28),
        (0x124, 0x200),
    ];
    for ((offset, found), (register, _, zeroes)) in wrong.into_iter().zip(regs::ZEROES) {
        let notes = Notes::new();
        notes.answer(offset, found);
        let refused = simple(noted(&notes, board.port())).map(drop).unwrap_err();
        assert_eq!(
            refused,
            Error::WrongDevice { device: "zdma", register, expected: found & !zeroes, found }
        );
        assert_eq!(notes.written(), []);
    }
    // Registers that hold nothing: opened, and found out when it is stopped.
    struct Deaf(Noted);
    // SAFETY: nothing happens to any memory.
    unsafe impl Mmio for Deaf {
        fn len_bytes(&self) -> usize {
            4096
        }
        fn read32(&self, _offset: usize) -> u32 {
            0
        }
        unsafe fn write32(&self, _offset: usize, _value: u32) {}
    }
    impl Wait for Deaf {
        fn now_us(&self) -> u64 {
            self.0.now_us()
        }
        fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
            self.0.wait_at_most(timeout_us)
        }
    }
    // SAFETY: it puts no address on any bus.
    unsafe impl Device for Deaf {
        fn port(&self) -> &Port {
            self.0.port()
        }
    }
    let refused = Queue::new(simple(Deaf(noted(&Notes::new(), board.port()))).unwrap(), 1)
        .map(drop)
        .unwrap_err();
    assert_eq!(
        refused.error,
        Error::WrongDevice {
            device: "zdma",
            register: "ZDMA_CH_DATA_ATTR",
            expected: regs::DATA_PLAIN,
            found: 0
        }
    );
}
