//! Buffers that are cut in two: each part is a buffer, and a slot is whole again when the last of
//! them is released.

use crate::common::*;
use contigo_c::*;
use core::ptr;

fn try_split(buf: contigo_buf, at_bytes: usize) -> (contigo_status, contigo_buf) {
    let mut rest = 1;
    (unsafe { contigo_buf_split(buf, at_bytes, &mut rest) }, rest)
}

/// Where it is in its region, and how many bytes it has.
#[track_caller]
fn place(buf: contigo_buf) -> (usize, usize) {
    let info = info(buf);
    (info.offset_bytes, info.len_bytes)
}

#[test]
fn part_is_devices_while_other_is_cpus() {
    let board = Board::new();
    let left = board.take();
    fill(left, 7);
    let (start, _) = place(left);
    let right = split(left, 1024);
    assert_ne!(left, right);
    assert_eq!((place(left), place(right)), ((start, 1024), (start + 1024, SLOT - 1024)));
    let (status, addr) = give(right, board.port, 0, 64, CONTIGO_READS | CONTIGO_WRITES);
    ok(status);
    fill(left, 9);
    assert_eq!(
        give(left, board.port, 0, 64, CONTIGO_READS | CONTIGO_WRITES),
        (CONTIGO_OK, addr - 1024)
    );
    for part in [left, right] {
        refused(try_map(part, CONTIGO_READ).0, CONTIGO_E_DEVICE_OWNED, "device's");
        ok(contigo_buf_take_back(part));
    }
    assert_eq!((bytes(left), bytes(right)), (vec![9; 1024], vec![7; SLOT - 1024]));
    assert_eq!(place(left), (start, 1024));
    release([left, right]);
    board.close();
}

#[test]
fn slot_is_free_and_whole_after_last_part() {
    let board = Board::new();
    // Parts of parts, released in every order.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let first = board.take();
        let (start, _) = place(first);
        let third = split(first, 2048);
        let parts = [first, split(first, 64), third, split(third, 64)];
        assert_eq!(
            parts.map(place),
            [(start, 64), (start + 64, 1984), (start + 2048, 64), (start + 2112, SLOT - 2112)]
        );
        for (released, index) in order.into_iter().enumerate() {
            assert_eq!(free_slots(board.pool), 7, "{released} are released");
            refused(
                contigo_pool_close(board.pool),
                CONTIGO_E_STILL_USED,
                &format!("{} still use this pool", 4 - released),
            );
            ok(contigo_buf_release(parts[index]));
            refused(contigo_buf_release(parts[index]), CONTIGO_E_STALE, "gone");
        }
        assert_eq!(free_slots(board.pool), 8);
        // Every slot is whole, and none of the handles is any of them.
        let all: Vec<_> = (0..8).map(|_| board.take()).collect();
        assert!(all.iter().all(|&buf| place(buf).1 == SLOT && !parts.contains(&buf)));
        all.iter().for_each(|&buf| fill(buf, 3));
        let mut starts: Vec<_> = all.iter().map(|&buf| place(buf).0).collect();
        starts.sort_unstable();
        assert_eq!(starts, (0..8).map(|slot| slot * SLOT).collect::<Vec<_>>());
        release(all);
    }
    // Thousands of times: no entry and no count is lost.
    for _ in 0..3 * CONTIGO_MAX_BUFS {
        let buf = board.take();
        let rest = split(buf, 64);
        ok(contigo_buf_release(buf));
        ok(contigo_buf_release(rest));
    }
    board.close();
}

#[test]
fn both_ends_are_places_to_cut() {
    let board = Board::new();
    for (at, lens) in [(0, (0, SLOT)), (SLOT, (SLOT, 0))] {
        let left = board.take();
        let right = split(left, at);
        assert_eq!((bytes(left).len(), bytes(right).len()), lens);
        let empty = if at == 0 { left } else { right };
        refused(give(empty, board.port, 0, 0, CONTIGO_READS).0, CONTIGO_E_BUFFER_SIZE, "0 bytes");
        release([left, right]);
    }
    board.close();
}

#[test]
fn a_carved_buffer_is_cut_too() {
    let board = Board::new();
    let left = carve(board.region, 1024, 0);
    let (start, _) = place(left);
    let right = split(left, 512);
    let last = split(right, 256);
    assert_eq!(
        [left, right, last].map(place),
        [(start, 512), (start + 512, 256), (start + 768, 256)]
    );
    for (users, part) in [(3, left), (2, last), (1, right)] {
        // The pool is one more.
        refused(
            contigo_region_close(board.region),
            CONTIGO_E_STILL_USED,
            &format!("{} still use this region", users + 1),
        );
        ok(contigo_buf_release(part));
    }
    board.close();
}

#[test]
fn parts_of_one_slot_are_operands_of_one_job() {
    let board = Board::new();
    let whole = board.take();
    fill(whole, 2);
    let rest = split(whole, 64);
    fill(whole, 1);
    let operands = [part(whole, 64), part(rest, 64)];
    let job = board.start(&operands);
    for buf in [whole, rest] {
        refused(try_split(buf, 0).0, CONTIGO_E_DEVICE_OWNED, "wait for its job");
    }
    ok(wait(job, 20_000));
    assert_eq!((bytes(rest)[..64].to_vec(), bytes(rest)[64]), (vec![1; 64], 2));
    release_all(&operands);
    assert_eq!(free_slots(board.pool), 8);
    board.close();
}

#[test]
fn a_slot_has_at_most_256_parts() {
    let board = Board::new();
    let first = board.take();
    let mut parts: Vec<_> = (1..256).rev().map(|at| split(first, at * 8)).collect();
    let (status, rest) = try_split(first, 4);
    refused(status, CONTIGO_E_TOO_MANY_PARTS, "256");
    assert_eq!((rest, place(first).1), (1, 8), "it is as it was");
    ok(contigo_buf_release(parts.remove(100)));
    parts.push(split(first, 4));
    parts.push(first);
    release(parts);
    assert_eq!(free_slots(board.pool), 8);
    board.close();
}

#[test]
fn a_buffer_that_is_out_is_not_cut() {
    let board = Board::new();
    let buf = board.take();
    let stays = |status, code, word| {
        let (found, rest) = status;
        refused(found, code, word);
        assert_eq!(rest, 1, "no handle comes with a refusal");
    };
    stays(try_split(buf, SLOT + 1), CONTIGO_E_OUT_OF_RANGE, "4096");
    stays(try_split(buf, usize::MAX), CONTIGO_E_OUT_OF_RANGE, "4096");
    for access in [CONTIGO_READ, CONTIGO_WRITE] {
        ok(try_map(buf, access).0);
        stays(try_split(buf, 64), CONTIGO_E_MAPPED, "unmap it first");
        ok(contigo_buf_unmap(buf));
    }
    ok(give(buf, board.port, 0, 64, CONTIGO_READS).0);
    stays(try_split(buf, 64), CONTIGO_E_DEVICE_OWNED, "device's");
    ok(contigo_buf_take_back(buf));
    let (status, tensor) = lend(buf, &options(&[16]));
    ok(status);
    stays(try_split(buf, 64), CONTIGO_E_TENSOR_OUT, "deleter");
    delete(tensor);
    ok(contigo_buf_unlend(buf));
    stays(try_split(0, 64), CONTIGO_E_HANDLE, "buffer");
    stays(try_split(board.pool, 64), CONTIGO_E_KIND, "pool");
    refused(unsafe { contigo_buf_split(buf, 64, ptr::null_mut()) }, CONTIGO_E_NULL, "rest");
    assert_eq!(place(buf).1, SLOT, "it is as it was");
    // A part is refused in the same way, and the other part does not mind.
    let rest = split(buf, 1024);
    ok(try_map(rest, CONTIGO_READ).0);
    stays(try_split(rest, 64), CONTIGO_E_MAPPED, "unmap it first");
    stays(try_split(buf, 1025), CONTIGO_E_OUT_OF_RANGE, "1024");
    ok(contigo_buf_release(split(buf, 64)));
    ok(contigo_buf_unmap(rest));
    release([buf, rest]);
    stays(try_split(buf, 64), CONTIGO_E_STALE, "gone");
    assert_eq!(free_slots(board.pool), 8);
    board.close();
}

#[test]
fn a_part_that_a_stuck_device_has_keeps_its_slot() {
    let board = Board::with(&contigo_sim_options { stuck: 1_000, ..sim_options() });
    let mut operands = board.operands();
    let rest = split(operands[0].buf, 64);
    operands[0].len_bytes = 64;
    let job = board.start(&operands);
    refused(wait(job, 500), CONTIGO_E_WILL_NOT_STOP, "did not stop");
    refused(try_split(operands[0].buf, 0).0, CONTIGO_E_DEVICE_OWNED, "device's");
    fill(rest, 1);
    ok(contigo_buf_release(rest));
    assert_eq!(free_slots(board.pool), 6, "a device may still write the other part");
    refused(contigo_pool_close(board.pool), CONTIGO_E_STILL_USED, "2 still use this pool");
    ok(unsafe { contigo_device_reset(board.device) });
    cancel(board.engine, job);
    release_all(&operands);
    board.close();
}
