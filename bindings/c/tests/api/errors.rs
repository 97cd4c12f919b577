//! The runtime's refusals, through the C functions: each has a code of its own, and its numbers in
//! the text.

use crate::common::*;
use contigo_c::*;
use core::ptr;

/// Nothing that a program asks for is left out in silence.
#[test]
fn option_not_fitting_the_name_is_refused() {
    let (board, alone) = (Board::new(), region_options(0));
    let (sim, device) = (board.sim, board.device);
    for (name, options, word) in [
        (c"hugetlb", contigo_region_options { sim, ..alone }, "sim (for sim"),
        (c"sim", contigo_region_options { sim, device, ..alone }, "sim (for sim"),
        (c"dma-heap:x", contigo_region_options { translated: 1, ..alone }, "translated (for u-dma"),
        (
            c"u-dma-buf:x",
            contigo_region_options { translated: 1, device, ..alone },
            "translated (for u-dma",
        ),
        (
            c"u-dma-buf:x",
            contigo_region_options { translated: 2, ..alone },
            "translated cannot be 2",
        ),
        (
            c"hugetlb",
            contigo_region_options { write_combined: 1, ..alone },
            "write_combined (for cuda",
        ),
        (
            c"cuda",
            contigo_region_options { write_combined: 1, device, ..alone },
            "write_combined (for cuda",
        ),
    ] {
        let word = format!("contigo_region_options.{word}");
        refused(try_region(name, &options), CONTIGO_E_VALUE, &word);
    }
    // A board has one seed.
    refused(try_region(c"sim:4", &region_options(sim)), CONTIGO_E_NEEDS_DEVICE, "sim:4");
    ok(contigo_region_close(open_region(c"sim:3", &region_options(sim))));
    board.close();
}

#[test]
fn memory_that_is_not_as_asked_for() {
    let board = Board::new();
    let good = region_options(board.sim);
    for (options, code, word) in [
        (contigo_region_options { len_bytes: 0, ..good }, CONTIGO_E_BLOCK_SIZE, "0 bytes"),
        (contigo_region_options { align_bytes: 48, ..good }, CONTIGO_E_NOT_POWER_OF_TWO, "48"),
        (contigo_region_options { align_bytes: 1 << 30, ..good }, CONTIGO_E_MISALIGNED, "10737"),
        (contigo_region_options { addr_bits: 20, ..good }, CONTIGO_E_TOO_HIGH, "20 address bits"),
        (contigo_region_options { sim: board.port, ..good }, CONTIGO_E_KIND, "simulated board"),
    ] {
        refused(try_region(c"sim", &options), code, word);
    }
    let alone = region_options(0);
    let translated = contigo_region_options { translated: 1, ..alone };
    for (name, options) in [
        (c"u-dma-buf:contigo-none", alone),
        (c"u-dma-buf:contigo-none", translated),
        (c"dma-heap:contigo-none", alone),
    ] {
        refused(try_region(name, &options), CONTIGO_E_OS, "failed: errno 2, ENOENT");
    }
    for name in [c"u-dma-buf:../etc", c"dma-heap:../etc"] {
        refused(try_region(name, &alone), CONTIGO_E_BAD_NAME, "without spaces and without /");
    }
    refused(try_region(c"u-dma-buf:", &alone), CONTIGO_E_BAD_NAME, "a part is missing");
    refused(
        try_region(c"hugetlb", &contigo_region_options { len_bytes: usize::MAX, ..alone }),
        CONTIGO_E_ARGUMENT,
        "len_bytes",
    );
    board.close();
}

#[test]
fn memory_that_is_no_dma_buf() {
    let board = Board::new();
    for (region, code, word) in [
        (board.region, CONTIGO_E_UNSUPPORTED, "no dma-buf"),
        (board.pool, CONTIGO_E_KIND, "pool"),
        (0, CONTIGO_E_HANDLE, "region"),
    ] {
        let mut fd = 7;
        refused(unsafe { contigo_region_export(region, &mut fd) }, code, word);
        assert_eq!(fd, -1, "0 is a valid descriptor");
    }
    board.close();
}

#[test]
fn more_than_there_is() {
    let board = Board::new();
    let (free, info) = (1 << 20, region_info(board.region));
    assert_eq!((info.len_bytes, info.line_bytes, info.free_bytes), (free, 64, free - 8 * SLOT));
    let carve = |len, align| unsafe { contigo_carve(board.region, len, align, &mut 0) };
    refused(carve(free, 0), CONTIGO_E_EXHAUSTED, "1048576");
    refused(carve(usize::MAX, 0), CONTIGO_E_EXHAUSTED, "1048576");
    refused(carve(0, 0), CONTIGO_E_ARGUMENT, "the length of a buffer is 0");
    refused(carve(64, 3), CONTIGO_E_NOT_POWER_OF_TWO, "3");
    let pool = |slot, slots| unsafe { contigo_pool_open(board.region, slot, slots, 0, &mut 0) };
    refused(pool(100, 4), CONTIGO_E_SLOT_SIZE, "100");
    refused(pool(0, 4), CONTIGO_E_SLOT_SIZE, "0");
    refused(pool(64, 0), CONTIGO_E_ARGUMENT, "slots is 0");
    refused(pool(64, CONTIGO_MAX_POOL_SLOTS as usize + 1), CONTIGO_E_ARGUMENT, "slots is 1025");
    refused(pool(1 << 20, 4), CONTIGO_E_EXHAUSTED, "1048576");
    refused(pool(usize::MAX - 63, 4), CONTIGO_E_EXHAUSTED, "1048576");
    let bufs: Vec<_> = (0..8).map(|_| board.take()).collect();
    refused(unsafe { contigo_pool_take(board.pool, &mut 0) }, CONTIGO_E_NO_SLOTS, "8 slots");
    assert_eq!(free_slots(board.pool), 0);
    release(bufs);
    assert_eq!(free_slots(board.pool), 8);
    board.close();
}

#[test]
fn ranges_that_overflow() {
    let board = Board::new();
    let buf = board.take();
    for (offset, len) in [
        (0, SLOT + 1),
        (SLOT, 1),
        (SLOT + 1, 0),
        (usize::MAX, 1),
        (1, usize::MAX),
        (usize::MAX, usize::MAX),
    ] {
        let given = give(buf, board.port, offset, len, CONTIGO_READS).0;
        refused(given, CONTIGO_E_OUT_OF_RANGE, "4096");
        assert_eq!(bytes(buf).len(), SLOT, "it stays as it was");
        let mut operands = board.operands();
        (operands[0].offset_bytes, operands[0].len_bytes) = (offset, len);
        refused(board.try_start(&operands).0, CONTIGO_E_OUT_OF_RANGE, "operand 0");
        release_all(&operands);
    }
    let long = [0_u8; SLOT + 1];
    let write = |len| unsafe { contigo_buf_write(buf, long.as_ptr().cast(), len) };
    refused(write(long.len()), CONTIGO_E_OUT_OF_RANGE, "4097");
    refused(write(usize::MAX), CONTIGO_E_OUT_OF_RANGE, "4096");
    refused(give(buf, board.port, 0, 0, CONTIGO_READS).0, CONTIGO_E_BUFFER_SIZE, "0 bytes");
    ok(contigo_buf_release(buf));
    board.close();
}

fn port(
    sim: contigo_sim,
    window: (u64, u64),
    addr_bits: u32,
) -> Result<contigo_port, contigo_status> {
    let (window_first, window_last) = window;
    let options = contigo_port_options {
        window_first,
        window_last,
        addr_bits,
        ..port_options(c"my-port", sim)
    };
    let mut port = 0;
    match unsafe { contigo_port_define(&options, &mut port) } {
        CONTIGO_OK => Ok(port),
        status => Err(status),
    }
}

#[test]
fn ports_that_do_not_fit() {
    let board = Board::new();
    let buf = board.take();
    let soc = find_port(c"zynq-hp0");
    refused(give(buf, soc, 0, 64, CONTIGO_READS).0, CONTIGO_E_WRONG_BUS, "zynq-hp0");
    let low = port(board.sim, (0, 0xFFFF), 32).unwrap();
    refused(
        give(buf, low, 0, 64, CONTIGO_READS).0,
        CONTIGO_E_UNREACHABLE,
        "my-port reaches 0x0..=0xffff",
    );
    for name in [c"zynq-acp", c"zynq-dmac", c"cyclone-v-acp"] {
        ok(contigo_port_close(find_port(name)));
    }
    refused(try_port(c"none").0, CONTIGO_E_NOT_FOUND, "no port is called that; there are cuda:0, ");
    refused(port(0, (0, 1), 0).unwrap_err(), CONTIGO_E_ARGUMENT, "addr_bits is 0");
    refused(port(0, (0, 1), 65).unwrap_err(), CONTIGO_E_ARGUMENT, "addr_bits is 65");
    refused(port(0, (2, 1), 32).unwrap_err(), CONTIGO_E_VALUE, "window_last");
    refused(port(board.region, (0, 1), 32).unwrap_err(), CONTIGO_E_KIND, "region");
    let (mut addr, mut byte) = (0, ptr::null_mut());
    let of = |ptr, len, addr: &mut u64| unsafe {
        contigo_dev_addr_of(board.region, board.port, ptr, len, addr)
    };
    refused(of(ptr::null(), 1, &mut addr), CONTIGO_E_NOT_OURS, "not in this region");
    refused(of((&raw const board).cast(), 1, &mut addr), CONTIGO_E_NOT_OURS, "not in this region");
    refused(of(try_map(buf, CONTIGO_READ).1, 2 << 20, &mut addr), CONTIGO_E_NOT_OURS, "2097152");
    refused(
        unsafe { contigo_host_ptr_of(board.region, board.port, 1, &mut byte) },
        CONTIGO_E_NOT_OURS,
        "0x1",
    );
    ok(contigo_buf_unmap(buf));
    for port in [soc, low] {
        ok(contigo_port_close(port));
    }
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn jobs_that_the_engine_does_not_take() {
    let board = Board::new();
    let operands = board.operands();
    let start = |operands: [contigo_operand; 2]| board.try_start(&operands).0;
    let [from, to] = operands;
    let long = contigo_operand { len_bytes: 128, ..from };
    refused(start([long, to]), CONTIGO_E_BUFFER_SIZE, "operand 1 has 64 bytes, the job needs 128");
    refused(
        start([contigo_operand { offset_bytes: SLOT, ..from }, to]),
        CONTIGO_E_OUT_OF_RANGE,
        "operand 0",
    );
    let count = try_job(board.engine, &[from], &[]).0;
    refused(count, CONTIGO_E_ARGUMENT, "the count of operands is 1");
    let count = try_job(board.engine, &[from; 17], &[]).0;
    refused(count, CONTIGO_E_VALUE, "n cannot be 17");
    let args = [0_u64; 40];
    let words = |at: usize, n| unsafe {
        contigo_job_start(
            board.engine,
            operands.as_ptr(),
            2,
            args.as_ptr().byte_add(at).cast(),
            n,
            0,
            &mut 0,
        )
    };
    refused(words(0, 65), CONTIGO_E_VALUE, "args_words cannot be 65");
    refused(words(1, 1), CONTIGO_E_VALUE, "the address of args");
    for operand in operands {
        assert_eq!(bytes(operand.buf).len(), SLOT, "every buffer is the CPU's");
    }
    ok(wait(board.start(&operands), 20_000));
    let device = sim_device(board.sim, c"zdma");
    let good = engine_options(c"zdma", device, board.port, 0);
    let (none, width) = (c"none".as_ptr(), c"width=3".as_ptr());
    for (options, code, word) in [
        (
            contigo_engine_options { driver: none, ..good },
            CONTIGO_E_NOT_FOUND,
            "there is no such driver; others that are here: ",
        ),
        (
            contigo_engine_options { settings: width, ..good },
            CONTIGO_E_UNKNOWN_SETTING,
            "`width`: setting 1 is unknown to this driver, whose settings are: ",
        ),
        (contigo_engine_options { window: 256, ..good }, CONTIGO_E_VALUE, "window cannot be 256"),
        (contigo_engine_options { polled: 2, ..good }, CONTIGO_E_VALUE, "polled cannot be 2"),
        // A driver that finds another device.
        (
            engine_options(c"pl330", device, board.port, board.region),
            CONTIGO_E_REGISTER_WINDOW,
            "pl330",
        ),
    ] {
        refused(try_engine(&options), code, word);
    }
    // One that has no memory of its own.
    let pl330 = sim_device(board.sim, c"pl330");
    let without = engine_options(c"pl330", pl330, board.port, 0);
    refused(try_engine(&without), CONTIGO_E_UNSUPPORTED, "needs memory");
    refused(
        try_engine(&engine_options(c"zdma", board.device, board.port, 0)),
        CONTIGO_E_HAS_DRIVER,
        "",
    );
    [device, pl330].into_iter().for_each(|device| ok(contigo_device_close(device)));
    release_all(&operands);
    board.close();
}

#[test]
fn devices_that_fail_give_the_buffers_back() {
    let faulty = [
        (contigo_sim_options { hang: 1_000, ..sim_options() }, CONTIGO_E_TIMEOUT, "within 500 us"),
        (contigo_sim_options { error: 1_000, ..sim_options() }, CONTIGO_E_FAULT, "zdma reports"),
        (
            contigo_sim_options { short_transfer: 1_000, ..sim_options() },
            CONTIGO_E_SHORT_TRANSFER,
            "of 64 bytes",
        ),
    ];
    for (options, code, word) in faulty {
        let board = Board::with(&options);
        let operands = board.operands();
        let job = board.start(&operands);
        refused(wait(job, 500), code, word);
        refused(wait(job, 500), CONTIGO_E_STALE, "job");
        for operand in operands {
            assert_eq!(bytes(operand.buf).len(), SLOT, "every buffer is the CPU's");
        }
        let info = info_of(board.engine);
        assert_eq!(
            (info.started, info.completed, info.in_flight, info.ended, info.stopped),
            (1, 0, 0, 0, 0)
        );
        release_all(&operands);
        board.close();
    }
}

/// The text has the address.
#[test]
fn a_fault_says_where_the_core_was() {
    let board = Board::with(&contigo_sim_options { error: 1_000, ..sim_options() });
    let device = sim_device(board.sim, c"axi_cdma");
    let engine = open_engine(&engine_options(c"axi_cdma", device, board.port, board.region));
    let operands = board.operands();
    let job = start_job(engine, &operands, &[]);
    refused(wait(job, 500), CONTIGO_E_FAULT_AT, "(bus address 0x");
    release_all(&operands);
    ok(contigo_engine_close(engine));
    ok(contigo_device_close(device));
    board.close();
}

#[test]
fn stuck_device_keeps_buffers_until_reset() {
    let board = Board::with(&contigo_sim_options { stuck: 1_000, ..sim_options() });
    let operands = board.operands();
    let job = board.start(&operands);
    refused(
        wait(job, 500),
        CONTIGO_E_WILL_NOT_STOP,
        "before that: the job did not end within 500 us",
    );
    for operand in operands {
        refused(contigo_buf_release(operand.buf), CONTIGO_E_DEVICE_OWNED, "device's");
        refused(try_map(operand.buf, CONTIGO_READ).0, CONTIGO_E_DEVICE_OWNED, "device's");
        refused(contigo_buf_take_back(operand.buf), CONTIGO_E_DEVICE_OWNED, "device's");
    }
    let others = board.operands();
    refused(board.try_start(&others).0, CONTIGO_E_QUEUE_STOPPED, "");
    refused(contigo_engine_close(board.engine), CONTIGO_E_HAS_JOB, "1 jobs");
    refused(contigo_queue_stop(board.engine), CONTIGO_E_WILL_NOT_STOP, "did not stop");
    assert_eq!((info_of(board.engine).stopped, info_of(board.engine).in_flight), (1, 1));
    refused(contigo_device_close(board.device), CONTIGO_E_STILL_USED, "device");
    // From outside: then it stops, and nothing is lost.
    ok(unsafe { contigo_device_reset(board.device) });
    ok(contigo_queue_stop(board.engine));
    assert_eq!((info_of(board.engine).stopped, info_of(board.engine).ended), (0, 1));
    refused(wait(job, 500), CONTIGO_E_CANCELLED, "stopped before");
    // The same again, by the stop.
    let job = board.start(&others);
    refused(contigo_queue_stop(board.engine), CONTIGO_E_WILL_NOT_STOP, "did not stop");
    ok(unsafe { contigo_device_reset(board.device) });
    cancel(board.engine, job);
    for operands in [operands, others] {
        assert!(operands.iter().all(|operand| bytes(operand.buf).len() == SLOT));
        release_all(&operands);
    }
    board.close();
}
