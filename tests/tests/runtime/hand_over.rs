//! The hand-over without a job, and on to a framework: one address with its length, the caches of a
//! job, and no byte beside.

use super::gemm::{LIMIT, region};
use contigo::dlpack::{ByteOffset, DataType, Lendable, Lent, Shape, TensorSpec, TensorTable};
use contigo::mem::{DevSlice, DriverBuf};
use contigo::sim::{SimBoard, SimSpec};
use contigo::types::{BaseAddr, Refused};
use contigo::{
    Align, Completion, CpuBuf, DevAddr, DevBuf, Direction, Driver, Error, Operand, OperandSpec,
    PhysAddr, Port, Queue, Region,
};
use contigo_testkit::conformance::Harness;
use contigo_testkit::conformance::boards::{OnSim, read, write};
use contigo_testkit::conformance::xor::Xor;
use contigo_testkit::scripted::Scripted;
use std::ops::Range;

const BOTH: [fn(&SimBoard) -> Port; 2] = [SimBoard::port, SimBoard::coherent_port];

fn bytes_of(len_bytes: usize, read_only: bool) -> TensorSpec {
    let dims = [i64::try_from(len_bytes).unwrap()];
    TensorSpec { read_only, ..TensorSpec::new(DataType::U8, Shape::new(&dims).unwrap()) }
}

/// What a consumer receives, before it is done: the address, the offset and the length.
fn told<B: Lendable>(lent: &mut Lent<B>) -> (u64, u64, i64) {
    let tensor = lent.tensor().unwrap();
    // SAFETY: out, and of one dimension.
    let (what, len) = unsafe { (tensor.as_ref().tensor, tensor.as_ref().tensor.shape.read()) };
    // SAFETY: the tensor that was just given out, once.
    unsafe { (tensor.as_ref().deleter.unwrap())(tensor.as_ptr()) }
    (what.data.addr() as u64, what.byte_offset, len)
}

/// Hands `range` to a device of the test's.
fn give(buf: CpuBuf, port: &Port, range: Range<usize>, direction: Direction) -> DevBuf {
    // SAFETY: the test's device touches the bytes only where the test asks it to, before the
    // buffer comes back.
    unsafe { buf.hand_over(port, 64, range, direction) }.unwrap()
}

/// Hands a part of it on.
fn pass_on(
    buf: DevBuf,
    port: &Port,
    range: Range<usize>,
    direction: Direction,
) -> Result<DevBuf, Refused<DevBuf>> {
    // SAFETY: as in `give`.
    unsafe { buf.hand_over(port, 64, range, direction) }
}

fn first_byte(region: &Region) -> u64 {
    let BaseAddr::Phys(PhysAddr(base)) = region.base() else { panic!("physical") };
    base
}

/// One job on `operand`, which stays on the device's side.
fn on_the_device(queue: &mut Queue<impl Driver>, operand: Operand) -> [DevBuf; 1] {
    queue.submit([operand], &[1]).unwrap();
    queue.wait_device(LIMIT).unwrap().unwrap().buffers
}

/// After a job on a part, the address was the part's and the length that of the whole: a tensor
/// reached past its buffer.
#[test]
fn address_and_length_stay_paired_in_chain() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let harness = OnSim::new(1, SimBoard::port, SimSpec::default());
    let region = Region::new(harness.open(16 << 10).unwrap()).unwrap();
    let mut queue = Queue::new(Xor::<_, 1>::new(&harness), 1).unwrap();
    let buf = region.alloc(4096, Align::PAGE).unwrap();
    let (at, base) = (buf.offset_bytes(), first_byte(&region));
    let first = base + at as u64;
    let [whole] = on_the_device(&mut queue, buf.in_out(..));
    assert_eq!(whole.slice(), DevSlice { addr: DevAddr(first), offset_bytes: 0, len_bytes: 4096 });
    let [part] = on_the_device(&mut queue, whole.in_out(1024..2048));
    assert_eq!(
        part.slice(),
        DevSlice { addr: DevAddr(first + 1024), offset_bytes: 0, len_bytes: 1024 }
    );
    assert_eq!(part.handed_over_bytes(), 4096);

    let refused = TENSORS.lend(part, &bytes_of(1025, false)).unwrap_err();
    assert!(matches!(refused.error, Error::Tensor { found: 1025, need: 1024, .. }), "{refused:?}");
    let part = refused.into_returned();
    let mut lent = TENSORS.lend(part, &bytes_of(1024, false)).unwrap();
    assert_eq!(told(&mut lent), (first + 1024, 0, 1024));
    let kept = TensorSpec { offset: ByteOffset::Kept, ..bytes_of(1024, true) };
    let mut lent = TENSORS.lend(lent.take_back().unwrap(), &kept).unwrap();
    assert_eq!(told(&mut lent), (base, at as u64 + 1024, 1024));
    // And on to a job on all of it again.
    let part = lent.take_back().unwrap();
    let [whole] = on_the_device(&mut queue, part.in_out(..));
    assert_eq!(whole.slice().len_bytes, 4096);
}

/// The consumer of a writable tensor wrote behind the caches, and no sync made the CPU see it.
#[test]
fn a_lent_tensor_is_written_as_by_a_job() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    for (seed, port) in (0..16).flat_map(|seed| BOTH.map(|port| (seed, port))) {
        let board = SimBoard::new(seed);
        let (port, region) = (port(&board), region(&board, 4096));
        let mut buf = region.alloc(256, Align::LINE).unwrap();
        buf.view_mut::<u8>().unwrap().fill(1);
        let buf = if seed % 2 == 0 {
            give(buf, &port, 64..192, Direction::ToDevice)
        } else {
            // Handed on: the tensor begins where the last hand-over did, not the first.
            let buf = give(buf, &port, 0..192, Direction::ToDevice);
            pass_on(buf, &port, 64..192, Direction::ToDevice).unwrap()
        };
        let DevSlice { addr, .. } = buf.slice();
        let mut lent = TENSORS.lend(buf, &bytes_of(100, false)).unwrap();
        write(&board, port, addr, &[9; 100]).unwrap();
        assert_eq!(board.counts().unowned_accesses, 0);
        write(&board, port, addr, &[9; 101]).unwrap();
        assert_eq!(board.counts().unowned_accesses, 1, "one byte more than the tensor has");
        told(&mut lent);
        let buf = lent.take_back().unwrap();
        write(&board, port, addr, &[9; 1]).unwrap();
        assert_eq!(board.counts().unowned_accesses, 2, "after its deleter was called");
        let buf = buf.into_cpu().unwrap();
        let mut expected = [1; 256];
        expected[64..165].fill(9);
        assert_eq!(buf.view::<u8>().unwrap(), expected, "seed {seed}, {}", port.name);
        assert_eq!(board.counts().evictions, 0);
    }
}

/// Half a line was lent to be written: the CPU's half, dirty, could go over it.
#[test]
fn half_line_is_lent_only_for_reading() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    for port in BOTH {
        let board = SimBoard::new(1);
        let (port, region) = (port(&board), region(&board, 4096));
        let (left, right) = region.alloc(64, Align::LINE).unwrap().split_at(32).unwrap();
        let right = give(right, &port, 0..32, Direction::ToDevice);
        let lent = TENSORS.lend(right, &bytes_of(32, true)).unwrap();
        let right = lent.take_back().unwrap();
        match TENSORS.lend(right, &bytes_of(32, false)) {
            Ok(lent) => assert!(port.coherent && lent.take_back().is_ok()),
            Err(refused) => {
                let (error, returned) = refused.into_parts();
                assert_eq!(
                    (error, port.coherent),
                    (Error::SharedLine { start: 32, end: 64, line_bytes: 64 }, false)
                );
                assert_eq!(TENSORS.taken(), 0);
                drop(returned);
            }
        }
        drop(left);
    }
}

/// A part of a line that a device wrote behind a port that snoops kept the whole buffer from the
/// other port.
#[test]
fn a_part_goes_on_to_a_port_of_the_other_kind() {
    let harness = OnSim::new(1, SimBoard::port, SimSpec::default());
    let board = harness.board();
    let region = Region::new(harness.open(4096).unwrap()).unwrap();
    let (mut buf, neighbour) = region.alloc(192, Align::LINE).unwrap().split_at(96).unwrap();
    buf.view_mut::<u8>().unwrap().fill(1);
    let buf = give(buf, &board.coherent_port(), 0..96, Direction::FromDevice);
    write(board, board.coherent_port(), buf.slice().addr, &[9; 96]).unwrap();
    // The last 32 bytes share their line with the neighbour: read, and not written.
    let buf = pass_on(buf, &board.port(), 64..96, Direction::ToDevice).unwrap();
    let mut seen = [0; 32];
    read(board, board.port(), buf.slice().addr, &mut seen).unwrap();
    assert_eq!(seen, [9; 32]);
    let refused = pass_on(buf, &board.port(), 64..96, Direction::FromDevice).unwrap_err();
    let (error, buf) = refused.into_parts();
    assert_eq!(error, Error::SharedLine { start: 64, end: 96, line_bytes: 64 });
    let buf = pass_on(buf, &board.port(), 0..64, Direction::FromDevice).unwrap();
    write(board, board.port(), buf.slice().addr, &[7; 64]).unwrap();
    let buf = buf.into_cpu().unwrap();
    let (written, rest) = buf.view::<u8>().unwrap().split_at(64);
    assert_eq!((written, rest), (&[7; 64][..], &[9; 32][..]));
    assert_eq!((board.counts().evictions, board.counts().unowned_accesses), (0, 0));
    drop(neighbour);
}

/// The checks of a job, without one: what is refused comes back as it was.
#[test]
fn what_a_job_refuses_a_hand_over_refuses() {
    let board = SimBoard::new(1);
    let (port, region) = (board.port(), region(&board, 8192));
    let (addr, bus) = (first_byte(&region), contigo::Bus::Soc);
    let beyond = |last| Error::Unreachable { port: port.name, addr, len_bytes: 64, first: 0, last };
    let mut buf = region.alloc(4096, Align::LINE).unwrap();
    buf.view_mut::<u8>().unwrap().fill(7);
    for (port, addr_bits, range, direction, expected) in [
        (
            port,
            64,
            4000..4097,
            Direction::ToDevice,
            Error::OutOfRange { start: 4000, end: 4097, len_bytes: 4096 },
        ),
        (
            port,
            64,
            64..64,
            Direction::ToDevice,
            Error::BufferSize { index: 0, need_bytes: 1, have_bytes: 0 },
        ),
        (
            Port { bus, ..port },
            64,
            0..64,
            Direction::ToDevice,
            Error::WrongBus { port: port.name, memory: board.bus() },
        ),
        (port, 16, 0..64, Direction::FromDevice, beyond(0xFFFF)),
        (Port { addr_bits: 0, ..port }, 64, 0..64, Direction::FromDevice, beyond(0)),
    ] {
        // SAFETY: no device receives the address.
        let refused = unsafe { buf.hand_over(&port, addr_bits, range, direction) }.unwrap_err();
        assert_eq!(refused.error, expected);
        buf = refused.into_returned();
        assert!(buf.view::<u8>().unwrap().iter().all(|&byte| byte == 7), "{expected}");
    }
}

/// A buffer that begins inside the port's window, or the device's address register, and ends
/// outside.
#[test]
fn buffer_across_a_windows_end_is_refused() {
    let harness = OnSim::new(1, SimBoard::port, SimSpec::default());
    let region = Region::new(harness.open(8192).unwrap()).unwrap();
    let (addr, whole) = (first_byte(&region) + 4096, harness.port());
    let last = addr + 63;
    let port = Port { window: (0, last), ..whole };
    let refused =
        |len_bytes| Error::Unreachable { port: port.name, addr, len_bytes, first: 0, last };

    let mut first = region.alloc(4096, Align::PAGE).unwrap();
    let ptr = first.as_mut_ptr().wrapping_add(4096);
    assert_eq!(region.dev_addr_of(&port, ptr, 64), Ok(DevAddr(addr)));
    assert_eq!(region.dev_addr_of(&port, ptr, 65), Err(refused(65)));

    let buf = region.alloc(4096, Align::PAGE).unwrap();
    let (error, buf) = DriverBuf::new(buf, &port, 64).unwrap_err().into_parts();
    assert_eq!(error, refused(4096));
    let mut queue = Queue::new(Xor::<_, 1>::behind(&harness, port), 1).unwrap();
    // The harness's master has a port of another window.
    harness.board().allow_wrong_accesses(true).unwrap();
    let failed = queue.submit([buf.in_out(..65)], &[0]).unwrap_err();
    assert_eq!((failed.error, failed.operand), (refused(65), Some(0)));
    let [operand] = failed.buffers.unwrap();
    let [buf] = queue.run([operand.into_buf().unwrap().in_out(..64)], &[0], LIMIT).unwrap().buffers;

    // The same end, by the width of a register: 2^28 is where this board's memory begins, so no
    // buffer of its own crosses it.
    let (addr, last) = ((1 << 24) - 4096, (1 << 24) - 1);
    let base = Some(BaseAddr::Phys(PhysAddr(addr)));
    let board = SimBoard::new(1);
    let edge = SimSpec { len_bytes: 8192, base, ..SimSpec::default() };
    let low = Region::new(board.memory_with(edge).unwrap()).unwrap();
    let crossing = low.alloc(4096 + 64, Align::LINE).unwrap();
    // SAFETY: no device receives the address.
    let refused = unsafe { crossing.hand_over(&board.port(), 24, .., Direction::ToDevice) };
    let port = board.port().name;
    assert_eq!(
        refused.unwrap_err().error,
        Error::Unreachable { port, addr, len_bytes: 4160, first: 0, last }
    );
    drop(buf);
}

/// An access that begins inside a port's window and ends outside gets no answer.
#[test]
fn the_simulated_bus_ends_where_a_port_ends() {
    let board = SimBoard::new(1);
    let region = region(&board, 4096);
    let base = first_byte(&region);
    let port = Port { window: (0, base + 63), ..board.port() };
    assert!(read(&board, port, DevAddr(base), &mut [0; 64]).is_ok());
    assert!(read(&board, port, DevAddr(base), &mut [0; 65]).is_err());
    assert!(write(&board, port, DevAddr(base + 63), &[0; 2]).is_err());
    assert_eq!(board.counts().stray_accesses, 2);
}

/// The board counts what a device touches beside the bytes that were handed over through its port.
#[test]
fn accesses_not_handed_over_are_counted() {
    for port in BOTH {
        let board = SimBoard::new(1);
        let (port, region) = (port(&board), region(&board, 4096));
        let elsewhere = Port { name: "another-master", ..port };
        let counted = |expected, what: &str| {
            assert_eq!(board.counts().unowned_accesses, expected, "{what}, {}", port.name)
        };
        let reads = |port, addr: DevAddr, len| read(&board, port, addr, &mut vec![0; len]).unwrap();
        let buf = region.alloc(256, Align::LINE).unwrap();
        let at = region.dev_addr_of(&port, buf.view::<u8>().unwrap().as_ptr(), 256).unwrap();
        reads(port, at, 1);
        counted(1, "the CPU's");
        let buf = give(buf, &port, 64..128, Direction::ToDevice);
        reads(port, DevAddr(at.0 + 64), 64);
        counted(1, "handed over");
        reads(port, DevAddr(at.0 + 64), 65);
        counted(2, "one byte behind");
        reads(port, DevAddr(at.0 + 63), 2);
        counted(3, "one byte before");
        write(&board, port, DevAddr(at.0 + 64), &[0]).unwrap();
        counted(4, "written, and handed over to be read");
        reads(elsewhere, DevAddr(at.0 + 64), 1);
        counted(5, "through another port");
        let buf = pass_on(buf, &elsewhere, 0..32, Direction::FromDevice).unwrap();
        write(&board, elsewhere, DevAddr(at.0 + 64), &[0; 32]).unwrap();
        counted(5, "handed on");
        reads(port, DevAddr(at.0 + 96), 1);
        counted(6, "a byte of the first hand-over, after the second");
        let mut buf = buf.into_cpu().unwrap();
        reads(elsewhere, DevAddr(at.0 + 64), 1);
        counted(7, "the CPU's again");
        buf.view_mut::<u8>().unwrap().fill(0);
        let memory = DriverBuf::new(buf, &port, 64).unwrap();
        write(&board, port, at, &[0; 256]).unwrap();
        counted(7, "the driver's");
        // SAFETY: no device has its address.
        let released = unsafe { memory.release() };
        reads(port, at, 4);
        counted(8, "released");
        drop(released);
        drop(give(region.alloc(64, Align::LINE).unwrap(), &port, 0..64, Direction::ToDevice));
        reads(port, DevAddr(at.0 + 256), 64);
        counted(9, "dropped while it was a device's");
    }
}

/// A device that goes 64 bytes too far, and one that stops too late, are seen with no canary: also
/// behind a port that snoops.
#[test]
fn overrun_or_late_stop_is_seen() {
    for port in BOTH {
        let harness = OnSim::new(1, port, SimSpec::default());
        harness.board().allow_wrong_accesses(true).unwrap();
        let unowned = || harness.unowned_accesses().unwrap();
        let region = Region::new(harness.open(4096).unwrap()).unwrap();
        let bufs = || [(); 2].map(|()| region.alloc(256, Align::LINE).unwrap());
        let [input, output] = bufs();
        let mut queue = Queue::new(Xor::<_, 2>::new(&harness).with_overrun(64), 1).unwrap();
        let [input, output] = queue
            .run([input.to_device(..64), output.from_device(..64)], &[0], LIMIT)
            .unwrap()
            .buffers;
        assert_eq!(unowned(), 1, "64 bytes more than the operand");

        let mut queue = Queue::new(Xor::<_, 2>::new(&harness).that_lies_of_its_end(), 1).unwrap();
        queue.submit([input.to_device(..), output.from_device(..)], &[0]).unwrap();
        queue.clear().unwrap();
        let before = unowned();
        queue.driver().run_on();
        assert!(unowned() > before, "a write after it said that it had stopped");
    }
}

/// A device that goes on after its job is seen at once, not when the buffer goes back to the CPU.
#[test]
fn ended_jobs_bytes_are_no_devices() {
    const FAULT: Error = Error::Fault { device: "scripted", status: 1, what: "asked for" };
    const ENDED: Result<Option<Completion>, Error> = Ok(Some(Completion::of(0)));
    let ways = [(Ok(()), ENDED), (Ok(()), Ok(None)), (Ok(()), Err(FAULT)), (Err(FAULT), ENDED)];
    for (port, (start, poll)) in BOTH.into_iter().flat_map(|port| ways.map(|way| (port, way))) {
        let board = SimBoard::new(1);
        let (port, region) = (port(&board), region(&board, 4096));
        let buf = region.alloc(64, Align::LINE).unwrap();
        let addr = region.dev_addr_of(&port, buf.view::<u8>().unwrap().as_ptr(), 64).unwrap();
        let unowned = || {
            write(&board, port, addr, &[1; 64]).unwrap();
            board.counts().unowned_accesses
        };
        let mut queue =
            Queue::new(Scripted { start, poll, ..Scripted::new(port, OperandSpec::in_out()) }, 1)
                .unwrap();
        let ended = match queue.submit([buf.in_out(..)], &[]) {
            Ok(_) => {
                assert_eq!(unowned(), 0, "it runs");
                match queue.wait_device::<1>(LIMIT) {
                    Ok(Some(done)) => Ok(done.buffers),
                    _ if queue.stop().is_err() => Err(FAULT),
                    _ => Ok(queue.take_back().unwrap().unwrap().buffers),
                }
            }
            Err(refused) => {
                Ok(refused.buffers.unwrap().map(|operand| operand.into_buf().unwrap_err()))
            }
        };
        assert_eq!((unowned(), ended.is_ok()), (1, true), "{start:?} {poll:?}, {}", port.name);
    }
}

/// A buffer that the CPU has only read since its last job has no dirty line.
#[test]
fn only_what_the_cpu_wrote_is_cleaned() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let harness = OnSim::new(1, SimBoard::port, SimSpec::default());
    let region = Region::new(harness.open(16 << 10).unwrap()).unwrap();
    let mut queue = Queue::new(Xor::<_, 1>::new(&harness), 1).unwrap();
    let mut buf = region.alloc(1024, Align::PAGE).unwrap();
    // The clean before a job, and the invalidation after it.
    let mut job = |buf: CpuBuf, syncs: u64| {
        let before = region.stats().syncs;
        let [buf] = queue.run([buf.in_out(..)], &[1], LIMIT).unwrap().buffers;
        assert_eq!(region.stats().syncs - before, syncs);
        buf
    };
    buf = job(buf, 2);
    buf = job(buf, 1);
    assert_eq!(buf.view::<u8>().unwrap(), [0; 1024]);
    buf = job(buf.slice(..100).unwrap().whole(), 1);
    buf.view_mut::<u8>().unwrap()[7] = 1;
    buf = job(buf, 2);
    assert_eq!(buf.view::<u8>().unwrap()[7], 0);
    let _ = buf.as_mut_ptr();
    buf = job(buf, 2);
    buf.copy_from_slice(&[1]).unwrap();
    buf = job(buf, 2);
    // A framework may write what it was lent.
    let mut lent = TENSORS.lend(buf, &bytes_of(1024, false)).unwrap();
    told(&mut lent);
    buf = job(lent.take_back().unwrap(), 2);
    // After a job on a part of it, the rest may be dirty.
    let [buf] = queue.run([buf.in_out(..64)], &[1], LIMIT).unwrap().buffers;
    let before = region.stats().syncs;
    let _ = queue.run([buf.in_out(..)], &[1], LIMIT).unwrap();
    assert_eq!(region.stats().syncs - before, 2);
}
