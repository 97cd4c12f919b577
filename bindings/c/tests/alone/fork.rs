//! A child of fork: every function answers CONTIGO_E_FORKED there and touches nothing, and the
//! parent goes on.

use crate::alone;
use crate::common::*;
use contigo_c::*;
use core::ptr;

/// The exit status of a child that does `act`, which neither allocates nor panics.
fn in_a_child(act: impl FnOnce() -> i32) -> i32 {
    match unsafe { libc::fork() } {
        0 => {
            let status = act();
            unsafe { libc::_exit(status) }
        }
        child => {
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert!(
                libc::WIFEXITED(status),
                "the child ended by signal {}",
                libc::WTERMSIG(status)
            );
            libc::WEXITSTATUS(status)
        }
    }
}

/// Functions of the header that can be refused.
const FUNCTIONS: usize = 68;

#[test]
fn a_child_is_refused_and_the_parent_goes_on() {
    alone(fork);
}

fn fork() {
    // The library was not called yet: the child is on its own, and its call is the first.
    let opens = || {
        let mut sim = 0;
        unsafe { contigo_sim_open(&sim_options(), &mut sim) + contigo_sim_close(sim) }
    };
    assert_eq!(in_a_child(opens), CONTIGO_OK);

    let board = Board::new();
    let operands = board.operands();
    let (buf, lent) = (board.take(), board.take());
    let (shape, mut bytes) = ([16], [0_u8; 64]);
    let (status, tensor) = lend(lent, &options(&shape));
    ok(status);
    let job = board.start(&operands);
    let Board { sim, port, region, pool, device: _, engine } = board;
    let named =
        contigo_port_options { name: c"child".as_ptr(), window_last: 1, addr_bits: 32, ..empty() };
    let data = bytes.as_mut_ptr().cast();
    let device = open_device(c"sim:zdma");
    let registers = attach(device, 0, 0, 0);
    let open = engine_options(c"zdma", device, port, 0);
    let reg = contigo_register::default();
    let every_function = |out: &mut u64,
                          len: &mut usize,
                          fd: &mut i32|
     -> [contigo_status; FUNCTIONS] {
        unsafe {
            [
                contigo_buf_get_info(buf, &mut empty::<contigo_buf_info>()),
                contigo_buf_map(buf, CONTIGO_WRITE, ptr::from_mut(out).cast(), ptr::null_mut()),
                contigo_buf_unmap(buf),
                contigo_buf_write(buf, data, 64),
                contigo_buf_split(buf, 64, out),
                contigo_buf_give(buf, port, 0, 64, CONTIGO_READS | CONTIGO_WRITES, out),
                contigo_buf_take_back(buf),
                contigo_engine_open(&open, out),
                contigo_engine_get_info(engine, &mut empty::<contigo_engine_info>()),
                contigo_engine_get_operand(engine, 0, &mut contigo_operand_spec::default()),
                contigo_engine_open_driver(ptr::null(), ptr::null_mut(), port, out),
                contigo_engine_open_kernel(0, c"gemm8".as_ptr(), ptr::null(), 0, out),
                contigo_module_load(port, ptr::null(), 0, out),
                contigo_module_close(0),
                contigo_kernel_open(ptr::null(), 0, out),
                contigo_kernel_get_info(0, &mut empty::<contigo_kernel_info>()),
                contigo_kernel_operand(0, ptr::null(), ptr::from_mut(out).cast()),
                contigo_kernel_set(0, ptr::null(), 0, ptr::null_mut(), 0),
                contigo_kernel_simulate(0, sim, None, ptr::null_mut(), out),
                contigo_kernel_close(0),
                contigo_engine_irq_arm(engine, fd),
                contigo_engine_arm(engine, 0),
                contigo_region_open_with(c"sim".as_ptr(), &region_options(sim), out),
                contigo_region_export(region, fd),
                contigo_region_get_info(region, &mut empty::<contigo_region_info>()),
                contigo_dev_addr_of(region, port, data, 1, out),
                contigo_host_ptr_of(region, port, 0, ptr::from_mut(out).cast()),
                contigo_job_start(engine, operands.as_ptr(), 2, ptr::null(), 0, 0, out),
                contigo_job_wait(job, 1, ptr::null_mut()),
                contigo_job_wait_device(job, 1, ptr::null_mut()),
                contigo_job_wait_for(job, 1, ptr::from_mut(out).cast(), ptr::null_mut()),
                contigo_queue_next(engine, 1, out, ptr::null_mut()),
                contigo_queue_stop(engine),
                contigo_pool_open(region, 64, 1, 0, out),
                contigo_pool_take(pool, out),
                contigo_pool_free_slots(pool, ptr::from_mut(out).cast()),
                contigo_carve(region, 64, 0, out),
                contigo_port_find(c"zynq-hp0".as_ptr(), out),
                contigo_port_define(&named, out),
                contigo_device_get_info(device, &mut empty::<contigo_device_info>()),
                contigo_region_open(c"sim".as_ptr(), 64, out),
                contigo_device_open(c"sim:zdma".as_ptr(), out),
                contigo_device_memory(device, c"sim".as_ptr(), 64, out),
                contigo_device_port(device, 0, out),
                contigo_device_attach(device, 0, 0, 0, out),
                contigo_device_reset(device),
                contigo_device_enable_bus_master(device),
                contigo_registers_read(registers, reg, ptr::from_mut(out).cast()),
                contigo_registers_write(registers, reg, 0),
                contigo_registers_wait_until(registers, reg, 0, 0, 1, ptr::from_mut(out).cast()),
                contigo_registers_wait(registers, 1),
                contigo_inventory(ptr::null_mut(), 0, len),
                contigo_design_core(
                    ptr::null(),
                    0,
                    c"none".as_ptr(),
                    &mut empty::<contigo_core_info>(),
                ),
                contigo_design_port(ptr::null(), 0, c"none".as_ptr(), out),
                contigo_sim_open(&sim_options(), out),
                contigo_sim_port(sim, 0, out),
                contigo_sim_device(sim, c"zdma".as_ptr(), out),
                contigo_buf_lend(buf, &options(&shape), ptr::from_mut(out).cast()),
                contigo_buf_unlend(lent),
                contigo_tensor_locate(
                    region,
                    tensor.cast(),
                    0,
                    0,
                    &mut empty::<contigo_tensor_info>(),
                ),
                // Last: where they were not refused, those above would be for another reason.
                contigo_buf_release(buf),
                contigo_engine_close(engine),
                contigo_pool_close(pool),
                contigo_region_close(region),
                contigo_port_close(port),
                contigo_sim_close(sim),
                contigo_registers_close(registers),
                contigo_device_close(device),
            ]
        }
    };
    let header = include_str!("../../include/contigo.h");
    let functions =
        header.lines().filter_map(|line| line.strip_prefix("contigo_status ")?.split('(').next());
    let untested: Vec<_> = functions
        .clone()
        .filter(|function| !include_str!("fork.rs").contains(&format!("    {function}(")))
        .collect();
    assert_eq!((untested, functions.count()), (vec![], FUNCTIONS));

    let forked = || {
        let (mut out, mut len, mut fd) = (7, 7, 7);
        let statuses = every_function(&mut out, &mut len, &mut fd);
        delete(tensor);
        match statuses.iter().position(|status| *status != CONTIGO_E_FORKED) {
            Some(function) => i32::try_from(function).unwrap_or_default() + 1,
            // A refused call answers 0, or -1 for a descriptor.
            None => i32::from((out, len, fd) != (0, 0, -1)) * 100,
        }
    };
    assert_eq!(
        in_a_child(forked),
        0,
        "the number of a function that was not refused; 100: one answered something"
    );
    let parent = std::process::id();
    let says = || {
        contigo_buf_unmap(buf);
        let mut text = [0_u8; 256];
        let len = unsafe { contigo_last_error(text.as_mut_ptr().cast(), text.len()) };
        let said = text[..len.min(255)].windows(8).any(|part| part == b"child of");
        let number = text[..len.min(255)]
            .split(|byte| !byte.is_ascii_digit())
            .filter(|digits| !digits.is_empty());
        i32::from(!said || number.count() != 1 || parent == std::process::id())
    };
    assert_eq!(in_a_child(says), 0);

    // Everything is as it was, and comes back.
    refused(contigo_buf_unlend(lent), CONTIGO_E_TENSOR_OUT, "");
    delete(tensor);
    ok(contigo_buf_unlend(lent));
    ok(wait(job, 20_000));
    assert_eq!(crate::common::bytes(operands[1].buf)[..64], [1; 64]);
    release([buf, lent]);
    release_all(&operands);
    board.close();
}
