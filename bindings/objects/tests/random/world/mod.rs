//! Buffers, tensors and the jobs of one driver, and a model of the rules that they keep: each byte
//! of the input is a call, and every answer is compared. The fuzz target `objects` builds this
//! file, too.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; the driver touches no memory, \
              and no device receives an address"
)]

mod jobs;
mod script;

use contigo::dlpack::abi::DlManagedTensorVersioned;
use contigo::dlpack::{DataType, Shape, TensorSpec, TensorTable};
use contigo::job::AnyDriver;
use contigo::sim::SimBoard;
use contigo::{Align, CpuBuf, DevBuf, Direction, Error, Port, Queue, Region};
use contigo_objects::{Access, Buffer, Job, Ledger, Refusal, Views};
use jobs::{Ended, Known};
use script::{DEPTH, Script, Scripted};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

const BUFFERS: usize = 8;
const BYTES: usize = 256;
/// A buffer, as a binding has it.
struct Shared {
    state: Mutex<Buffer>,
    views: Views,
}

/// The buffers of a job.
#[derive(Default)]
struct Held(Vec<Arc<Shared>>);

impl Job for Held {
    fn put(&mut self, index: usize, buf: Result<CpuBuf, DevBuf>) {
        self.0[index].state.lock().unwrap().put(buf);
    }
    fn refused(&mut self) {
        self.0.clear();
    }
}

/// What the model says of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Cpu,
    Device,
    Job,
    LentCpu,
    LentDevice,
    Freed,
}

/// A buffer, and what the model knows of it.
struct Modelled {
    shared: Arc<Shared>,
    is: Is,
    readers: u32,
    has_writer: bool,
    is_dropped: bool,
    hand_overs: u64,
    /// The tensor that a framework has.
    tensor: Option<*mut DlManagedTensorVersioned>,
}

impl Modelled {
    fn views(&self) -> u32 {
        if self.has_writer { 1 } else { self.readers }
    }

    /// Refused, because it is not `Cpu` or not `Device`: or `None`.
    fn not(&self, wanted: &[Is]) -> Option<Refusal> {
        (!wanted.contains(&self.is)).then_some(match self.is {
            Is::Cpu => Refusal::OnCpu,
            Is::Device => Refusal::OnDevice,
            Is::Job => Refusal::InJob,
            Is::LentCpu | Is::LentDevice => Refusal::Runtime(Error::TensorOut),
            Is::Freed => Refusal::Freed,
        })
    }

    /// The same, and because it has views.
    fn not_free(&self, wanted: &[Is]) -> Option<Refusal> {
        self.not(wanted)
            .or_else(|| (self.views() > 0).then_some(Refusal::Viewed { views: self.views() }))
    }
}

struct World {
    region: Region,
    port: Port,
    script: Arc<Mutex<Script>>,
    ledger: Box<Ledger<Held>>,
    bufs: Vec<Modelled>,
    /// In flight, the oldest first.
    flying: VecDeque<Known>,
    /// Ended, in that order.
    ended: Vec<(Known, Ended)>,
    /// The device would not stop.
    must_stop: bool,
    number: u64,
}

static TENSORS: TensorTable<BUFFERS> = TensorTable::new();

impl World {
    fn new() -> Self {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let (port, script) = (board.port(), Arc::default());
        let driver = AnyDriver::new(Scripted { port, script: Arc::clone(&script) }).unwrap();
        let ledger = Ledger::boxed(Queue::new(driver, DEPTH).unwrap());
        let mut world = Self {
            region,
            port,
            script,
            ledger,
            bufs: Vec::new(),
            flying: VecDeque::new(),
            ended: Vec::new(),
            must_stop: false,
            number: 0,
        };
        (0..BUFFERS).for_each(|_| world.allocate());
        world
    }

    fn allocate(&mut self) {
        let buf = self.region.alloc(BYTES, Align::DLPACK).unwrap();
        let shared = Arc::new(Shared { state: Mutex::new(Buffer::new(buf)), views: Views::new() });
        self.bufs.push(Modelled {
            shared,
            is: Is::Cpu,
            readers: 0,
            has_writer: false,
            is_dropped: false,
            hand_overs: 0,
            tensor: None,
        });
    }

    /// Does one call: its number, and which buffer. Jobs are half of them: few are in flight
    /// otherwise.
    fn call(&mut self, byte: u8) {
        let which = usize::from(byte) % BUFFERS;
        let hand_over = self.bufs[which].hand_overs;
        match usize::from(byte) / BUFFERS {
            0 => self.open_view(which, Access::Read),
            1 => self.open_view(which, Access::Write),
            2 | 3 => self.close_view(which),
            4 => self.give(which),
            5 | 6 => self.take_back(which, None),
            7 => self.take_back(which, Some(hand_over)),
            8 => self.take_back(which, Some(hand_over.wrapping_sub(1))),
            9 => self.open_device_view(which, hand_over),
            10 => self.open_device_view(which, hand_over + 1),
            11 => self.lend(which),
            12 => self.delete_tensor(which),
            13 => self.unlend(which),
            14 => self.free(which),
            15 => self.drop_buffer(which),
            16..=19 => self.start([which, (which + 1) % BUFFERS]),
            20 => self.start([which, which]),
            21 => self.look(true),
            22 => self.look(false),
            23 => self.wait(which % 4),
            24 => self.first_ended(),
            25 => self.stop(),
            26 | 27 => self.take(),
            _ => self.device(which),
        }
        self.check();
    }

    fn open_view(&mut self, which: usize, access: Access) {
        let buf = &mut self.bufs[which];
        let expected = buf.not(&[Is::Cpu]).or_else(|| {
            let refused = buf.has_writer || access == Access::Write && buf.readers > 0;
            refused.then_some(Refusal::Viewed { views: buf.views() })
        });
        let opened = buf.shared.state.lock().unwrap().open_view(&buf.shared.views, access);
        assert_eq!(opened.err(), expected);
        if expected.is_none() {
            buf.readers += u32::from(access == Access::Read);
            buf.has_writer = access == Access::Write;
        }
    }

    fn open_device_view(&mut self, which: usize, hand_over: u64) {
        let buf = &mut self.bufs[which];
        let is_its = buf.is == Is::Device && hand_over == buf.hand_overs;
        let expected = (!is_its).then_some(Refusal::HandOverEnded);
        let opened =
            buf.shared.state.lock().unwrap().open_device_view(&buf.shared.views, hand_over);
        assert_eq!(opened.err(), expected);
        buf.readers += u32::from(expected.is_none());
    }

    fn close_view(&mut self, which: usize) {
        let buf = &mut self.bufs[which];
        let expected = match (buf.has_writer, buf.readers) {
            (false, 0) => Err(Refusal::NotViewed),
            _ => Ok(buf.is_dropped && buf.views() == 1),
        };
        assert_eq!(buf.shared.views.close(), expected);
        if expected.is_ok() {
            buf.readers -= u32::from(!buf.has_writer);
            buf.has_writer = false;
        }
        if expected == Ok(true) {
            self.free(which);
        }
    }

    fn give(&mut self, which: usize) {
        let (buf, port) = (&mut self.bufs[which], self.port);
        let expected = buf.not_free(&[Is::Cpu]);
        let mut state = buf.shared.state.lock().unwrap();
        // SAFETY: no device receives the address.
        let given =
            unsafe { state.give(&buf.shared.views, &port, 0..BYTES, Direction::Bidirectional) };
        assert_eq!(given.err(), expected);
        drop(state);
        if expected.is_none() {
            (buf.is, buf.hand_overs) = (Is::Device, buf.hand_overs + 1);
        }
    }

    fn take_back(&mut self, which: usize, by: Option<u64>) {
        let buf = &mut self.bufs[which];
        let ended = by.is_some_and(|by| by != buf.hand_overs).then_some(Refusal::HandOverEnded);
        let expected = buf.not(&[Is::Device]).or(ended).or_else(|| buf.not_free(&[Is::Device]));
        assert_eq!(
            buf.shared.state.lock().unwrap().take_back(&buf.shared.views, by).err(),
            expected
        );
        if expected.is_none() {
            buf.is = Is::Cpu;
        }
    }

    fn lend(&mut self, which: usize) {
        let buf = &mut self.bufs[which];
        let viewed = (buf.views() > 0).then_some(Refusal::Viewed { views: buf.views() });
        let expected = viewed.or_else(|| buf.not(&[Is::Cpu, Is::Device]));
        let spec = TensorSpec::new(DataType::U8, Shape::new(&[BYTES as i64]).unwrap());
        let lent = buf.shared.state.lock().unwrap().lend(&buf.shared.views, &TENSORS, &spec, false);
        assert_eq!(lent.err(), expected);
        if let Ok(tensor) = lent {
            buf.is = if buf.is == Is::Cpu { Is::LentCpu } else { Is::LentDevice };
            buf.tensor = Some(tensor.cast());
        }
    }

    /// The framework is done with it.
    fn delete_tensor(&mut self, which: usize) {
        if let Some(tensor) = self.bufs[which].tensor.take() {
            // SAFETY: the tensor is this function's, once.
            unsafe { (*tensor).deleter.unwrap()(tensor) };
        }
    }

    fn unlend(&mut self, which: usize) {
        let buf = &mut self.bufs[which];
        let out = buf.tensor.is_some().then_some(Refusal::Runtime(Error::TensorOut));
        let expected = buf.not(&[Is::LentCpu, Is::LentDevice]).or(out);
        assert_eq!(buf.shared.state.lock().unwrap().unlend().err(), expected);
        if expected.is_none() {
            buf.is = if buf.is == Is::LentCpu { Is::Cpu } else { Is::Device };
        }
    }

    fn free(&mut self, which: usize) {
        let buf = &mut self.bufs[which];
        let expected = buf.not_free(&[Is::Cpu]);
        assert_eq!(buf.shared.state.lock().unwrap().free(&buf.shared.views).err(), expected);
        if expected.is_none() {
            buf.is = Is::Freed;
            self.check();
            // Another takes its place.
            self.allocate();
            self.bufs.swap_remove(which);
        }
    }

    fn drop_buffer(&mut self, which: usize) {
        let buf = &mut self.bufs[which];
        buf.is_dropped = true;
        assert_eq!(buf.shared.views.drop_buffer(), buf.views() == 0);
        if buf.views() == 0 {
            self.free(which);
        }
    }

    /// What the objects say is what the model says.
    fn check(&self) {
        for buf in &self.bufs {
            let state = buf.shared.state.lock().unwrap();
            let owner = match buf.is {
                Is::Cpu => "cpu",
                Is::Device | Is::Job => "device",
                Is::LentCpu | Is::LentDevice => "lent",
                Is::Freed => "gone",
            };
            assert_eq!((state.owner(), buf.shared.views.count()), (owner, buf.views()));
            assert_eq!(state.hand_over(), (buf.is == Is::Device).then_some(buf.hand_overs));
            assert_eq!(
                (state.cpu().is_ok(), state.device().is_ok()),
                (buf.is == Is::Cpu, buf.is == Is::Device)
            );
            assert_eq!(state.is_idle(&buf.shared.views).err(), buf.not_free(&[Is::Cpu]));
        }
        let ledger = &self.ledger;
        assert_eq!((ledger.queue().len(), ledger.ended()), (self.flying.len(), self.ended.len()));
        assert_eq!(
            (ledger.used() as usize, ledger.jobs().count()),
            (self.flying.len() + self.ended.len(), self.flying.len() + self.ended.len())
        );
        assert_eq!(ledger.queue().is_stopped(), self.must_stop);
    }

    /// Everything is given back: not a byte is lost.
    fn end(mut self) {
        self.script.lock().unwrap().sticks = 0;
        self.stop();
        while !self.ended.is_empty() {
            self.take();
        }
        for which in 0..BUFFERS {
            self.delete_tensor(which);
            while self.bufs[which].views() > 0 {
                // The last view of a buffer that was dropped frees it, and another takes its place.
                self.close_view(which);
            }
            if matches!(self.bufs[which].is, Is::LentCpu | Is::LentDevice) {
                self.unlend(which);
            }
            if self.bufs[which].is == Is::Device {
                self.take_back(which, None);
            }
        }
        self.check();
        self.bufs.clear();
        assert_eq!(self.region.free_bytes(), self.region.len_bytes(), "all memory came back");
    }
}

/// Each byte is a call.
#[allow(unreachable_pub, reason = "the fuzz target has it, too")]
pub fn run(bytes: &[u8]) {
    let mut world = World::new();
    // A call takes microseconds: more of them would show nothing new.
    bytes.iter().take(4096).for_each(|byte| world.call(*byte));
    world.end();
}
