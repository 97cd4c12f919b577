//! Mistakes that Rust's types forbid, tried through the C functions. Each is an error code with a
//! text, and nothing is lost.

use crate::common::*;
use contigo_c::*;
use core::ptr;

#[test]
fn a_buffer_that_a_device_has_is_not_used() {
    let board = Board::new();
    let buf = board.take();
    let (status, addr) = give(buf, board.port, 0, SLOT, CONTIGO_READS | CONTIGO_WRITES);
    ok(status);
    assert_eq!(dev_addr(buf), (addr, SLOT));
    for access in [CONTIGO_READ, CONTIGO_WRITE] {
        let (status, ptr, _) = try_map(buf, access);
        refused(status, CONTIGO_E_DEVICE_OWNED, "contigo_buf_take_back");
        assert!(ptr.is_null(), "no pointer comes with a refusal");
    }
    refused(contigo_buf_release(buf), CONTIGO_E_DEVICE_OWNED, "device's");
    let wrote = unsafe { contigo_buf_write(buf, [1_u8].as_ptr().cast(), 1) };
    refused(wrote, CONTIGO_E_DEVICE_OWNED, "device's");
    let given = give(buf, board.port, 0, SLOT, CONTIGO_READS | CONTIGO_WRITES).0;
    refused(given, CONTIGO_E_DEVICE_OWNED, "device's");
    ok(contigo_buf_take_back(buf));
    refused(contigo_buf_take_back(buf), CONTIGO_E_CPU_OWNED, "the CPU's");
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn a_buffer_of_a_job_is_not_used() {
    let board = Board::new();
    let operands = board.operands();
    let job = board.start(&operands);
    for operand in operands {
        refused(try_map(operand.buf, CONTIGO_READ).0, CONTIGO_E_DEVICE_OWNED, "wait for its job");
        refused(contigo_buf_release(operand.buf), CONTIGO_E_DEVICE_OWNED, "wait for its job");
        refused(contigo_buf_take_back(operand.buf), CONTIGO_E_DEVICE_OWNED, "wait for its job");
        let mut info = empty::<contigo_buf_info>();
        refused(
            unsafe { contigo_buf_get_info(operand.buf, &mut info) },
            CONTIGO_E_DEVICE_OWNED,
            "wait for its job",
        );
    }
    ok(wait(job, 20_000));
    assert_eq!(bytes(operands[1].buf)[..4], [1; 4], "64 times 1 times 2");
    release_all(&operands);
    board.close();
}

#[test]
fn buffer_is_released_once_then_stale() {
    let board = Board::new();
    let buf = board.take();
    ok(contigo_buf_release(buf));
    refused(contigo_buf_release(buf), CONTIGO_E_STALE, "gone");
    let again = board.take();
    assert_ne!(buf, again, "the same slot has another handle");
    refused(contigo_buf_release(buf), CONTIGO_E_STALE, "gone");
    refused(try_map(buf, CONTIGO_READ).0, CONTIGO_E_STALE, "gone");
    refused(give(buf, board.port, 0, 64, CONTIGO_READS).0, CONTIGO_E_STALE, "gone");
    let carved = carve(board.region, 64, 0);
    ok(contigo_buf_release(carved));
    refused(contigo_buf_release(carved), CONTIGO_E_STALE, "gone");
    ok(contigo_buf_release(again));
    board.close();
}

#[test]
fn a_view_keeps_the_buffer_from_being_given_away() {
    let board = Board::new();
    let operands = board.operands();
    let buf = operands[0].buf;
    assert!(!try_map(buf, CONTIGO_READ).1.is_null());
    assert!(!try_map(buf, CONTIGO_READ).1.is_null(), "two may read");
    refused(try_map(buf, CONTIGO_WRITE).0, CONTIGO_E_MAPPED, "views: 2");
    refused(give(buf, board.port, 0, 64, CONTIGO_READS).0, CONTIGO_E_MAPPED, "unmap it first");
    refused(contigo_buf_release(buf), CONTIGO_E_MAPPED, "unmap it first");
    let wrote = unsafe { contigo_buf_write(buf, [1_u8].as_ptr().cast(), 1) };
    refused(wrote, CONTIGO_E_MAPPED, "unmap it first");
    let (status, job) = board.try_start(&operands);
    refused(status, CONTIGO_E_MAPPED, "unmap it first");
    assert_eq!(job, 0, "no handle comes with a refusal");
    ok(contigo_buf_unmap(buf));
    ok(contigo_buf_unmap(buf));
    refused(contigo_buf_unmap(buf), CONTIGO_E_NOT_MAPPED, "not mapped");
    assert!(!try_map(buf, CONTIGO_WRITE).1.is_null());
    refused(try_map(buf, CONTIGO_READ).0, CONTIGO_E_MAPPED, "views: 1");
    refused(try_map(buf, CONTIGO_WRITE).0, CONTIGO_E_MAPPED, "views: 1");
    ok(contigo_buf_unmap(buf));
    // The refused job left everything as it was.
    ok(wait(board.start(&operands), 20_000));
    release_all(&operands);
    board.close();
}

#[test]
fn handles_are_told_apart() {
    let board = Board::new();
    let buf = board.take();
    refused(contigo_buf_release(board.region), CONTIGO_E_KIND, "region");
    refused(contigo_region_close(buf), CONTIGO_E_KIND, "buffer");
    refused(contigo_engine_close(board.pool), CONTIGO_E_KIND, "pool");
    refused(wait(board.engine, 0), CONTIGO_E_KIND, "engine");
    refused(contigo_sim_close(board.port), CONTIGO_E_KIND, "port");
    for garbage in [0, 1, 42, 1 << 40, u64::MAX, 0xDEAD_BEEF] {
        refused(contigo_buf_release(garbage), CONTIGO_E_HANDLE, "no handle");
        refused(wait(garbage, 0), CONTIGO_E_HANDLE, "no handle");
        refused(contigo_pool_close(garbage), CONTIGO_E_HANDLE, "no handle");
    }
    // Every single bit of a handle matters. The upper four are the kind, the lower twelve the
    // entry, which may be another's.
    for bit in 12..60 {
        refused(contigo_buf_release(buf ^ 1 << bit), CONTIGO_E_STALE, "gone");
    }
    // An entry that its table does not have.
    refused(contigo_region_close(board.region | 0xFFF), CONTIGO_E_HANDLE, "no handle");
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn what_is_used_is_not_closed() {
    let board = Board::new();
    let (buf, carved) = (board.take(), carve(board.region, 64, 0));
    refused(contigo_sim_close(board.sim), CONTIGO_E_STILL_USED, "still use this simulated board");
    refused(contigo_region_close(board.region), CONTIGO_E_STILL_USED, "2 still use this region");
    refused(contigo_pool_close(board.pool), CONTIGO_E_STILL_USED, "1 still use this pool");
    ok(contigo_buf_release(carved));
    refused(contigo_region_close(board.region), CONTIGO_E_STILL_USED, "1 still use this region");
    ok(contigo_buf_release(buf));
    // Its descriptors are the region's.
    let pl330 = sim_device(board.sim, c"pl330");
    let copier = open_engine(&engine_options(c"pl330", pl330, board.port, board.region));
    ok(contigo_pool_close(board.pool));
    refused(contigo_region_close(board.region), CONTIGO_E_STILL_USED, "1 still use this region");
    refused(contigo_device_close(pl330), CONTIGO_E_STILL_USED, "1 still use this device");
    ok(contigo_engine_close(copier));
    ok(contigo_device_close(pl330));
    let pool = open_pool(board.region, SLOT, 2, 0);
    // The handle of the pool before, whose place this one has, costs it no slot.
    refused(unsafe { contigo_pool_take(board.pool, &mut 0) }, CONTIGO_E_STALE, "gone");
    refused(unsafe { contigo_pool_free_slots(board.pool, &mut 0) }, CONTIGO_E_STALE, "gone");
    assert_eq!(free_slots(pool), 2);
    let board = Board { pool, ..board };
    board.close();
    for status in [
        contigo_region_close(board.region),
        contigo_pool_close(board.pool),
        contigo_engine_close(board.engine),
    ] {
        refused(status, CONTIGO_E_STALE, "gone");
    }
    refused(contigo_sim_close(board.sim), CONTIGO_E_STALE, "gone");
    refused(contigo_port_close(board.port), CONTIGO_E_STALE, "gone");
    refused(unsafe { contigo_pool_take(board.pool, &mut 0) }, CONTIGO_E_STALE, "gone");
}

#[test]
fn full_engine_refuses_jobs_and_closing() {
    let board = Board::new();
    let operands = board.operands();
    let job = board.start(&operands);
    let others = board.operands();
    refused(board.try_start(&others).0, CONTIGO_E_QUEUE_FULL, "take one that ended out first");
    refused(contigo_engine_close(board.engine), CONTIGO_E_HAS_JOB, "wait for them, or stop it");
    cancel(board.engine, job);
    for status in [wait(job, 0), wait_device(job, 0)] {
        refused(status, CONTIGO_E_STALE, "job");
    }
    let (status, done) = wait_for(job, 0);
    refused(status, CONTIGO_E_STALE, "job");
    assert_eq!(done, 0);
    // The job of another life of the engine. Its entry may be an engine of another test's by now,
    // and in a call: that call ends.
    let stale = || {
        let status =
            (0..1_000_000).map(|_| wait(job, 0)).find(|status| *status != CONTIGO_E_IN_CALL);
        refused(status.unwrap(), CONTIGO_E_STALE, "job");
    };
    ok(contigo_engine_close(board.engine));
    stale();
    let engine = open_engine(&engine_options(c"zdma", board.device, board.port, 0));
    let board = Board { engine, ..board };
    stale();
    let next = board.start(&others);
    stale();
    ok(wait(next, 20_000));
    release_all(&operands);
    release_all(&others);
    board.close();
}

#[test]
fn one_buffer_is_one_operand() {
    let board = Board::new();
    let mut operands = board.operands();
    let c = operands[1].buf;
    operands[1].buf = operands[0].buf;
    refused(board.try_start(&operands).0, CONTIGO_E_SAME_BUFFER, "operands 0 and 1");
    operands[1].buf = c;
    ok(wait(board.start(&operands), 20_000));
    let (status, ptr, _) = try_map(c, CONTIGO_READ);
    ok(status);
    ok(contigo_buf_unmap(c));
    for source in
        [ptr.wrapping_byte_add(64), ptr.wrapping_byte_add(SLOT - 1), ptr.wrapping_byte_sub(63)]
    {
        refused(unsafe { contigo_buf_write(c, source, 64) }, CONTIGO_E_SAME_BUFFER, "itself");
    }
    release_all(&operands);
    board.close();
}

/// A program that opens into a variable with a good handle still has that handle after a refusal.
#[test]
fn refused_open_leaves_the_old_handle() {
    let board = Board::new();
    let (mut engine, mut region, mut pool, mut device) =
        (board.engine, board.region, board.pool, board.device);
    // SAFETY: the texts are texts, the pointers references.
    unsafe {
        refused(
            contigo_engine_open(&engine_options(c"zdna", device, 0, 0), &mut engine),
            CONTIGO_E_NOT_FOUND,
            "zdma",
        );
        refused(contigo_region_open(c"nothing".as_ptr(), 64, &mut region), CONTIGO_E_BAD_NAME, "");
        refused(contigo_pool_open(region, 64, 0, 0, &mut pool), CONTIGO_E_ARGUMENT, "");
        refused(contigo_device_open(c"sim:zdna".as_ptr(), &mut device), CONTIGO_E_NOT_FOUND, "");
    }
    assert_eq!(
        [engine, region, pool, device],
        [board.engine, board.region, board.pool, board.device]
    );
    board.close();
}

#[test]
fn null_is_refused_everywhere() {
    let board = Board::new();
    let buf = board.take();
    let operands = board.operands();
    let null = ptr::null_mut();
    let spec = contigo_operand_spec { r#use: CONTIGO_READS, ..Default::default() };
    let job: *mut contigo_job = &mut 0;
    let engine: *mut contigo_engine = &mut 0;
    let nameless =
        contigo_engine_options { driver: ptr::null(), ..engine_options(c"", board.device, 0, 0) };
    let good = own_driver(&spec);
    let driver = |ops| try_driver(&ops, ptr::null_mut::<u8>(), board.port).0;
    // SAFETY: NULL is what is tested; the other pointers are references.
    let calls = unsafe {
        [
            contigo_sim_open(ptr::null(), &mut 0),
            contigo_sim_open(&sim_options(), null),
            contigo_sim_port(board.sim, 0, null),
            contigo_port_find(ptr::null(), &mut 0),
            contigo_port_find(c"zynq-hp0".as_ptr(), null),
            contigo_port_define(ptr::null(), &mut 0),
            contigo_region_open(ptr::null(), 64, &mut 0),
            contigo_region_open(c"sim".as_ptr(), 64, null),
            contigo_region_open_with(c"sim".as_ptr(), ptr::null(), &mut 0),
            contigo_region_open_with(c"sim".as_ptr(), &region_options(board.sim), null),
            contigo_region_open_with(ptr::null(), &region_options(board.sim), &mut 0),
            contigo_region_get_info(board.region, ptr::null_mut()),
            contigo_region_export(board.region, ptr::null_mut()),
            contigo_dev_addr_of(board.region, board.port, ptr::null(), 1, null),
            contigo_host_ptr_of(board.region, board.port, 0, ptr::null_mut()),
            contigo_pool_open(board.region, 64, 1, 0, null),
            contigo_pool_take(board.pool, null),
            contigo_pool_free_slots(board.pool, ptr::null_mut()),
            contigo_carve(board.region, 64, 0, null),
            contigo_buf_get_info(buf, ptr::null_mut()),
            contigo_buf_map(buf, CONTIGO_READ, ptr::null_mut(), &mut 0),
            contigo_buf_write(buf, ptr::null(), 1),
            contigo_buf_split(buf, 64, null),
            contigo_engine_open(ptr::null(), engine),
            contigo_engine_open(&engine_options(c"zdma", board.device, 0, 0), null),
            contigo_engine_open(&nameless, engine),
            contigo_engine_open_driver(ptr::null(), ptr::null_mut(), board.port, engine),
            contigo_engine_open_driver(&good, ptr::null_mut(), board.port, null),
            driver(contigo_driver_ops { name: ptr::null(), ..good }),
            driver(contigo_driver_ops { stop: None, ..good }),
            driver(contigo_driver_ops { operands: ptr::null(), ..good }),
            contigo_engine_get_info(board.engine, ptr::null_mut()),
            contigo_engine_get_operand(board.engine, 0, ptr::null_mut()),
            contigo_engine_irq_arm(board.engine, ptr::null_mut()),
            contigo_sim_device(board.sim, ptr::null(), &mut 0),
            contigo_sim_device(board.sim, c"zdma".as_ptr(), null),
            contigo_job_start(board.engine, ptr::null(), 2, ptr::null(), 0, 0, job),
            contigo_job_start(board.engine, operands.as_ptr(), 2, ptr::null(), 1, 0, job),
            contigo_job_start(board.engine, operands.as_ptr(), 2, ptr::null(), 0, 0, null),
            contigo_job_wait_for(0, 0, ptr::null_mut(), ptr::null_mut()),
            contigo_queue_next(board.engine, 0, null, ptr::null_mut()),
        ]
    };
    for (index, status) in calls.into_iter().enumerate() {
        assert_eq!(status, CONTIGO_E_NULL, "call {index}: {status}");
    }
    // Where NULL means "not wanted".
    let mut bytes = ptr::null_mut();
    ok(unsafe { contigo_buf_map(buf, CONTIGO_READ, &mut bytes, ptr::null_mut()) });
    ok(contigo_buf_unmap(buf));
    ok(unsafe { contigo_buf_write(buf, ptr::null(), 0) });
    ok(unsafe { contigo_buf_give(buf, board.port, 0, 64, CONTIGO_READS, null) });
    ok(contigo_buf_take_back(buf));
    assert!(unsafe { contigo_last_error(ptr::null_mut(), 0) } > 0);
    ok(contigo_buf_release(buf));
    release_all(&operands);
    board.close();
}

#[test]
fn numbers_not_in_the_header_are_refused() {
    let board = Board::new();
    let operands = board.operands();
    let buf = operands[0].buf;
    refused(try_map(buf, 0).0, CONTIGO_E_VALUE, "access");
    refused(try_map(buf, 3).0, CONTIGO_E_VALUE, "access");
    for uses in [0, 4, 7] {
        let given = give(buf, board.port, 0, 64, uses).0;
        refused(given, CONTIGO_E_VALUE, &format!("use cannot be {uses}"));
    }
    refused(unsafe { contigo_sim_port(board.sim, 2, &mut 0) }, CONTIGO_E_VALUE, "coherent");
    let spec = contigo_operand_spec { r#use: CONTIGO_READS, ..Default::default() };
    let driver = |ops| try_driver(&ops, ptr::null_mut::<u8>(), board.port).0;
    let good = own_driver(&spec);
    for (ops, word) in [
        (contigo_driver_ops { n_operands: 0, ..good }, "n_operands cannot be 0"),
        (contigo_driver_ops { n_operands: 17, ..good }, "n_operands cannot be 17"),
        (contigo_driver_ops { out_of_order: 2, ..good }, "out_of_order"),
    ] {
        refused(driver(ops), CONTIGO_E_VALUE, word);
    }
    let bent = contigo_operand_spec { r#use: 0, ..spec };
    refused(driver(own_driver(&bent)), CONTIGO_E_VALUE, "use cannot be 0");
    let bent = contigo_operand_spec { align_bytes: 3, ..spec };
    refused(driver(own_driver(&bent)), CONTIGO_E_NOT_POWER_OF_TWO, "3");
    refused(
        unsafe { contigo_engine_get_operand(board.engine, 2, &mut spec.clone()) },
        CONTIGO_E_VALUE,
        "operand cannot be 2",
    );
    release_all(&operands);
    board.close();
}

#[test]
fn a_simulated_device_has_no_file_to_wait_for() {
    let board = Board::new();
    let mut fd = 7;
    let mut arm = |engine| (unsafe { contigo_engine_irq_arm(engine, &mut fd) }, fd);
    let operands = board.operands();
    let job = board.start(&operands);
    // Whether the engine has a job or not.
    for _ in 0..2 {
        let (status, fd) = arm(board.engine);
        refused(status, CONTIGO_E_KIND, "no interrupt to sleep for");
        assert_eq!(fd, -1, "0 is a valid descriptor");
        let _ = wait(job, 20_000);
    }
    assert_eq!(arm(board.region), (CONTIGO_E_KIND, -1));
    release_all(&operands);
    board.close();
    assert_eq!(arm(board.engine), (CONTIGO_E_STALE, -1));
}

#[test]
fn texts_are_checked() {
    let find = |name: *const core::ffi::c_char| unsafe { contigo_port_find(name, &mut 0) };
    refused(find(c"\xFF\xFE".as_ptr()), CONTIGO_E_TEXT, "UTF-8");
    let long = std::ffi::CString::new("x".repeat(CONTIGO_MAX_NAME_BYTES as usize + 1)).unwrap();
    refused(find(long.as_ptr()), CONTIGO_E_TEXT, "127 bytes");
    let just = std::ffi::CString::new("x".repeat(CONTIGO_MAX_NAME_BYTES as usize)).unwrap();
    refused(find(just.as_ptr()), CONTIGO_E_NOT_FOUND, "port");
}
