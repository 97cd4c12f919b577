//! The core from end to end, small enough for Miri: region, pool, queue, split, chain, forget and
//! drop on the simulated board. `miri.rs` runs this file under Miri's two aliasing models.

use contigo::{
    Align, CpuBuf, DevAddr, DevBuf, Error, Limits, Operand, PhysAddr, Pool, Port, Queue, Region,
    job::queue_bytes,
    mem::Requirements,
    sim::{Faults, Sim, SimBoard, SimConfig, SimSpec, SimWindow},
    types::BaseAddr,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8};
use std::{mem::MaybeUninit, time::Duration};

/// One row of 16 ones, a 16 x 16 matrix of twos, a bias of 100: every sum is 132.
const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
const SUM: i32 = 132;
/// A slot that holds any operand of [`GEMM`].
const SLOT: usize = 256;
const LIMIT: Duration = Duration::from_millis(20);

type GemmQueue = Queue<Gemm8<SimWindow<Gemm8Model>>>;

fn queue(device: &SimGemm8) -> GemmQueue {
    Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap()
}

/// A board where every job has the same bad luck.
fn unlucky(faults: Faults) -> SimBoard {
    SimBoard::with(SimConfig { seed: 7, faults })
}

/// What a program gives for ever.
fn given(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    Box::leak(vec![MaybeUninit::uninit(); bytes].into_boxed_slice())
}

/// Memory that needs no kernel: three of them, and room to align.
fn still_memory(board: &SimBoard, len_bytes: usize) -> Sim {
    board.memory_over(Box::leak(vec![0_u8; 4 * len_bytes + 64].into_boxed_slice())).unwrap()
}

/// The same, and the account of it.
fn still_region(board: &SimBoard, len_bytes: usize) -> Region {
    let limits = Limits::default();
    let account = given(limits.control_bytes::<Sim>().unwrap());
    Region::with_memory(still_memory(board, len_bytes), Requirements::default(), limits, account)
        .unwrap()
}

/// Fills A, B and bias.
fn fill([a, b, bias]: [&mut CpuBuf; 3]) {
    a.view_at_mut::<i8>(..16).unwrap().fill(1);
    b.view_at_mut::<i8>(..256).unwrap().fill(2);
    bias.view_at_mut::<i32>(..64).unwrap().fill(100);
}

/// A, B, bias and C from a pool, the first three filled.
fn buffers(pool: &Pool) -> [CpuBuf; 4] {
    let [mut a, mut b, mut bias, c] = std::array::from_fn(|_| pool.take().unwrap());
    fill([&mut a, &mut b, &mut bias]);
    [a, b, bias, c]
}

/// The operands of [`GEMM`] in four buffers.
fn operands([a, b, bias, c]: [CpuBuf; 4]) -> [Operand; 4] {
    [a.to_device(..16), b.to_device(..256), bias.to_device(..64), c.from_device(..64)]
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
    let config = SimConfig { seed: 1, faults: Faults::NONE };
    assert!(matches!(
        SimBoard::in_memory(config, given(1024)),
        Err(Error::Exhausted { capacity_bytes: 1024, .. })
    ));
    let board = SimBoard::in_memory(config, given(16 << 10)).unwrap();
    let region = still_region(&board, 4096);
    let model = Gemm8Model::default();
    let device =
        SimGemm8::in_memory(&board, board.port(), model, given(size_of::<Gemm8Model>() + 512))
            .unwrap();
    let pool = region.pool_with_memory(4, SLOT, given(Pool::control_bytes(4).unwrap())).unwrap();
    let driver = Gemm8::open_simulated(device.window().unwrap()).unwrap();
    let mut queue = Queue::with_memory(driver, 1, given(queue_bytes(1, 4).unwrap())).unwrap();
    drop((board, device, region));
    assert_eq!(result(&run(&mut queue, buffers(&pool))[3]), [SUM; 16]);
}

#[test]
fn a_job_on_memory_without_a_kernel() {
    for coherent in [false, true] {
        let board = SimBoard::new(1);
        let port = if coherent { board.coherent_port() } else { board.port() };
        let region = still_region(&board, 4096);
        let device = SimGemm8::new(&board, port);
        let mut queue = queue(&device);
        let mut buffers = std::array::from_fn(|_| region.alloc(SLOT, Align::LINE).unwrap());
        let [a, b, bias, _] = &mut buffers;
        fill([a, b, bias]);
        for _ in 0..2 {
            buffers = run(&mut queue, buffers);
        }
        assert_eq!(result(&buffers[3]), [SUM; 16]);
        assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
        assert_eq!(queue.counts().completed, 2);
    }
}

#[test]
fn buffers_of_two_pools_and_a_region_in_one_job() {
    let board = SimBoard::new(2);
    let region = Region::new(board.memory(16 * 1024).unwrap()).unwrap();
    let (narrow, pool) = (region.pool(70, 64).unwrap(), region.pool(2, SLOT).unwrap());
    let free_bytes = region.free_bytes();
    let device = SimGemm8::new(&board, board.port());
    let mut queue = queue(&device);
    let (mut a, mut bias) = (narrow.take().unwrap(), narrow.take().unwrap());
    let (mut b, c) = (pool.take().unwrap(), region.alloc(64, Align::DLPACK).unwrap());
    let _other = pool.take().unwrap();
    assert_eq!(pool.take().unwrap_err(), Error::NoSlots { slots: 2 });
    fill([&mut a, &mut b, &mut bias]);
    let [a, b, bias, c] = run(&mut queue, [a, b, bias, c]);
    assert_eq!(result(&c), [SUM; 16]);
    drop((a, b, bias, c));
    assert_eq!((narrow.taken(), pool.taken(), region.free_bytes()), (0, 1, free_bytes));
    assert_eq!(
        std::iter::from_fn(|| narrow.take().ok()).collect::<Vec<_>>().len(),
        70,
        "every slot of two words"
    );
}

#[test]
fn a_pool_has_the_slots_that_run_time_asks_for() {
    const MOST: usize = 130;
    let board = SimBoard::new(2);
    for slots in [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, MOST] {
        let region = Region::new(board.memory(2 * MOST * 64).unwrap()).unwrap();
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

    let failed = queue.run(operands(buffers(&pool)), &GEMM.words(), LIMIT).unwrap_err();
    assert_eq!(failed.error, Error::Timeout { timeout_us: 20_000 });
    let [.., c] = failed.buffers.unwrap();
    assert_eq!(c.into_cpu().unwrap().view::<u8>().unwrap().len(), SLOT);
    assert_eq!((pool.taken(), queue.is_empty()), (0, true));
}

#[test]
fn forgotten_jobs_and_stuck_devices_leak() {
    for forgets in [false, true] {
        let board = unlucky(Faults { stuck: 1000, ..Faults::NONE });
        let device = SimGemm8::new(&board, board.port());
        {
            let mut queue = queue(&device);
            let region = Region::new(board.memory(8192).unwrap()).unwrap();
            let pool = region.pool(8, SLOT).unwrap();
            let failed = queue.run(operands(buffers(&pool)), &GEMM.words(), LIMIT).unwrap_err();
            assert!(
                matches!(
                    failed,
                    contigo::JobError { error: Error::WillNotStop { .. }, buffers: None, .. }
                ),
                "{failed}"
            );
            assert_eq!((pool.taken(), queue.len()), (4, 1));
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
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let mut buf = region.alloc(200, Align::LINE).unwrap();
    assert_eq!(buf.len_bytes(), 256);
    buf.copy_from_slice(&[7; 200]).unwrap();
    assert_eq!(region.stats().bytes_copied, 200);
    let mut part = buf.slice(4..36).unwrap();
    part.view_mut::<[u8; 16]>().unwrap()[1] = [9; 16];
    assert_eq!(part.view_at::<u32>(16..20).unwrap(), [u32::from_ne_bytes([9; 4])]);
    assert!(matches!(
        part.view::<u64>(),
        Err(Error::View { len_bytes: 32, element_bytes: 8, align_bytes: 8 })
    ));
    let whole = part.whole();
    assert_eq!(whole.view_at::<u8>(19..21).unwrap(), [7, 9]);
    let ptr = whole.view::<u8>().unwrap().as_ptr();
    let addr = region.dev_addr_of(&board.port(), ptr, 256).unwrap();
    assert_eq!(region.host_ptr_of(&board.port(), addr).unwrap().as_ptr().cast_const(), ptr);
}

#[test]
fn port_offset_counts_for_physical_only() {
    let board = SimBoard::new(5);
    let port = Port { offset: 0x4000_0000, ..board.port() };
    for (base, first) in [
        (BaseAddr::Phys(PhysAddr(1 << 28)), 0x5000_0000),
        (BaseAddr::Dev(DevAddr(1 << 28)), 0x1000_0000),
    ] {
        let region = Region::new(
            board
                .memory_with(SimSpec { len_bytes: 4096, base: Some(base), ..SimSpec::default() })
                .unwrap(),
        )
        .unwrap();
        let buf = region.alloc(64, Align::LINE).unwrap();
        let ptr = buf.view::<u8>().unwrap().as_ptr();
        assert_eq!(region.dev_addr_of(&port, ptr, 64), Ok(DevAddr(first)));
        assert_eq!(region.host_ptr_of(&port, DevAddr(first)).unwrap().as_ptr().cast_const(), ptr);
    }
}
