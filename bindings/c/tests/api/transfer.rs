//! A program's work with buffers and jobs when it does everything right.

use crate::common::*;
use contigo_c::*;
use core::ptr;

#[test]
fn hand_over_and_query_tell_same_address() {
    let board = Board::new();
    let buf = board.take();
    let (_, host, _) = try_map(buf, CONTIGO_READ);
    ok(contigo_buf_unmap(buf));
    let (status, addr) = give(buf, board.port, 64, 128, CONTIGO_READS);
    ok(status);
    let here = info(buf);
    assert_eq!((here.len_bytes, here.addr, here.device_owned), (128, addr, 1));
    assert_eq!(
        answer(|addr| unsafe {
            contigo_dev_addr_of(board.region, board.port, host.byte_add(64), 128, addr)
        }),
        addr
    );
    let mut back = ptr::null_mut();
    ok(unsafe { contigo_host_ptr_of(board.region, board.port, addr, &mut back) });
    assert_eq!(back, host.wrapping_byte_add(64));
    ok(contigo_buf_take_back(buf));
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn hand_over_syncs_only_the_named_bytes() {
    let board = Board::new();
    let buf = board.take();
    let mut last = region_info(board.region);
    let mut step = |for_device, for_cpu, copied| {
        let now = region_info(board.region);
        let changed = [
            now.bytes_synced_for_device - last.bytes_synced_for_device,
            now.bytes_synced_for_cpu - last.bytes_synced_for_cpu,
            now.bytes_copied - last.bytes_copied,
        ];
        last = now;
        assert_eq!(changed, [for_device, for_cpu, copied]);
    };
    ok(unsafe { contigo_buf_write(buf, [9_u8; 100].as_ptr().cast(), 100) });
    step(0, 0, 100);
    ok(give(buf, board.port, 10, 80, CONTIGO_READS).0);
    step(80, 0, 0);
    ok(contigo_buf_take_back(buf));
    step(0, 0, 0);
    ok(give(buf, board.port, 0, 100, CONTIGO_WRITES).0);
    step(128, 0, 0);
    ok(contigo_buf_take_back(buf));
    step(0, 128, 0);
    // A port that snoops needs nothing.
    let coherent = sim_port(board.sim, 1);
    ok(give(buf, coherent, 0, 100, CONTIGO_READS | CONTIGO_WRITES).0);
    ok(contigo_buf_take_back(buf));
    step(0, 0, 0);
    ok(contigo_port_close(coherent));
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn output_is_next_input_without_the_cpu() {
    let board = Board::new();
    let operands = board.operands();
    let [from, to] = operands;
    let job = board.start(&[from, to]);
    ok(wait_device(job, 20_000));
    let before = region_info(board.region);
    // The output of the first is the input of the second, which writes into its old input.
    refused(try_map(to.buf, CONTIGO_READ).0, CONTIGO_E_DEVICE_OWNED, "device's");
    let job = board.start(&[to, from]);
    ok(wait_device(job, 20_000));
    assert_eq!(
        region_info(board.region).bytes_synced_for_cpu,
        before.bytes_synced_for_cpu,
        "the CPU never had them between"
    );
    for operand in operands {
        ok(contigo_buf_take_back(operand.buf));
        assert_eq!(bytes(operand.buf)[..64], [1; 64]);
    }
    release_all(&operands);
    board.close();
}

#[test]
fn a_job_is_polled() {
    let board = Board::new();
    let operands = board.operands();
    let job = board.start(&operands);
    let mut looks = 0;
    loop {
        let (status, done) = wait_for(job, 0);
        ok(status);
        if done == 1 {
            break;
        }
        looks += 1;
        assert!(looks < 10_000, "each look takes some of the simulated time");
    }
    assert!(looks > 0);
    assert_eq!(bytes(operands[1].buf)[..4], [1; 4]);
    release_all(&operands);
    board.close();
}

#[test]
fn a_pool_begins_where_it_was_asked_to() {
    let board = Board::new();
    let first = carve(board.region, 64, 0);
    for align in [64, 1024, 4096, 65_536] {
        let pool = open_pool(board.region, 4096, 2, align);
        let mut slots = [(); 2].map(|()| take(pool));
        slots.sort_by_key(|&buf| info(buf).offset_bytes);
        let (status, addr) = give(slots[0], board.port, 0, 64, CONTIGO_READS);
        ok(status);
        ok(contigo_buf_take_back(slots[0]));
        let (status, host, _) = try_map(slots[0], CONTIGO_READ);
        ok(status);
        ok(contigo_buf_unmap(slots[0]));
        assert_eq!((addr % align as u64, host.addr() % align), (0, 0), "{align}");
        release(slots);
        ok(contigo_pool_close(pool));
    }
    ok(contigo_buf_release(first));
    board.close();
}

/// Real memory, where the machine has some to give: its addresses are pagemap's, and the same rules
/// hold.
#[test]
fn huge_pages_are_a_region_like_any_other() {
    let mut region = 0;
    if unsafe { contigo_region_open(c"hugetlb".as_ptr(), 2 << 20, &mut region) } != CONTIGO_OK {
        return skip(&last_error());
    }
    let port = find_port(c"pc-pcie");
    let buf = carve(region, 4096, 4096);
    fill(buf, 7);
    let (status, addr) = give(buf, port, 0, 4096, CONTIGO_READS | CONTIGO_WRITES);
    ok(status);
    assert!(addr != 0 && addr.is_multiple_of(4096), "{addr:#x}");
    refused(contigo_region_close(region), CONTIGO_E_STILL_USED, "region");
    ok(contigo_buf_take_back(buf));
    assert_eq!(bytes(buf), [7; 4096]);
    ok(contigo_buf_release(buf));
    ok(contigo_region_close(region));
    ok(contigo_port_close(port));
}
