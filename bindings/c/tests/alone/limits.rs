//! Full tables are refusals, and what is closed makes room.

use crate::alone;
use crate::common::*;
use contigo_c::*;

/// Calls until it is refused; how many times it was not.
fn until_full(limit: u32, mut call: impl FnMut(*mut u64) -> contigo_status) -> Vec<u64> {
    let mut made = Vec::new();
    for _ in 0..=limit {
        let mut raw = 0;
        match call(&raw mut raw) {
            CONTIGO_OK => made.push(raw),
            status => {
                refused(status, CONTIGO_E_TABLE_FULL, "which is the limit");
                assert_eq!(raw, 0);
                return made;
            }
        }
    }
    made
}

#[test]
fn every_table_has_its_end() {
    alone(tables);
}

#[test]
fn the_largest_pool_has_1024_slots() {
    alone(a_pool_of_1024_slots);
}

#[test]
fn so_many_tensors_are_out_and_no_more() {
    alone(tensors);
}

fn tables() {
    let board = Board::new();

    let ports =
        until_full(CONTIGO_MAX_PORTS, |port| unsafe { contigo_sim_port(board.sim, 1, port) });
    assert_eq!(ports.len(), CONTIGO_MAX_PORTS as usize - 1);
    ports.into_iter().for_each(|port| ok(contigo_port_close(port)));

    let small = contigo_region_options { len_bytes: 64, ..region_options(board.sim) };
    let mut boards =
        until_full(CONTIGO_MAX_SIMS, |sim| unsafe { contigo_sim_open(&sim_options(), sim) });
    assert_eq!(boards.len(), CONTIGO_MAX_SIMS as usize - 1);
    let regions = until_full(CONTIGO_MAX_REGIONS, |region| unsafe {
        contigo_region_open_with(c"sim".as_ptr(), &small, region)
    });
    assert_eq!(regions.len(), CONTIGO_MAX_REGIONS as usize - 1);
    regions.into_iter().for_each(|region| ok(contigo_region_close(region)));
    boards.drain(..).for_each(|sim| ok(contigo_sim_close(sim)));

    let devices = until_full(CONTIGO_MAX_DEVICES, |device| unsafe {
        contigo_sim_device(board.sim, c"zdma".as_ptr(), device)
    });
    assert_eq!(devices.len(), CONTIGO_MAX_DEVICES as usize - 1);
    devices.into_iter().for_each(|device| ok(contigo_device_close(device)));
    let spec = contigo_operand_spec { r#use: CONTIGO_READS, ..Default::default() };
    let ops = own_driver(&spec);
    let engines = until_full(CONTIGO_MAX_ENGINES, |engine| unsafe {
        contigo_engine_open_driver(&ops, core::ptr::null_mut(), board.port, engine)
    });
    assert_eq!(engines.len(), CONTIGO_MAX_ENGINES as usize - 1);
    engines.into_iter().for_each(|engine| ok(contigo_engine_close(engine)));

    let pools = until_full(CONTIGO_MAX_POOLS, |pool| unsafe {
        contigo_pool_open(board.region, 64, 1, 0, pool)
    });
    assert_eq!(pools.len(), CONTIGO_MAX_POOLS as usize - 1);
    pools.into_iter().for_each(|pool| ok(contigo_pool_close(pool)));

    // The board's pool has eight.
    let bufs =
        until_full(CONTIGO_MAX_BUFS, |buf| unsafe { contigo_carve(board.region, 64, 0, buf) });
    assert_eq!(bufs.len(), CONTIGO_MAX_BUFS as usize - 8);
    let free_bytes = || region_info(board.region).free_bytes;
    let all_out = free_bytes();
    // No entry for the rest: the buffer is as it was.
    let split = |buf| {
        let mut rest = 1;
        (unsafe { contigo_buf_split(buf, 32, &mut rest) }, rest)
    };
    let slot = board.take();
    for buf in [bufs[9], slot] {
        let (status, rest) = split(buf);
        refused(status, CONTIGO_E_TABLE_FULL, "buffer");
        assert_eq!((rest, bytes(buf).len()), (1, if buf == slot { SLOT } else { 64 }));
    }
    // With one entry more, either can be cut.
    ok(contigo_buf_release(bufs[0]));
    let (status, rest) = split(bufs[9]);
    ok(status);
    assert_eq!((bytes(bufs[9]).len(), bytes(rest).len()), (32, 32));
    ok(contigo_buf_release(rest));
    let (status, rest) = split(slot);
    ok(status);
    refused(split(rest).0, CONTIGO_E_TABLE_FULL, "buffer");
    release([slot, rest]);
    // Its own entry waits for the slot, no matter which part is released first.
    ok(contigo_buf_release(bufs[1]));
    // One entry too few: refused before anything is carved.
    bufs[2..9].iter().for_each(|&buf| ok(contigo_buf_release(buf)));
    let pool = |slots| {
        let mut pool = 0;
        (unsafe { contigo_pool_open(board.region, 64, slots, 0, &mut pool) }, pool)
    };
    assert_eq!(free_bytes(), all_out + 9 * 64, "what is released is free again");
    refused(pool(10).0, CONTIGO_E_TABLE_FULL, "buffer");
    assert_eq!(free_bytes(), all_out + 9 * 64);
    // Nor does a pool keep entries that found no room in the region.
    refused(
        unsafe { contigo_pool_open(board.region, 1 << 20, 9, 0, &mut 0) },
        CONTIGO_E_EXHAUSTED,
        "1048576",
    );
    let (status, nine) = pool(9);
    ok(status);
    ok(contigo_pool_close(nine));
    assert_eq!(free_bytes(), all_out + 9 * 64, "and a pool that is closed");
    bufs[9..].iter().for_each(|&buf| ok(contigo_buf_release(buf)));

    // Ports are closed, their names stay, once each.
    let named = |name: &str| {
        let name = std::ffi::CString::new(name).unwrap();
        let options = port_options(&name, 0);
        let mut port = 0;
        let status = unsafe { contigo_port_define(&options, &mut port) };
        if status == CONTIGO_OK {
            ok(contigo_port_close(port));
        }
        status
    };
    for round in 0..2 {
        // The driver above has one.
        for index in 1..CONTIGO_MAX_PORT_NAMES {
            assert_eq!(named(&format!("port-{index}")), CONTIGO_OK, "{round}");
        }
    }
    refused(named("one-more"), CONTIGO_E_TABLE_FULL, "1024 different names");
    assert_eq!(named("port-7"), CONTIGO_OK, "a name that is kept already takes no place");
    board.close();
}

/// The largest pool: as many slots as the runtime's own has at most, each its own bytes.
fn a_pool_of_1024_slots() {
    let sim = answer(|sim| unsafe { contigo_sim_open(&sim_options(), sim) });
    let region = open_region(
        c"sim",
        &contigo_region_options { len_bytes: 1024 * 64, ..region_options(sim) },
    );
    let pool = open_pool(region, 64, 1024, 0);
    let mut offsets: Vec<usize> = Vec::new();
    let bufs: Vec<_> = (0..1024).map(|_| take(pool)).collect();
    refused(unsafe { contigo_pool_take(pool, &mut 0) }, CONTIGO_E_NO_SLOTS, "1024");
    for &buf in &bufs {
        offsets.push(info(buf).offset_bytes);
    }
    offsets.sort_unstable();
    assert_eq!(offsets, (0..1024).map(|slot| slot * 64).collect::<Vec<_>>());
    bufs.into_iter().rev().for_each(|buf| ok(contigo_buf_release(buf)));
    ok(contigo_pool_close(pool));
    ok(contigo_region_close(region));
    ok(contigo_sim_close(sim));
}

/// As many tensors as there may be.
fn tensors() {
    let board = Board::new();
    let pool = open_pool(board.region, 64, 257, 64);
    let bufs: Vec<_> = (0..257).map(|_| take(pool)).collect();
    let tensors: Vec<_> = bufs.iter().map(|&buf| lend(buf, &options(&[16]))).collect();
    let (last, first) = tensors.split_last().unwrap();
    assert!(
        first.iter().all(|(status, _)| *status == CONTIGO_OK)
            && first.len() == CONTIGO_MAX_TENSORS as usize
    );
    refused(last.0, CONTIGO_E_NO_SLOTS, "256 slots");
    for (buf, (status, tensor)) in bufs.into_iter().zip(tensors) {
        if status == CONTIGO_OK {
            delete(tensor);
            ok(contigo_buf_unlend(buf));
        }
        ok(contigo_buf_release(buf));
    }
    ok(contigo_pool_close(pool));
    board.close();
}
