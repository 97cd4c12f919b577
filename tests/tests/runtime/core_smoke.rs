//! The core from end to end, small enough for Miri: region, pool, queue, split, chain, forget and
//! drop on the simulated board. `miri.rs` runs this file under Miri's two aliasing models.

use crate::gemm::{GEMM, GemmQueue, LIMIT, SLOT, four, operands, queue, region};
use contigo::job::queue_bytes;
use contigo::mem::Requirements;
use contigo::sim::{Faults, Sim, SimBoard, SimSpec};
use contigo::types::BaseAddr;
use contigo::{
    Align, CpuBuf, DevAddr, DevBuf, Error, Limits, Operand, PhysAddr, Pool, Port, Queue, Region,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8};
use std::mem::MaybeUninit;

/// One row of 16 ones, a 16 x 16 matrix of twos, a bias of 100.
const SUM: i32 = 132;
/// A board where every job has the same bad luck.
fn unlucky(faults: Faults) -> SimBoard {
    SimBoard::with(7, faults)
}

/// What a program gives for ever.
fn given(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    Box::leak(vec![MaybeUninit::uninit(); bytes].into_boxed_slice())
}

/// Memory that needs no kernel: three of them, and room to align.
fn still_memory(board: &SimBoard, len_bytes: usize) -> Sim {
    board.memory_over(Box::leak(vec![0_u8; 4 * len_bytes + 64].into_boxed_slice())).unwrap()
}

/// A, B, bias and C from a pool, the first three filled.
fn buffers(pool: &Pool) -> [CpuBuf; 4] {
    let [mut a, mut b, mut bias, c] = four(pool);
    a.view_at_mut::<i8>(..16).unwrap().fill(1);
    b.view_at_mut::<i8>(..256).unwrap().fill(2);
    bias.view_at_mut::<i32>(..64).unwrap().fill(100);
    [a, b, bias, c]
}

/// One job of [`GEMM`] over four buffers, and the buffers back.
fn run(queue: &mut GemmQueue, buffers: [CpuBuf; 4]) -> [CpuBuf; 4] {
    queue.run(operands(buffers), &GEMM.words(), LIMIT).unwrap().buffers
}

/// One job, whose buffers stay on the device's side.
fn on_the_device(queue: &mut GemmQueue, operands: [Operand; 4], gemm: Gemm) -> [DevBuf; 4] {
    queue.submit(operands, &gemm.words()).unwrap();
    queue.wait_device(LIMIT).unwrap().unwrap().buffers
}

fn result(c: &CpuBuf) -> Vec<i32> {
    c.view_at::<i32>(..64).unwrap().to_vec()
}

/// The board, the device and their handles are gone: what is made of them keeps both.
#[test]
fn memory_and_window_keep_the_board() {
    let (region, mut queue) = {
        let board = SimBoard::new(1);
        let region = Region::new(still_memory(&board, 4096)).unwrap();
        (region, queue(&SimGemm8::new(&board, board.port())))
    };
    let pool = region.pool(4, SLOT).unwrap();
    drop(region);
    assert_eq!(result(&run(&mut queue, buffers(&pool))[3]), [SUM; 16]);
}

/// A processor with no kernel: the board, its device, the accounts of region and pool, and the
/// queue lie in memory of the program's.
#[test]
fn board_in_memory_of_the_program() {
    for coherent in [false, true] {
        assert!(matches!(
            SimBoard::in_memory(1, Faults::NONE, given(1024)),
            Err(Error::Exhausted { capacity_bytes: 1024, .. })
        ));
        let board = SimBoard::in_memory(1, Faults::NONE, given(16 << 10)).unwrap();
        let port = if coherent { board.coherent_port() } else { board.port() };
        let (needs, limits) = (Requirements::default(), Limits::default());
        let account = given(limits.control_bytes::<Sim>().unwrap());
        let memory = still_memory(&board, 4096);
        let region = Region::with_memory(memory, needs, limits, account).unwrap();
        let (model, own) = (Gemm8Model::default(), given(size_of::<Gemm8Model>() + 512));
        let device = SimGemm8::in_memory(&board, port, model, own).unwrap();
        let of_pool = given(Pool::control_bytes(4).unwrap());
        let pool = region.pool_with_memory(4, SLOT, of_pool).unwrap();
        let driver = Gemm8::open_simulated(device.window().unwrap()).unwrap();
        let mut queue = Queue::with_memory(driver, 1, given(queue_bytes(1, 4).unwrap())).unwrap();
        drop((board, device, region));
        let done = run(&mut queue, buffers(&pool));
        let done = run(&mut queue, done);
        assert_eq!((result(&done[3]), queue.counts().completed), (vec![SUM; 16], 2));
    }
}

#[test]
fn a_pool_has_the_slots_that_run_time_asks_for() {
    const MOST: usize = 130;
    let board = SimBoard::new(2);
    for slots in [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, MOST] {
        let region = region(&board, 2 * MOST * 64);
        let pool = region.pool(slots, 64).unwrap();
        assert_eq!((pool.slots(), pool.taken()), (slots, 0));
        assert_eq!(
            region.free_bytes(),
            region.len_bytes() - slots * 64,
            "no byte for those that are not asked for"
        );
        for _ in 0..2 {
            let out: Vec<CpuBuf> = std::iter::from_fn(|| pool.take().ok()).collect();
            let mut starts: Vec<_> = out.iter().map(CpuBuf::offset_bytes).collect();
            starts.sort_unstable();
            assert_eq!(starts, (0..slots).map(|slot| starts[0] + slot * 64).collect::<Vec<_>>());
            assert_eq!(pool.taken(), slots);
            assert_eq!(pool.take().unwrap_err(), Error::NoSlots { slots });
        }
        assert_eq!(pool.taken(), 0);
    }
}

#[test]
fn half_is_devices_while_other_is_viewed() {
    let board = SimBoard::new(3);
    let region = Region::new(still_memory(&board, 8192)).unwrap();
    let pool = region.pool(4, 512).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut queue = queue(&device);
    let [a, b, bias, c] = buffers(&pool);
    let (c, mut beside) = c.split_at(64).unwrap();
    let view = beside.view_mut::<u8>().unwrap();
    view.fill(0x5A);
    queue.submit(operands([a, b, bias, c]), &GEMM.words()).unwrap();
    view[0] = 0x5B; // a live view beside the device's line
    let [a, b, bias, c] = queue.wait(LIMIT).unwrap().unwrap().buffers;
    view[1] = 0x5C;
    assert_eq!((view[0], view[1], view[447]), (0x5B, 0x5C, 0x5A));
    assert_eq!(result(&c), [SUM; 16]);
    let (left, right) = c.split_at(16).unwrap();
    drop((left, a, b, bias));
    assert_eq!(pool.taken(), 1);
    drop(beside);
    drop(right);
    assert_eq!(pool.taken(), 0);
}

#[test]
fn one_jobs_output_is_the_next_ones_input() {
    // Int8 out of the first job, then in again as A: ones times twos plus 100, shifted by 0, is 127
    // when saturated.
    let (board, narrow) =
        (SimBoard::new(4), Gemm { output: Output::Int8 { relu: true, shift: 0 }, ..GEMM });
    let region = Region::new(still_memory(&board, 8192)).unwrap();
    let pool = region.pool(8, SLOT).unwrap();
    let (first, second) =
        (SimGemm8::new(&board, board.port()), SimGemm8::new(&board, board.coherent_port()));
    let (mut first, mut second) = (queue(&first), queue(&second));
    let [a, b, bias, c] = buffers(&pool);
    let whole = [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..16)];
    let [a, b, bias, c] = on_the_device(&mut first, whole, narrow);
    let d = pool.take().unwrap();
    let [c, b, bias, d] = on_the_device(
        &mut first,
        [c.to_device(..), b.to_device(..), bias.to_device(..), d.from_device(..64)],
        GEMM,
    );
    // The same again through a port of the other kind, into the buffer that a device holds already.
    let [c, b, bias, d] = on_the_device(
        &mut second,
        [c.to_device(..), b.to_device(..), bias.to_device(..), d.from_device(..64)],
        GEMM,
    );
    let d = d.into_cpu().unwrap();
    assert_eq!(result(&d), [16 * 127 * 2 + 100; 16]);
    drop((a, b, bias, c, d));
    assert_eq!(pool.taken(), 0);
}

#[test]
fn dropped_queue_stops_and_hung_job_returns() {
    let board = unlucky(Faults { hang: 1000, ..Faults::NONE });
    let region = Region::new(still_memory(&board, 8192)).unwrap();
    let pool = region.pool(4, SLOT).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut dropped = queue(&device);
    dropped.submit(operands(buffers(&pool)), &GEMM.words()).unwrap();
    drop(dropped);
    assert_eq!(pool.taken(), 0);

    let mut queue = queue(&device);
    queue.submit(operands(buffers(&pool)), &GEMM.words()).unwrap();
    assert!(
        queue.try_next::<4>().unwrap().is_none() && queue.wait::<4>(LIMIT).unwrap().is_none(),
        "it hangs"
    );
    assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (4, 1, false));
    queue.stop().unwrap();
    let [.., c] = queue.take_back::<4>().unwrap().unwrap().buffers;
    assert_eq!(c.into_cpu().unwrap().view::<u8>().unwrap().len(), SLOT);
    assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
}

#[test]
fn forgotten_jobs_and_stuck_devices_leak() {
    for forgets in [false, true] {
        let board = unlucky(Faults { stuck: 1000, ..Faults::NONE });
        let device = SimGemm8::new(&board, board.port());
        {
            let mut queue = queue(&device);
            let region = region(&board, 8192);
            let pool = region.pool(8, SLOT).unwrap();
            let failed = queue.run(operands(buffers(&pool)), &GEMM.words(), LIMIT).unwrap_err();
            assert!(matches!(failed.error, Error::WillNotStop { .. }), "{failed}");
            assert_eq!((pool.taken(), queue.len(), failed.buffers.is_none()), (4, 1, true));
            drop(failed);
            device.reset().unwrap();
            queue.clear().unwrap();
            assert_eq!((pool.taken(), queue.len()), (0, 0), "the reset stopped it");
            queue.submit(operands(buffers(&pool)), &GEMM.words()).unwrap();
            if forgets {
                std::mem::forget(queue);
            } else {
                drop(queue);
            }
            assert_eq!(pool.taken(), 4);
        }
        // Queue, region and pool are gone; the stuck device writes on, into memory that is still
        // there.
        device.run_for(1_000).unwrap();
        assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
    }
}

#[test]
fn threads_share_region_pool_and_slot() {
    const ROUNDS: u8 = if cfg!(miri) { 10 } else { 200 };
    let board = SimBoard::new(6);
    let region = Region::new(still_memory(&board, 8192)).unwrap();
    let pool = region.pool(3, SLOT).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2_u8 {
            let (pool, region) = (&pool, &region);
            scope.spawn(move || {
                let mut own = region.alloc(64, Align::LINE).unwrap();
                own.view_mut::<u8>().unwrap().fill(thread);
                for round in 0..ROUNDS {
                    let mut buf = pool.take().unwrap();
                    buf.view_mut::<u8>().unwrap().fill(round);
                    assert!(buf.view::<u8>().unwrap().iter().all(|&byte| byte == round));
                    let (left, mut right) = buf.split_at(100).unwrap();
                    let other = scope.spawn(move || {
                        right.view_mut::<u8>().unwrap().fill(0xFF);
                    });
                    assert_eq!(left.view::<u8>().unwrap(), [round; 100]);
                    drop(left);
                    other.join().unwrap();
                }
                assert!(own.view::<u8>().unwrap().iter().all(|&byte| byte == thread));
            });
        }
    });
    assert_eq!(pool.taken(), 0);
}

#[test]
fn views_slices_and_copies() {
    let board = SimBoard::new(5);
    let region = region(&board, 4096);
    let mut buf = region.alloc(200, Align::LINE).unwrap();
    assert_eq!(buf.len_bytes(), 256);
    buf.copy_from_slice(&[7; 200]).unwrap();
    assert_eq!(region.stats().bytes_copied, 200);
    let mut part = buf.slice(4..36).unwrap();
    part.view_mut::<[u8; 16]>().unwrap()[1] = [9; 16];
    assert_eq!(part.view_at::<u32>(16..20).unwrap(), [u32::from_ne_bytes([9; 4])]);
    let whole = part.whole();
    assert_eq!(whole.view_at::<u8>(19..21).unwrap(), [7, 9]);
}

#[test]
fn port_offset_counts_for_physical_only() {
    let board = SimBoard::new(5);
    let port = Port { offset: 0x4000_0000, ..board.port() };
    for (base, first) in [
        (BaseAddr::Phys(PhysAddr(1 << 28)), 0x5000_0000),
        (BaseAddr::Dev(DevAddr(1 << 28)), 0x1000_0000),
    ] {
        let spec = SimSpec { len_bytes: 4096, base: Some(base), ..SimSpec::default() };
        let region = Region::new(board.memory_with(spec).unwrap()).unwrap();
        let buf = region.alloc(64, Align::LINE).unwrap();
        let ptr = buf.view::<u8>().unwrap().as_ptr();
        assert_eq!(region.dev_addr_of(&port, ptr, 64), Ok(DevAddr(first)));
        assert_eq!(region.host_ptr_of(&port, DevAddr(first)).unwrap().as_ptr().cast_const(), ptr);
    }
}

/// A driver that cannot be stopped comes back, and works once its device was reset.
#[test]
fn queue_on_a_stuck_device_returns_its_driver() {
    let board = unlucky(Faults { stuck: 1000, ..Faults::NONE });
    let pool = region(&board, 8192).pool(4, SLOT).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut first = queue(&device);
    first.submit(operands(four(&pool)), &GEMM.words()).unwrap();
    drop(first);
    let driver = Gemm8::open_simulated(device.window().unwrap()).unwrap();
    let refused = GemmQueue::new(driver, 1).unwrap_err();
    assert!(matches!(refused.error, Error::WillNotStop { .. }));
    device.reset().unwrap();
    assert!(GemmQueue::new(refused.into_returned(), 1).is_ok());
}
