//! The driver's writes and their order: a device that takes notes, and answers as the test tells
//! it.

use super::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

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
}

impl Notes {
    fn new() -> Rc<Self> {
        Rc::new(Self {
            writes: RefCell::default(),
            answers: RefCell::default(),
            ending: Cell::new((regs::INT_DONE, 0, 0)),
            states: RefCell::default(),
            cleared_at_work: Cell::new(false),
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
        4096
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

/// The driver of a device that takes notes.
fn simple(notes: &Rc<Notes>, port: Port) -> Result<Zdma<Noted>> {
    // SAFETY: the device touches no memory, whatever is written to it.
    unsafe { Zdma::simple(Noted { notes: Rc::clone(notes), port, now_us: Cell::new(0) }) }
}

/// Its queue, with a job's operands.
fn queue(notes: &Rc<Notes>) -> (Queue<Zdma<Noted>>, [Operand; 2]) {
    let (board, _, pool) = bench(1, 2, 256);
    (Queue::new(simple(notes, board.port()).unwrap(), 1).unwrap(), copies(&pool, ..100, ..100))
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
        let zdma = simple(&notes, port).unwrap();
        assert_eq!(notes.written(), []);
        let queue = Queue::new(zdma, 1).unwrap();
        let masked_stopped_acknowledged = [(0x10C, 0xFFF), (0x200, 0), (0x100, 0xFFF)];
        let configured =
            [(0x114, 0x3FF), (0x118, 0), (0x120, data), (0x124, descriptors), (0x108, 0x7C0)];
        assert_eq!(notes.written(), [&masked_stopped_acknowledged[..], &configured].concat());
        drop(queue);
        // Its interrupts stay masked.
        assert_eq!(notes.written(), masked_stopped_acknowledged);
    }
}

#[test]
fn a_transfer_in_registers_and_a_list_in_memory() {
    let (board, region, pool) = bench(1, 2, 8192);
    for (port, coherent) in [(board.port(), 0), (board.coherent_port(), 1)] {
        let notes = Notes::new();
        let mut queue = Queue::new(simple(&notes, port).unwrap(), 1).unwrap();
        let (from, to) = (pool.take().unwrap(), pool.take().unwrap());
        let [reads, writes] = [&from, &to].map(|buf| addr_of(&region, &board, buf));
        notes.written();
        notes.answer(0x188, 77);
        notes.ending.set((regs::INT_DONE, 0, 100));
        drop(queue.run([from.to_device(3..103), to.from_device(7..)], &[], LIMIT).unwrap());
        let started = [(0x100, 0xFFF), (0x188, 77), (0x110, 0)];
        let source = [(0x128, reads + 3), (0x12C, 0), (0x130, 100), (0x134, coherent)];
        let destination = [(0x138, writes + 7), (0x13C, 0), (0x140, 100), (0x144, coherent)];
        let rung_and_acknowledged = [(0x200, 1), (0x100, regs::INT_DONE)];
        assert_eq!(
            notes.written(),
            [&started[..], &source, &destination, &rung_and_acknowledged].concat()
        );
    }
    let (notes, port, now_us) = (Notes::new(), board.port(), Cell::new(0));
    let descriptors = ring(&region);
    let base = addr_of(&region, &board, &descriptors);
    let noted = Noted { notes: Rc::clone(&notes), port, now_us };
    // SAFETY: as in `simple`.
    let mut queue = Queue::new(unsafe { Zdma::linked(noted, descriptors) }.unwrap(), 1).unwrap();
    notes.written();
    notes.ending.set((regs::INT_DONE, 0, 8192));
    drop(queue.run(copies(&pool, .., ..), &[], LIMIT).unwrap());
    let started = [(0x100, 0xFFF), (0x188, 0), (0x110, 0x40)];
    let lists = [(0x158, base), (0x15C, 0), (0x160, base + 32), (0x164, 0)];
    let rung_and_acknowledged = [(0x200, 1), (0x100, regs::INT_DONE)];
    assert_eq!(notes.written(), [&started[..], &lists, &rung_and_acknowledged].concat());
}

#[test]
fn what_a_channel_says_is_compared() {
    let (done, wrong, busy) = (regs::INT_DONE, regs::STATE_FAILED, regs::STATE_BUSY);
    let fault = |status, bit| Error::Fault { device: "zdma", status, what: regs::describe(bit) };
    let short = |done_bytes| Error::ShortTransfer { need_bytes: 100, done_bytes };
    let timeout = Error::Timeout { timeout_us: 20_000 };
    let (read, write, list) = (regs::INT_READ, regs::INT_WRITE, regs::INT_SRC_DESCRIPTOR);
    // The values of ISR, STATUS and TOTAL_BYTE, the job's answer, and STATUS where stopping fails.
    for (ending, cause, stays) in [
        ((done, 0, 99), short(99), None),
        ((done, 0, 101), short(101), None),
        ((done, 0, u32::MAX), short(u32::MAX.into()), None),
        ((done, wrong, 100), fault(done, done), None),
        ((done | read, wrong, 3), fault(done | read, read), None),
        // Without DMA_DONE, as QEMU's model ends a descriptor that it cannot read.
        ((list, wrong, 0), fault(list, list), None),
        // Done by one register, at work by the other.
        ((done, busy, 100), timeout, Some(busy)),
        ((done | write, busy, 0), fault(done | write, write), Some(busy)),
        ((done, regs::STATE_PAUSED, 100), timeout, Some(regs::STATE_PAUSED)),
        // A device that is gone.
        ((u32::MAX, u32::MAX, u32::MAX), timeout, Some(u32::MAX)),
        ((0, 0, 100), timeout, None),
    ] {
        let notes = Notes::new();
        let (mut queue, operands) = queue(&notes);
        notes.ending.set(ending);
        let failed = queue.run(operands, &[], LIMIT).unwrap_err();
        let error = stays.map_or(cause, |status| Error::WillNotStop {
            device: "zdma",
            status,
            waited_us: 20_001,
        });
        assert_eq!((failed.cause, failed.error), (cause, error), "{ending:x?}");
        assert_eq!(failed.buffers.is_some(), stays.is_none(), "{ending:x?}");
    }
}

#[test]
fn lagging_status_is_not_taken_for_stopped() {
    let notes = Notes::new();
    let (mut queue, operands) = queue(&notes);
    notes.ending.set((0, 0, 0));
    notes.states.replace([regs::STATE_DONE, regs::STATE_BUSY].into());
    queue.give(operands);
    assert!(queue.clear().is_err() && queue.len() == 1, "it is at work, and keeps its buffers");
    // After the copy should have ended, EN is cleared all the same.
    assert!(notes.cleared_at_work.get());
    notes.states.replace([regs::STATE_DONE].into());
    queue.clear().unwrap();
}

#[test]
fn a_channel_at_work_is_let_come_to_its_end() {
    let notes = Notes::new();
    let (mut queue, operands) = queue(&notes);
    notes.ending.set((0, 0, 0));
    let mut states = VecDeque::from([regs::STATE_BUSY; 100]);
    states.push_back(regs::STATE_DONE);
    notes.states.replace(states);
    queue.give(operands);
    queue.clear().unwrap();
    assert!(!notes.cleared_at_work.get());
}

#[test]
fn windows_that_no_zdma_has() {
    let port = SimBoard::new(1).port();
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
    let refused = |register, expected, found| Error::WrongDevice {
        device: "zdma",
        register,
        expected,
        found,
    };
    for ((offset, found), (register, _, zeroes)) in wrong.into_iter().zip(regs::ZEROES) {
        let notes = Notes::new();
        notes.answer(offset, found);
        let opened = simple(&notes, port).map(drop);
        assert_eq!(opened, Err(refused(register, found & !zeroes, found)));
        assert_eq!(notes.written(), []);
    }
    // Registers that hold nothing: opened, and found out when it is stopped.
    // SAFETY: there is no device.
    let deaf = unsafe { Zdma::simple(Numbers { port, len_bytes: 4096, answer: |_| 0 }) }.unwrap();
    let found_out = Queue::new(deaf, 1).map(drop).unwrap_err().error;
    assert_eq!(found_out, refused("ZDMA_CH_DATA_ATTR", regs::DATA_PLAIN, 0));
}
