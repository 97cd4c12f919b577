//! Mistakes of a program with a GPU's memory and engine: each is a refusal, and nothing is lost.

use super::*;
use core::ptr;

#[test]
fn fpga_and_gpu_refuse_each_others_memory() {
    alone(&two(), |controls| {
        let (first, second, fpga) = (gpu(0), gpu(1), Board::new());
        let soc = find_port(c"zynq-hp0");
        for (pool, others) in [
            (first.pool, [second.port, fpga.port, soc]),
            (second.pool, [first.port, fpga.port, soc]),
            (fpga.pool, [first.port, second.port, soc]),
        ] {
            let buf = take(pool);
            for port in others {
                refused(
                    give(buf, port, 0, 64, CONTIGO_READS).0,
                    CONTIGO_E_WRONG_BUS,
                    "not on the bus of this memory",
                );
                assert_eq!(bytes(buf).len(), SLOT, "the CPU's");
            }
            ok(contigo_buf_release(buf));
        }
        for (engine, memory) in [(first, fpga.pool), (first, second.pool), (second, first.pool)] {
            let operands = operands_of(memory);
            refused(engine.try_start(&operands).0, CONTIGO_E_WRONG_BUS, "operand 0");
            assert_eq!(bytes(operands[3].buf), [0x55; SLOT], "nothing was touched");
            release_all(&operands);
        }
        let operands = [first.take(), first.take()].map(|buf| part(buf, 64));
        refused(fpga.try_start(&operands).0, CONTIGO_E_WRONG_BUS, "operand 0");
        release_all(&operands);
        // One operand of the four is enough.
        let (mut operands, strange) = (first.operands(), second.take());
        let own = core::mem::replace(&mut operands[3].buf, strange);
        refused(first.try_start(&operands).0, CONTIGO_E_WRONG_BUS, "operand 3");
        operands[3].buf = own;
        ok(wait(first.start(&operands), 1_000_000));
        release_all(&operands);
        ok(contigo_buf_release(strange));
        assert_eq!(controls.counters().launches, 1);

        // Code is a GPU's, and registers are none of it.
        for port in [soc, fpga.port] {
            refused(
                try_module(port, PTX.as_bytes()).0,
                CONTIGO_E_KIND,
                "code is loaded for a GPU, and the port is ",
            );
        }
        let device = open_device(c"cuda:0");
        let zdma = try_engine(&engine_options(c"zdma", device, 0, 0));
        refused(zdma, CONTIGO_E_UNSUPPORTED, "GPU");
        ok(contigo_device_close(device));
        ok(contigo_port_close(soc));
        fpga.close();
        close(first);
        close(second);
        clean(controls, 2);
    });
}

#[test]
fn a_gpu_has_no_interrupt_and_no_registers() {
    alone(&Config::default(), |controls| {
        let gpu = gpu(0);
        let operands = gpu.operands();
        let job = gpu.start(&operands);
        // Whether the engine has a job or not.
        for _ in 0..2 {
            let mut fd = 7;
            refused(
                unsafe { contigo_engine_irq_arm(gpu.engine, &mut fd) },
                CONTIGO_E_KIND,
                "no interrupt to sleep for",
            );
            assert_eq!(fd, -1, "0 is a valid descriptor");
            refused(unsafe { contigo_engine_arm(gpu.engine, 0) }, CONTIGO_E_KIND, "contigo");
            let _ = wait(job, 1_000_000);
        }
        release_all(&operands);
        // Pointers and numbers of a kernel.
        let kernel = |module, parameters: *const contigo_parameter, n| unsafe {
            contigo_engine_open_kernel(module, c"gemm8".as_ptr(), parameters, n, &mut 0)
        };
        refused(kernel(gpu.module, ptr::null(), 8), CONTIGO_E_NULL, "parameters");
        refused(kernel(gpu.module, parameters().as_ptr(), 33), CONTIGO_E_VALUE, "n cannot be 33");
        refused(kernel(gpu.region, parameters().as_ptr(), 8), CONTIGO_E_KIND, "region");
        refused(kernel(gpu.module, parameters()[4..].as_ptr(), 4), CONTIGO_E_ARGUMENT, "operands");
        close(gpu);
        clean(controls, 1);
    });
}
