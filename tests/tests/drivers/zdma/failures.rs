//! Jobs that are refused, jobs that fail on the bus, and that the next job works.
#![allow(
    unsafe_code,
    reason = "memory that is not there: a backend that lies, so that a real bus error can be seen"
)]

use super::{LIMIT, MODES, Mode, alloc};
use crate::regs::zdma as regs;
use contigo::{
    Align, Backend, Bus, DevAddr, Direction, Driver, Error, PhysAddr, Port, Queue, Region,
    drivers::zdma::Zdma,
    mem::{DevSlice, Mapping, SyncScope},
    sim::{SimBoard, SimDevice, SimSpec, zdma::ZdmaModel},
    types::BaseAddr,
};
use contigo_gemm8::SimGemm8;
use std::{ops::Range, ptr::NonNull};

const LEN: usize = 8192;

/// Memory that the CPU sees, at an address of the board's bus where nothing answers.
pub(super) struct Hole {
    cpu: NonNull<u8>,
    bus: Bus,
}

impl Hole {
    const BASE: u64 = 0xF000_0000;

    pub(super) fn new(board: &SimBoard) -> Self {
        #[repr(align(4096))]
        #[derive(Clone, Copy)]
        struct Page(#[allow(dead_code, reason = "its size and alignment are used")] [u8; 4096]);
        let pages = Box::leak(vec![Page([0; 4096]); 16].into_boxed_slice());
        Self { cpu: NonNull::from(pages).cast(), bus: board.bus() }
    }
}

// SAFETY: the memory is leaked, so no other code has it.
unsafe impl Send for Hole {}
// SAFETY: as for `Send`.
unsafe impl Sync for Hole {}

// SAFETY: the mapping is 64 KiB of leaked memory, used by no other code. Nothing answers at its bus
// addresses, so no device touches it or anything else there, and no cache needs maintenance.
unsafe impl Backend for Hole {
    fn name(&self) -> &'static str {
        "hole"
    }
    fn mapping(&self) -> Mapping {
        let base = BaseAddr::Phys(PhysAddr(Self::BASE));
        Mapping {
            cpu: self.cpu,
            len_bytes: 16 * 4096,
            base,
            bus: self.bus,
            scope: SyncScope::Range { granule_bytes: 64 },
            coherent: None,
        }
    }
    unsafe fn sync_for_device(
        &self,
        _range: Range<usize>,
        _direction: Direction,
    ) -> contigo::Result<()> {
        Ok(())
    }
    unsafe fn sync_for_cpu(
        &self,
        _range: Range<usize>,
        _direction: Direction,
    ) -> contigo::Result<()> {
        Ok(())
    }
}

fn fault(bit: u32) -> Error {
    // The model is done with the job, and so is the channel (UG1087, DMA_DONE: with or without
    // error).
    Error::Fault { device: "zdma", status: bit | regs::INT_DONE, what: regs::describe(bit) }
}

/// A good copy, to see that the channel works.
fn good(queue: &mut Queue<impl Driver>, region: &Region) {
    let (mut from, to) = (alloc!(region)(LEN), alloc!(region)(LEN));
    from.view_mut::<u8>().unwrap().fill(0x5A);
    let [_from, to] =
        queue.run([from.to_device(..), to.from_device(..)], &[], LIMIT).unwrap().buffers;
    assert_eq!(to.view::<u8>().unwrap(), [0x5A; LEN]);
}

#[test]
fn a_bus_error_is_told_from_another_and_the_next_job_works() {
    for mode in MODES {
        let board = SimBoard::new(1);
        let (region, hole) = (
            Region::new(board.memory(1 << 20).unwrap()).unwrap(),
            Region::new(Hole::new(&board)).unwrap(),
        );
        let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
        let mut queue =
            Queue::new(mode.open(channel.window().unwrap(), alloc!(region)), 1).unwrap();
        good(&mut queue, &region);

        let failed = queue
            .run(
                [alloc!(hole)(LEN).to_device(5..), alloc!(region)(LEN).from_device(..)],
                &[],
                LIMIT,
            )
            .unwrap_err();
        assert_eq!(
            (failed.error, failed.buffers.is_some()),
            (fault(regs::INT_READ), true),
            "{mode:?}"
        );
        good(&mut queue, &region);

        let operands = [alloc!(region)(LEN).to_device(5..), alloc!(hole)(LEN).from_device(..)];
        assert_eq!(
            queue.run(operands, &[], LIMIT).unwrap_err().error,
            fault(regs::INT_WRITE),
            "{mode:?}"
        );
        good(&mut queue, &region);
        assert_eq!(
            (queue.counts().completed, queue.counts().stopped, queue.is_empty()),
            (3, 2, true)
        );
    }
}

#[test]
fn descriptors_that_the_channel_cannot_read() {
    let board = SimBoard::new(1);
    let (region, hole) = (
        Region::new(board.memory(1 << 20).unwrap()).unwrap(),
        Region::new(Hole::new(&board)).unwrap(),
    );
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue =
        Queue::new(channel.window().unwrap().linked(alloc!(hole)(256)).unwrap(), 1).unwrap();
    let error = queue
        .run([alloc!(region)(LEN).to_device(..), alloc!(region)(LEN).from_device(..)], &[], LIMIT)
        .unwrap_err()
        .error;
    assert!(
        error == fault(regs::INT_SRC_DESCRIPTOR) || error == fault(regs::INT_DST_DESCRIPTOR),
        "{error}"
    );
    drop(queue);
    let mut queue =
        Queue::new(channel.window().unwrap().linked(alloc!(region)(256)).unwrap(), 1).unwrap();
    good(&mut queue, &region);
}

#[test]
fn copies_that_no_channel_can_do() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(1 << 20).unwrap()).unwrap();
    let slice = |len_bytes| DevSlice { addr: DevAddr(0x1000), offset_bytes: 0, len_bytes };
    let largest = [
        (Mode::Simple, (1 << 30) - 1),
        (Mode::Linked(128), 1 << 29),
        (Mode::Linked(4096), 7 << 29),
        (Mode::Linked(8 * 9 * 64), u32::MAX as usize),
    ];
    for (mode, max) in largest {
        let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
        let zdma = mode.open(channel.window().unwrap(), alloc!(region));
        let refusal = |from, to| zdma.check(&[slice(from), slice(to)], &[]);
        assert_eq!((refusal(max, max), refusal(1, usize::MAX)), (Ok(()), Ok(())));
        let argument = |value| Error::Argument {
            name: "bytes to copy",
            value,
            min: 1,
            max: max as u64,
            multiple_of: 1,
        };
        // On a 32-bit processor no buffer is longer than the longest list.
        if let Some(more) = max.checked_add(1) {
            assert_eq!(refusal(more, more), Err(argument(more as u64)), "{mode:?}");
        }
        assert_eq!(refusal(0, 0), Err(argument(0)));
        assert_eq!(
            refusal(65, 64),
            Err(Error::BufferSize { index: 1, need_bytes: 65, have_bytes: 64 })
        );
    }
}

#[test]
fn what_is_not_a_zdma() {
    let board = SimBoard::new(1);
    let other = SimGemm8::new(&board, board.port());
    // SAFETY: it is refused by what is read: nothing is written to it.
    let refused = unsafe { Zdma::simple(other.window().unwrap()) }.map(drop).unwrap_err();
    assert_eq!(
        refused,
        Error::RegisterWindow { device: "zdma", need_bytes: regs::WINDOW_BYTES, have_bytes: 0x90 }
    );
    let region = Region::new(board.memory(8192).unwrap()).unwrap();
    // SAFETY: as above.
    let (error, memory) = unsafe { Zdma::linked(other.window().unwrap(), alloc!(region)(4096)) }
        .map(drop)
        .unwrap_err()
        .into_parts();
    assert!(memory.len_bytes() == 4096 && matches!(error, Error::RegisterWindow { .. }));
}

#[test]
fn descriptors_that_do_not_suit_come_back() {
    let (board, other) = (SimBoard::new(1), SimBoard::new(1));
    let region = Region::new(board.memory(8192).unwrap()).unwrap();
    let elsewhere = Region::new(other.memory(8192).unwrap()).unwrap();
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let refusal = |channel: &SimDevice<ZdmaModel>, buf| {
        let refused = channel.window().unwrap().linked(buf).map(drop).unwrap_err();
        (refused.error, refused.into_returned().len_bytes())
    };
    let small = Error::BlockSize { len_bytes: 64, need_bytes: 128, line_bytes: 64 };
    assert_eq!(refusal(&channel, alloc!(region)(64)), (small, 64));
    assert_eq!(
        refusal(&channel, alloc!(elsewhere)(128)),
        (Error::WrongBus { port: "sim-hp0", memory: other.bus() }, 128)
    );
    // A port that adds 16 to every address.
    let crooked = SimDevice::<ZdmaModel>::new(&board, Port { offset: 16, ..board.port() });
    let (error, len_bytes) = refusal(&crooked, alloc!(region)(128));
    assert!(
        matches!(error, Error::Misaligned { align_bytes: 32, addr } if addr % 32 == 16),
        "{error}"
    );
    assert_eq!(len_bytes, 128);
    // An address of 45 bits.
    let high = SimSpec {
        base: Some(BaseAddr::Phys(PhysAddr(1 << 44))),
        len_bytes: 4096,
        ..SimSpec::default()
    };
    let far = Region::new(board.memory_with(high).unwrap()).unwrap();
    let wide = SimDevice::<ZdmaModel>::new(
        &board,
        Port { addr_bits: 64, window: (0, u64::MAX), ..board.port() },
    );
    let (error, _) = refusal(&wide, alloc!(far)(128));
    assert_eq!(
        error,
        Error::Unreachable {
            port: "sim-hp0",
            addr: 1 << 44,
            len_bytes: 128,
            first: 0,
            last: (1 << 44) - 1
        }
    );
    let mut queue = Queue::new(wide.window().unwrap().simple().unwrap(), 1).unwrap();
    let refused = queue
        .submit([alloc!(far)(64).to_device(..), alloc!(region)(64).from_device(..)], &[])
        .unwrap_err();
    assert!(
        matches!(refused.error, Error::Unreachable { last, .. } if last == (1 << 44) - 1),
        "{}",
        refused.error
    );
    // None of them was harmed.
    assert!(region.alloc(7936 - 128 - 128, Align::LINE).is_ok());
}
