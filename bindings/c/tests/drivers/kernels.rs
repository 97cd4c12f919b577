//! An HLS kernel: by its map, behind a gate, and with a driver in C; and what a job that goes too
//! far comes to.

use crate::common::*;
use contigo_c::*;
use core::ffi::{CStr, c_void};
use core::ptr;

/// The kernel behind `sim:ap_ctrl`, as its tool would say it.
const MAP: &str = r#"{"name": "copy", "protocol": "ap_ctrl_chain", "interrupt": true,
    "pointers": [{"name": "from", "offset": "0x18", "direction": "in", "bytes": "n"},
                 {"name": "to", "offset": "0x24", "direction": "out", "bytes": "n"}],
    "scalars": [{"name": "n", "offset": "0x30"}],
    "results": [{"name": "ap_return", "offset": "0x10"}]}"#;

#[test]
fn a_kernel_is_driven_by_its_map_and_its_names() {
    let board = Board::new();
    let kernel = answer(|kernel| unsafe { contigo_kernel_open(MAP.as_ptr(), MAP.len(), kernel) });
    let mut info = empty::<contigo_kernel_info>();
    ok(unsafe { contigo_kernel_get_info(kernel, &mut info) });
    assert_eq!((info.operands, info.args_words, info.result_words), (2, 1, 1));
    let operand = |name: &CStr, index: &mut u32| unsafe {
        contigo_kernel_operand(kernel, name.as_ptr(), index)
    };
    let mut index = 7;
    ok(operand(c"to", &mut index));
    assert_eq!(index, 1);
    refused(
        operand(c"n", &mut index),
        CONTIGO_E_NOT_FOUND,
        "`n`: this kernel has no operand of this name; those that are most like it: `to`, `from`",
    );
    let mut args = [0; 1];
    let mut set = |name: &CStr, value, words| {
        (
            unsafe { contigo_kernel_set(kernel, name.as_ptr(), value, args.as_mut_ptr(), words) },
            args,
        )
    };
    refused(
        set(c"to", 1, 1).0,
        CONTIGO_E_NOT_FOUND,
        "`to`: this kernel has no scalar of this name; those that are most like it: `n`",
    );
    refused(set(c"n", 1 << 32, 1).0, CONTIGO_E_ARGUMENT, "the scalar is 4294967296");
    refused(set(c"n", 1, 0).0, CONTIGO_E_VALUE, "args_words cannot be 0");
    assert_eq!(set(c"n", 64, 1), (CONTIGO_OK, [64]));

    let device = sim_device(board.sim, c"ap_ctrl");
    let without = engine_options(c"ap_ctrl", device, board.port, 0);
    refused(try_engine(&without), CONTIGO_E_UNSUPPORTED, "map");
    let moved = MAP.replace("0x24", "0x28");
    let other = contigo_engine_options { map: moved.as_ptr(), map_bytes: moved.len(), ..without };
    let told = "a pointer's offset in the map is 40, and for this simulated core it must be 36";
    refused(try_engine(&other), CONTIGO_E_OTHER_MODEL, told);
    let engine =
        open_engine(&contigo_engine_options { map: MAP.as_ptr(), map_bytes: MAP.len(), ..without });
    let operands = board.operands();
    let job = start_job(engine, &operands, &[64]);
    assert_eq!(next(engine, 20_000), (CONTIGO_OK, job));
    assert_eq!(bytes(operands[1].buf)[..64], [1; 64]);
    // It cannot be aborted: what ended while it was being stopped is done, as in Python.
    let job = start_job(engine, &operands, &[64]);
    ok(wait(job, 0));
    assert_eq!(bytes(operands[1].buf)[..64], [1; 64]);
    // The map's rule for lengths: the kernel would believe its scalar.
    let long = try_job(engine, &operands, &[65]).0;
    refused(long, CONTIGO_E_BUFFER_SIZE, "65");
    release_all(&operands);
    [contigo_engine_close(engine), contigo_device_close(device), contigo_kernel_close(kernel)]
        .into_iter()
        .for_each(|status| ok(status));
    refused(unsafe { contigo_kernel_get_info(kernel, &mut info) }, CONTIGO_E_STALE, "kernel");
    board.close();
}

/// A map that says 16 bytes, of a kernel that copies as many as its argument says.
#[test]
fn overreaching_job_fails_on_sim_board() {
    let board = Board::new();
    let map = MAP.replace("\"bytes\": \"n\"", "\"bytes\": \"16\"");
    let device = sim_device(board.sim, c"ap_ctrl");
    let options = contigo_engine_options {
        map: map.as_ptr(),
        map_bytes: map.len(),
        ..engine_options(c"ap_ctrl", device, board.port, 0)
    };
    let engine = open_engine(&options);
    let operands = board.operands().map(|operand| contigo_operand { len_bytes: 16, ..operand });
    let start = |n: u32| start_job(engine, &operands, &[n]);
    ok(wait(start(16), 20_000));
    refused(
        wait(start(64), 20_000),
        CONTIGO_E_WRONG_ACCESS,
        "ap_ctrl, simulated, made 2 accesses to bytes that were not handed over",
    );
    let ended = |(status, job)| {
        assert_ne!(job, 0, "its end is reported, with its handle");
        status
    };
    start(64);
    refused(ended(next(engine, 20_000)), CONTIGO_E_WRONG_ACCESS, "is the map this kernel's");
    assert_eq!(bytes(operands[1].buf)[64..80], [0x55; 16], "the buffers are back");
    start(16);
    assert_eq!(ended(next(engine, 20_000)), CONTIGO_OK, "the next one is right");
    release_all(&operands);
    ok(contigo_engine_close(engine));
    ok(contigo_device_close(device));
    board.close();
    // A test provokes it.
    let board = Board::with(&contigo_sim_options { allow_wrong_accesses: 1, ..sim_options() });
    let device = sim_device(board.sim, c"ap_ctrl");
    let engine = open_engine(&contigo_engine_options { device, port: board.port, ..options });
    let operands = board.operands().map(|operand| contigo_operand { len_bytes: 16, ..operand });
    ok(wait(start_job(engine, &operands, &[64]), 20_000));
    release_all(&operands);
    ok(contigo_engine_close(engine));
    ok(contigo_device_close(device));
    board.close();
    let wrong = contigo_sim_options { allow_wrong_accesses: 2, ..sim_options() };
    refused(
        unsafe { contigo_sim_open(&wrong, &mut 0) },
        CONTIGO_E_VALUE,
        "allow_wrong_accesses cannot be 2",
    );
}

const fn at(offset_bytes: u32, access: u32) -> contigo_register {
    contigo_register { offset_bytes, access }
}
const CTRL: contigo_register = at(0, CONTIGO_READ_CLEARS);

/// The same kernel's driver in C, as `bindings/c/examples/own_driver.c` has it; it believes its
/// argument.
fn copier_in_c(operands: &[contigo_operand_spec; 2]) -> contigo_driver_ops {
    unsafe fn registers(context: *mut c_void) -> contigo_registers {
        unsafe { *context.cast() }
    }
    unsafe extern "C" fn submit(
        context: *mut c_void,
        _: u32,
        operands: *const contigo_dev_slice,
        _: usize,
        args: *const u32,
        _: usize,
    ) -> contigo_status {
        let (registers, from, to) =
            unsafe { (registers(context), (*operands).addr, (*operands.add(1)).addr) };
        let low = |addr: u64| u32::try_from(addr).unwrap();
        for (offset, value) in
            [(0x18, low(from)), (0x1C, 0), (0x24, low(to)), (0x28, 0), (0x30, unsafe { *args })]
        {
            ok(unsafe { contigo_registers_write(registers, at(offset, 0), value) });
        }
        unsafe { contigo_registers_write(registers, CTRL, 1) }
    }
    unsafe extern "C" fn poll(
        context: *mut c_void,
        timeout_us: u32,
        _: *mut contigo_completion,
        ended: *mut u32,
    ) -> contigo_status {
        let registers = unsafe { registers(context) };
        match unsafe {
            contigo_registers_wait_until(registers, CTRL, 2, 2, timeout_us, ptr::null_mut())
        } {
            CONTIGO_OK => unsafe {
                *ended = 1;
                ok(contigo_registers_write(registers, CTRL, 0x10));
                contigo_registers_read(registers, CTRL, &mut 0)
            },
            CONTIGO_E_TIMEOUT => CONTIGO_OK,
            status => status,
        }
    }
    let [first, _] = operands;
    contigo_driver_ops {
        name: c"in C".as_ptr(),
        n_operands: 2,
        submit: Some(submit),
        poll: Some(poll),
        ..own_driver(first)
    }
}

/// The library does not know which device a driver in C has: any of the board's counts.
#[test]
fn c_driver_fails_for_access_by_any_port() {
    let board = Board::new();
    let device = sim_device(board.sim, c"ap_ctrl");
    let mut registers = attach(device, board.port, 0, 1);
    let specs = [CONTIGO_READS, CONTIGO_WRITES]
        .map(|r#use| contigo_operand_spec { r#use, ..Default::default() });
    let operands = board.operands();
    let ops = copier_in_c(&specs);
    let run = |port, registers: &mut contigo_registers, n: u32| {
        let engine = open_driver(&ops, ptr::from_mut(registers), port);
        let job = start_job(engine, &operands, &[n]);
        let status = wait(job, 20_000);
        let said = last_error();
        ok(contigo_engine_close(engine));
        (status, said)
    };
    assert_eq!(run(board.port, &mut registers, 64).0, CONTIGO_OK);
    assert_eq!(bytes(operands[1].buf)[..64], [1; 64]);
    let (status, said) = run(board.port, &mut registers, 65);
    assert!(
        status == CONTIGO_E_WRONG_ACCESS && said.contains("in C, simulated, made 2 accesses"),
        "{status} {said}"
    );
    let options = port_options(c"mine", board.sim);
    let mine = answer(|port| unsafe { contigo_port_define(&options, port) });
    let (status, said) = run(mine, &mut registers, 64);
    assert!(status == CONTIGO_E_WRONG_ACCESS, "its device is behind another port: {status} {said}");
    assert_eq!(run(board.port, &mut registers, 64).0, CONTIGO_OK, "it is blamed once");
    release_all(&operands);
    [contigo_registers_close(registers), contigo_port_close(mine), contigo_device_close(device)]
        .into_iter()
        .for_each(|status| ok(status));
    board.close();
}

/// A kernel that hangs, or runs wild, never stops by itself.
#[test]
fn a_kernel_behind_a_gate_stops_whatever_it_does() {
    for wild in [
        contigo_sim_options { hang: 1_000, ..sim_options() },
        contigo_sim_options { stuck: 1_000, ..sim_options() },
    ] {
        let board = Board::with(&wild);
        let device = sim_device(board.sim, c"ap_ctrl_gated");
        let alone = contigo_engine_options {
            map: MAP.as_ptr(),
            map_bytes: MAP.len(),
            settings: c"stop_us=1000".as_ptr(),
            ..engine_options(c"ap_ctrl", device, board.port, 0)
        };
        let gated = contigo_engine_options { gate: device, gate_offset: 0x1_0000, ..alone };
        let at = |gate_offset| contigo_engine_options { gate_offset, ..gated };
        for (options, code, word) in [
            (at(0), CONTIGO_E_WRONG_DEVICE, "axi_gate"),
            (at(0x1_1000), CONTIGO_E_REGISTER_WINDOW, "axi_gate"),
            (at(2), CONTIGO_E_REGISTER_WINDOW, "axi_gate"),
            (contigo_engine_options { gate_window: 256, ..gated }, CONTIGO_E_VALUE, "gate_window"),
            (contigo_engine_options { gate: 77, ..gated }, CONTIGO_E_HANDLE, ""),
        ] {
            refused(try_engine(&options), code, word);
        }

        let engine = open_engine(&gated);
        for _ in 0..3 {
            let operands = board.operands();
            let job = start_job(engine, &operands, &[64]);
            refused(wait(job, 1_000), CONTIGO_E_TIMEOUT, "");
            release_all(&operands);
        }
        ok(contigo_engine_close(engine));

        // A gate that is a device of its own is its engine's alone.
        let apart = sim_device(board.sim, c"ap_ctrl_gated");
        let engine = open_engine(&contigo_engine_options { gate: apart, ..gated });
        let of_gate = contigo_engine_options { device: apart, ..alone };
        refused(try_engine(&of_gate), CONTIGO_E_HAS_DRIVER, "");
        refused(contigo_device_close(apart), CONTIGO_E_STILL_USED, "device");
        ok(contigo_engine_close(engine));
        let channel = contigo_engine_options {
            settings: c"channel=0".as_ptr(),
            gate: apart,
            gate_offset: 0x1_0000,
            ..engine_options(c"pl330", sim_device(board.sim, c"pl330"), board.port, board.region)
        };
        refused(try_engine(&channel), CONTIGO_E_UNSUPPORTED, "all channels");
        ok(contigo_device_close(apart));

        // No gate.
        let engine = open_engine(&alone);
        let operands = board.operands();
        let job = start_job(engine, &operands, &[64]);
        refused(wait(job, 1_000), CONTIGO_E_WILL_NOT_STOP, "");
        refused(contigo_buf_release(operands[0].buf), CONTIGO_E_DEVICE_OWNED, "");
    }
}

#[test]
fn bad_map_is_refused_with_its_line() {
    let board = Board::new();
    let device = sim_device(board.sim, c"ap_ctrl");
    for (text, word) in
        [("{\n\"name\": \"vadd\",\n\"offset\": 1}", "line 3"), ("", ""), ("<xml", "")]
    {
        let status = unsafe { contigo_kernel_open(text.as_ptr(), text.len(), &mut 0) };
        refused(status, CONTIGO_E_BAD_MAP, word);
        // An engine says the same of it.
        let options = contigo_engine_options {
            map: text.as_ptr(),
            map_bytes: text.len(),
            ..engine_options(c"ap_ctrl", device, 0, 0)
        };
        let opened = try_engine(&options);
        if text.is_empty() {
            assert_ne!(opened, CONTIGO_OK)
        } else {
            refused(opened, CONTIGO_E_BAD_MAP, word)
        }
    }
    ok(contigo_device_close(device));
    board.close();
    refused(unsafe { contigo_kernel_open(ptr::null(), 1, &mut 0) }, CONTIGO_E_NULL, "map");
}

/// Doubles what its context says; `n` chooses what goes wrong.
unsafe extern "C" fn doubles(context: *mut c_void, job: *mut contigo_kernel_job) -> i32 {
    let job = unsafe { &mut *job };
    assert_eq!((job.operand_count, job.scalar_count), (2, 1));
    let operand = |index| unsafe { *job.operands.add(index) };
    let (from, to, n) = (operand(0), operand(1), unsafe { *job.scalars });
    assert_eq!((from.r#use, to.r#use), (CONTIGO_READS, CONTIGO_WRITES));
    assert_eq!([from.len_bytes, to.len_bytes].map(|len| len as u64), [n; 2]);
    let by = unsafe { *context.cast::<u8>() };
    for at in 0..from.len_bytes {
        unsafe { *to.bytes.add(at) = by * *from.bytes.add(at) };
    }
    if n == 63 {
        unsafe { *from.bytes = 77 };
    }
    job.results[0] = 5;
    if n == 62 { -1 } else { 0 }
}

#[test]
fn function_of_c_computes_a_simulated_kernel() {
    let board = Board::new();
    let kernel = answer(|kernel| unsafe { contigo_kernel_open(MAP.as_ptr(), MAP.len(), kernel) });
    let mut by = 2_u8;
    let context = (&raw mut by).cast::<c_void>();
    let simulate = |sim, function, device: &mut contigo_device| unsafe {
        contigo_kernel_simulate(kernel, sim, function, context, device)
    };
    refused(simulate(board.sim, None, &mut 0), CONTIGO_E_NULL, "function");
    refused(simulate(77, Some(doubles), &mut 0), CONTIGO_E_HANDLE, "simulated board");
    let mut device = 0;
    ok(simulate(board.sim, Some(doubles), &mut device));
    ok(contigo_kernel_close(kernel));
    let options = engine_options(c"ap_ctrl", device, board.port, 0);
    let engine =
        open_engine(&contigo_engine_options { map: MAP.as_ptr(), map_bytes: MAP.len(), ..options });
    let operands = board.operands();
    for n in [64, 63, 62, 61] {
        fill(operands[0].buf, 3);
        let job = start_job(engine, &operands, &[n]);
        if n == 63 || n == 62 {
            refused(wait(job, 20_000), CONTIGO_E_NOT_COMPUTED, "did not compute 1 of its jobs");
            continue;
        }
        ok(wait(job, 20_000));
        assert_eq!(bytes(operands[1].buf)[..n as usize], vec![6; n as usize]);
    }
    release_all(&operands);
    ok(contigo_engine_close(engine));
    ok(contigo_device_close(device));
    board.close();
}
