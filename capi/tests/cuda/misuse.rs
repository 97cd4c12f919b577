//! What a program must not do with a GPU's memory and engine: each is a refusal, and nothing is lost.

use super::*;
use core::ptr;
use std::thread;

#[test]
fn an_fpga_gets_no_gpu_s_memory_and_a_gpu_none_of_an_fpga_s() {
    alone("misuse::an_fpga_gets_no_gpu_s_memory_and_a_gpu_none_of_an_fpga_s", &two(), |controls| {
        let (first, second, fpga) = (gpu(0), gpu(1), Board::new());
        let soc = port("zynq-hp0");
        for (board, others) in
            [(first, [second.port, fpga.port, soc]), (second, [first.port, fpga.port, soc]), (fpga, [first.port, second.port, soc])]
        {
            let buf = board.take();
            for port in others {
                refused(to_device(buf, port, 0, 64, CONTIGO_TO_DEVICE).0, CONTIGO_E_WRONG_BUS, "not on the bus of this memory");
                assert_eq!(bytes(buf).len(), SLOT, "the CPU's");
            }
            ok(contigo_buf_release(buf));
        }
        for (engine, memory) in [(first, fpga), (fpga, first), (first, second), (second, first)] {
            let mixed = Board { engine: engine.engine, ..memory };
            let operands = mixed.operands();
            refused(mixed.try_start(&operands).0, CONTIGO_E_WRONG_BUS, "operand 0");
            assert_eq!(bytes(operands[3].buf), [0x55; SLOT], "nothing was touched");
            release_all(&operands);
        }
        // One operand of the four is enough.
        let (mut operands, strange) = (first.operands(), second.take());
        let own = core::mem::replace(&mut operands[3].buf, strange);
        refused(first.try_start(&operands).0, CONTIGO_E_WRONG_BUS, "operand 3");
        operands[3].buf = own;
        ok(contigo_job_wait(first.start(&operands), 1_000_000));
        release_all(&operands);
        ok(contigo_buf_release(strange));
        assert_eq!(controls.counters().launches, 1);

        // Engines and ports.
        let open = |kind, sim, port| unsafe { contigo_engine_open(&engine_options(kind, sim, port, first.heap), &mut 0) };
        for port in [soc, fpga.port] {
            refused(open(CONTIGO_ENGINE_GEMM8_CUDA, 0, port), CONTIGO_E_KIND, "this engine needs a GPU's port");
        }
        for kind in [CONTIGO_ENGINE_GEMM8, CONTIGO_ENGINE_PL330, CONTIGO_ENGINE_ZDMA] {
            refused(open(kind, fpga.sim, first.port), CONTIGO_E_KIND, "another port than a GPU's");
        }
        refused(open(CONTIGO_ENGINE_GEMM8_CUDA, fpga.sim, first.port), CONTIGO_E_VALUE, "sim of a GPU's engine");
        refused(open(CONTIGO_ENGINE_GEMM8_CUDA, 0, 0), CONTIGO_E_HANDLE, "port");
        ok(contigo_port_close(soc));
        fpga.close();
        close(first);
        close(second);
        clean(controls, 2, 2);
    });
}

#[test]
fn what_a_kernel_has_is_nobody_else_s() {
    let config = Config { kernel_us: 50_000, ..Config::default() };
    alone("misuse::what_a_kernel_has_is_nobody_else_s", &config, |controls| {
        let gpu = gpu(0);
        let operands = gpu.operands();
        let job = gpu.start(&operands);
        for _ in 0..2 {
            for operand in operands {
                refused(try_map(operand.buf, CONTIGO_READ).0, CONTIGO_E_DEVICE_OWNED, "device's");
                refused(contigo_buf_release(operand.buf), CONTIGO_E_DEVICE_OWNED, "device's");
                refused(contigo_buf_to_cpu(operand.buf), CONTIGO_E_DEVICE_OWNED, "device's");
                refused(lend(operand.buf, &options(&[4])).0, CONTIGO_E_DEVICE_OWNED, "device's");
            }
            refused(gpu.try_start(&operands).0, CONTIGO_E_HAS_JOB, "job");
            refused(contigo_engine_close(gpu.engine), CONTIGO_E_HAS_JOB, "job");
            refused(contigo_engine_recover(gpu.engine), CONTIGO_E_HAS_JOB, "job");
            refused(contigo_pool_close(gpu.pool), CONTIGO_E_STILL_USED, "still use this pool");
            refused(contigo_heap_close(gpu.heap), CONTIGO_E_STILL_USED, "still use this heap");
            // The same a look later: the kernel still runs.
            assert_eq!(answer(|done| unsafe { contigo_job_poll(job, done) }), 0);
        }
        // Another thread waits for it, and then its handle is stale.
        thread::scope(|scope| scope.spawn(|| ok(contigo_job_wait(job, 1_000_000))).join().unwrap());
        refused(contigo_job_wait(job, 0), CONTIGO_E_STALE, "job");
        assert_eq!(bytes(operands[3].buf)[..4], 128_i32.to_le_bytes());

        // A buffer that is looked at goes into no job, and one buffer is no two operands.
        let (_, _, _) = try_map(operands[0].buf, CONTIGO_READ);
        refused(gpu.try_start(&operands).0, CONTIGO_E_MAPPED, "mapped");
        ok(contigo_buf_unmap(operands[0].buf));
        let mut twice = operands;
        twice[1] = twice[0];
        refused(gpu.try_start(&twice).0, CONTIGO_E_SAME_BUFFER, "operands 0 and 1");
        release_all(&operands);
        refused(gpu.try_start(&operands).0, CONTIGO_E_STALE, "buffer");
        close(gpu);
        refused(contigo_engine_close(gpu.engine), CONTIGO_E_STALE, "engine");
        refused(contigo_heap_close(gpu.heap), CONTIGO_E_STALE, "heap");
        assert_eq!(controls.counters().launches, 1);
        clean(controls, 1, 1);
    });
}

#[test]
fn a_gpu_has_no_interrupt_no_registers_and_no_reset_line() {
    alone("misuse::a_gpu_has_no_interrupt_no_registers_and_no_reset_line", &Config::default(), |controls| {
        let gpu = gpu(0);
        let operands = gpu.operands();
        let job = gpu.start(&operands);
        // Whether the engine has a job or not.
        for _ in 0..2 {
            let mut fd = 7;
            refused(unsafe { contigo_engine_irq_fd(gpu.engine, &mut fd) }, CONTIGO_E_KIND, "is a GPU and has no interrupt");
            assert_eq!(fd, -1, "0 would be somebody's");
            refused(contigo_engine_irq_arm(gpu.engine), CONTIGO_E_KIND, "contigo_job_poll");
            refused(unsafe { contigo_engine_arm(gpu.engine, 0, 0) }, CONTIGO_E_KIND, "needs a device with registers");
            refused(contigo_engine_reset(gpu.engine), CONTIGO_E_KIND, "the engine is a GPU");
            let _ = contigo_job_wait(job, 1_000_000);
        }
        let copy = unsafe { contigo_copy_start(gpu.engine, &operands[0], &operands[1], &mut 0) };
        refused(copy, CONTIGO_E_KIND, "needs a pl330 or a zdma, the engine is a gemm8 on a GPU");
        let start = |args: contigo_gemm8_args| unsafe { contigo_gemm8_start(gpu.engine, &args, operands.as_ptr(), &mut 0) };
        refused(start(contigo_gemm8_args { n: 17, ..GEMM }), CONTIGO_E_ARGUMENT, "n = 17");
        refused(start(contigo_gemm8_args { k: 128, ..GEMM }), CONTIGO_E_BUFFER_SIZE, "operand 0 has 64 bytes");
        let null = unsafe { contigo_gemm8_start(gpu.engine, &GEMM, ptr::null(), &mut 0) };
        refused(null, CONTIGO_E_NULL, "operands");
        ok(contigo_engine_recover(gpu.engine));
        release_all(&operands);
        close(gpu);
        clean(controls, 1, 1);
    });
}
