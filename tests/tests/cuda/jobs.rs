//! Kernels as jobs: results, faults that come late, kernels that never end.

use super::{block, clean, clean_but_for, code, driver};
use contigo::{
    Driver, Error, Operand, OperandSpec, Pool, Queue, Region,
    cuda::{CudaFunction, Gpu, Image, Log, Module, Parameter, Signature},
    sim::SimBoard,
};
use contigo_gemm8::cuda::{Gemm8Kernel, Gemm8Module};
use contigo_gemm8::{Gemm, Output, SimGemm8, requantize};
use fake_cuda::{Config, Controls, Function, LateError, code as answers};
use fastrand::Rng;
use std::{thread, time::Duration, time::Instant};

type GpuQueue = Queue<Gemm8Kernel<CudaFunction>>;

pub(crate) const LIMIT: Duration = Duration::from_secs(1);
pub(crate) const GEMM: Gemm =
    Gemm { m: 3, n: 32, k: 48, output: Output::Int8 { relu: true, shift: 5 } };

fn queue(module: &Gemm8Module) -> GpuQueue {
    Queue::new(module.kernel().unwrap(), 4).unwrap()
}

pub(crate) fn loaded(gpu: &Gpu) -> Gemm8Module {
    let mut log = Log::new();
    Gemm8Module::load(gpu, &mut log).unwrap_or_else(|error| panic!("{error}: {log}"))
}

/// The result of `args` on these operands, element by element.
pub(crate) fn expected(args: &Gemm, a: &[i8], b: &[i8], bias: &[i32]) -> Vec<u8> {
    let (m, n, k) = (args.m as usize, args.n as usize, args.k as usize);
    let sum = |row: usize, column: usize| {
        let products =
            (0..k).map(|inner| i32::from(a[row * k + inner]) * i32::from(b[inner * n + column]));
        products.fold(bias[column], i32::wrapping_add)
    };
    let elements = (0..m)
        .flat_map(|row| (0..n).map(move |column| (row, column)))
        .map(|(row, column)| sum(row, column));
    let bytes = usize::try_from(args.output.element_bytes()).unwrap();
    elements
        .flat_map(|sum| requantize(sum, args.output).to_le_bytes().into_iter().take(bytes))
        .collect()
}

#[test]
fn jobs_of_every_size_are_right_bit_for_bit() {
    let (controls, cuda) = driver(&Config::default());
    let gpu = Gpu::primary(&cuda, 0).unwrap();
    let module = loaded(&gpu);
    let mut queue = queue(&module);
    let region = Region::new(block(&gpu).unwrap()).unwrap();
    let pool = region.pool(4, 16_384).unwrap();
    let mut rng = Rng::with_seed(5);
    for job in 0..60_u32 {
        let output = match job % 3 {
            0 => Output::Int32 { relu: rng.bool() },
            _ => Output::Int8 { relu: rng.bool(), shift: rng.u32(0..=31) },
        };
        let args =
            Gemm { m: rng.u32(1..=8), n: 16 * rng.u32(1..=8), k: 16 * rng.u32(1..=8), output };
        let [a_bytes, b_bytes, bias_bytes, c_bytes] =
            args.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap());
        let [mut a, mut b, mut bias, c] = [(); 4].map(|()| pool.take().unwrap());
        a.view_at_mut::<i8>(..a_bytes).unwrap().fill_with(|| rng.i8(..));
        b.view_at_mut::<i8>(..b_bytes).unwrap().fill_with(|| rng.i8(..));
        bias.view_at_mut::<i32>(..bias_bytes).unwrap().fill_with(|| rng.i32(..));
        let right = expected(
            &args,
            a.view_at(..a_bytes).unwrap(),
            b.view_at(..b_bytes).unwrap(),
            bias.view_at(..bias_bytes).unwrap(),
        );
        let operands = [
            a.to_device(..a_bytes),
            b.to_device(..b_bytes),
            bias.to_device(..bias_bytes),
            c.from_device(..c_bytes),
        ];
        let [.., c] = queue.run(operands, &args.words(), LIMIT).unwrap().buffers;
        assert_eq!(c.view_at::<u8>(..c_bytes).unwrap(), right, "{args:?}");
    }
    assert_eq!(
        (queue.counts().completed, region.stats().bytes_copied, region.stats().syncs),
        (60, 0, 0)
    );
    drop((queue, pool));
    drop(region);
    drop(module);
    drop(gpu);
    clean(&controls);
}

/// Four operands of [`GEMM`], out of `pool`.
pub(crate) fn operands(pool: &Pool) -> [Operand; 4] {
    let [a, b, bias, c] = [(); 4].map(|()| pool.take().unwrap());
    let [a_bytes, b_bytes, bias_bytes, c_bytes] =
        GEMM.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap());
    [
        a.to_device(..a_bytes),
        b.to_device(..b_bytes),
        bias.to_device(..bias_bytes),
        c.from_device(..c_bytes),
    ]
}

/// Runs `act` with a GPU, gemm8's module and a pool on a driver like `config`; they are dropped
/// before the counters are read.
fn with_gpu(config: &Config, act: impl FnOnce(&Gpu, &Gemm8Module, &Pool, &Controls)) -> Controls {
    let (controls, cuda) = driver(config);
    {
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let module = loaded(&gpu);
        let region = Region::new(block(&gpu).unwrap()).unwrap();
        let pool = region.pool(8, 4096).unwrap();
        act(&gpu, &module, &pool, &controls);
    }
    controls
}

/// The same with a queue.
fn with_queue(config: &Config, act: impl FnOnce(GpuQueue, &Pool)) -> Controls {
    with_gpu(config, |_, module, pool, _| act(queue(module), pool))
}

#[test]
fn result_is_seen_only_when_driver_says_so() {
    let controls =
        with_queue(&Config { kernel_polls: 5, ..Config::default() }, |mut queue, pool| {
            queue.submit(operands(pool), &GEMM.words()).unwrap();
            let mut looks = 0;
            let [_, _, _, c] = loop {
                if let Some(done) = queue.try_next().unwrap() {
                    break done.buffers;
                }
                looks += 1;
                assert!(looks < 100);
            };
            assert!(looks >= 4, "{looks} looks");
            drop(c);
        });
    clean(&controls);
}

#[test]
fn slow_job_is_waited_out_buffers_come_back() {
    let controls =
        with_queue(&Config { kernel_us: 20_000, ..Config::default() }, |mut queue, pool| {
            let failed =
                queue.run(operands(pool), &GEMM.words(), Duration::from_micros(100)).unwrap_err();
            assert_eq!(failed.error, Error::Timeout { timeout_us: 100 });
            drop(failed.buffers.expect("the kernel ended while it was being stopped"));
            assert_eq!(
                (pool.taken(), queue.len(), queue.is_stopped(), queue.counts().cancelled),
                (0, 0, false, 1)
            );
            drop(queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap());
            // A wait stops nothing.
            queue.submit(operands(pool), &GEMM.words()).unwrap();
            assert!(queue.wait::<4>(Duration::from_micros(100)).unwrap().is_none());
            assert!(queue.wait::<4>(LIMIT).unwrap().is_some());
            // Cleared under way, and dropped under way.
            queue.submit(operands(pool), &GEMM.words()).unwrap();
            queue.clear().unwrap();
            assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
            queue.submit(operands(pool), &GEMM.words()).unwrap();
            drop(queue);
            assert_eq!(pool.taken(), 0);
        });
    clean(&controls);
}

#[test]
fn endless_kernel_keeps_all_it_uses() {
    let since = Instant::now();
    let controls =
        with_queue(&Config { hang_launch: 2, ..Config::default() }, |mut queue, pool| {
            drop(queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap());
            let failed =
                queue.run(operands(pool), &GEMM.words(), Duration::from_millis(10)).unwrap_err();
            assert!(
                matches!(
                    failed.error,
                    Error::WillNotStop { device: "gemm8 (CUDA)", status: 600, .. }
                ),
                "{failed:?}"
            );
            assert!(
                matches!(failed.cause, Error::Timeout { .. }) && failed.buffers.is_none(),
                "{failed:?}"
            );
            assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (4, 1, true));
            let refused = queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap_err();
            assert_eq!(refused.error, Error::Busy);
            drop(refused);
            let refused = queue.submit(operands(pool), &GEMM.words()).unwrap_err();
            assert_eq!(refused.error, Error::QueueStopped { in_flight: 1 });
            drop(refused);
            assert!(queue.take_back::<4>().unwrap().is_none(), "the GPU has them");
            // It is not waited for as long again, here and where the queue is dropped.
            let again = Instant::now();
            assert!(matches!(queue.stop(), Err(Error::WillNotStop { status: 600, .. })));
            drop(queue);
            assert!(again.elapsed() < CudaFunction::STOP_LIMIT, "{:?}", again.elapsed());
        });
    // Bounded: the wait for its end.
    assert!(since.elapsed().as_secs() < 30, "{:?}", since.elapsed());
    let counters = controls.counters();
    assert_eq!(
        (counters.freed_under_a_kernel, counters.ended_with_their_context),
        (0, 0),
        "{counters:?}"
    );
    assert_eq!(
        (counters.host_allocs, counters.modules, counters.streams, counters.retained_contexts),
        (1, 1, 1, 1),
        "{counters:?}"
    );
}

#[test]
fn late_fault_is_named_and_loses_context() {
    for (after_calls, faulty) in [(0, 1), (1, 1), (3, 1), (0, 2)] {
        let late_error = LateError { launch: faulty, code: answers::ILLEGAL_ADDRESS, after_calls };
        let controls =
            with_queue(&Config { late_error, ..Config::default() }, |mut queue, pool| {
                for _ in 1..faulty {
                    drop(queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap());
                }
                // The launch itself, or the look after it, is what reports it.
                let cause = match queue.submit(operands(pool), &GEMM.words()) {
                    Ok(_) => {
                        let failed = queue.wait::<4>(LIMIT).unwrap_err();
                        assert!(
                            matches!(
                                failed.error,
                                Error::WillNotStop { status: 700, waited_us: ..1_000_000, .. }
                            ),
                            "{failed:?}"
                        );
                        assert!(failed.buffers.is_none(), "{failed:?}");
                        failed.cause
                    }
                    Err(failed) => {
                        assert!(
                            matches!(failed.error, Error::WillNotStop { .. })
                                && failed.buffers.is_none(),
                            "{failed:?}"
                        );
                        failed.cause
                    }
                };
                assert_eq!(code(cause).1, answers::ILLEGAL_ADDRESS, "{cause:?}");
                assert!(cause.to_string().contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "{cause}");
                assert_eq!(
                    (pool.taken(), queue.len()),
                    (4, 1),
                    "a lost context may still be writing"
                );
                assert!(queue.stop().is_err());
            });
        let counters = controls.counters();
        assert_eq!(
            (counters.freed_under_a_kernel, counters.ended_with_their_context),
            (0, 0),
            "{counters:?}"
        );
        assert_eq!((counters.host_allocs, counters.retained_contexts), (1, 1), "{counters:?}");
    }
}

#[test]
fn images_that_do_not_load_say_why() {
    let (controls, cuda) = driver(&Config::default());
    let gpu = Gpu::primary(&cuda, 0).unwrap();
    let mut log = Log::new();
    // SAFETY: no binary.
    let refused =
        unsafe { Module::load(&gpu, Image::Ptx(c"this is no PTX"), &mut log) }.unwrap_err();
    assert_eq!(code(refused), ("cuModuleLoadDataEx", answers::INVALID_PTX));
    assert!(log.contains("ptxas"), "{log:?}");
    // SAFETY: as above.
    let module = unsafe {
        Module::load(
            &gpu,
            Image::Ptx(c".version 6.0\n.target sm_53\n.visible .entry other() { ret; }"),
            &mut log,
        )
    }
    .unwrap();
    assert!(log.is_empty(), "{log}");
    let signature = Signature::new("gemm8", &[Parameter::Operand(OperandSpec::in_out())]).unwrap();
    // SAFETY: it has no such kernel.
    let refused = unsafe { CudaFunction::new(&module, c"gemm8", signature) }.unwrap_err();
    assert_eq!(code(refused), ("cuModuleGetFunction", answers::NOT_FOUND));
    drop(module);
    drop(gpu);
    clean_but_for(&controls, &[Function::cuModuleGetFunction, Function::cuModuleLoadDataEx]);
}

#[test]
fn failed_kernel_open_gives_all_back() {
    for function in [
        Function::cuStreamCreate,
        Function::cuEventCreate,
        Function::cuModuleGetFunction,
        Function::cuModuleLoadDataEx,
    ] {
        let (controls, cuda) =
            driver(&Config::default().failing(function, 1, answers::OUT_OF_MEMORY));
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let made =
            Gemm8Module::load(&gpu, &mut Log::new()).and_then(|module| module.kernel().map(drop));
        assert_eq!(code(made.unwrap_err()).1, answers::OUT_OF_MEMORY);
        drop(gpu);
        clean(&controls);
    }
}

#[test]
fn fpga_and_gpu_refuse_each_others_memory() {
    let board = SimBoard::new(1);
    let fpga_region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let fpga_pool = fpga_region.pool(4, 4096).unwrap();
    let core = SimGemm8::new(&board, board.port());
    let mut fpga =
        Queue::new(contigo_gemm8::Gemm8::open_simulated(core.window().unwrap()).unwrap(), 1)
            .unwrap();
    let controls = with_queue(&Config::default(), |mut gpu, pool| {
        let refused = fpga.submit(operands(pool), &GEMM.words()).unwrap_err();
        assert_eq!(
            (refused.error, refused.operand),
            (Error::WrongBus { port: "sim-hp0", memory: contigo::Bus::Gpu(0) }, Some(0))
        );
        drop(refused);
        let refused = gpu.submit(operands(&fpga_pool), &GEMM.words()).unwrap_err();
        assert!(
            matches!(refused.error, Error::WrongBus { port: "gpu", memory: contigo::Bus::Sim(_) }),
            "{refused:?}"
        );
        drop(refused);
        assert_eq!((pool.taken(), fpga_pool.taken()), (0, 0));
    });
    clean(&controls);
}

/// Objects that are forgotten under a kernel that runs stay: module, stream, memory, context.
#[test]
fn a_forgotten_queue_keeps_what_its_kernel_uses() {
    let controls =
        with_gpu(&Config { hang_launch: 1, ..Config::default() }, |gpu, module, pool, _| {
            let mut queue = queue(module);
            queue.submit(operands(pool), &GEMM.words()).unwrap();
            std::mem::forget(queue);
            let copying = Queue::new(module.copying([4096; 4]).unwrap(), 1).unwrap();
            std::mem::forget(copying);
            assert!(gpu.is_in_use());
        });
    let counters = controls.counters();
    assert_eq!(
        (counters.freed_under_a_kernel, counters.ended_with_their_context),
        (0, 0),
        "{counters:?}"
    );
    assert_eq!(
        (counters.modules, counters.streams, counters.device_allocs, counters.retained_contexts),
        (1, 2, 4, 1),
        "{counters:?}"
    );
}

/// To give memory back the driver may wait for all kernels of the context: with one that hangs,
/// nothing is given back any more.
#[test]
fn nothing_waits_beside_a_hung_kernel() {
    with_gpu(&Config { hang_launch: 1, ..Config::default() }, |gpu, module, pool, controls| {
        let mut queue = queue(module);
        let waiting = || {
            let counters = controls.counters();
            [Function::cuMemFreeHost, Function::cuMemFree_v2, Function::cuModuleUnload]
                .map(|function| counters.calls(function))
        };
        let before = waiting();
        drop(queue.run(operands(pool), &GEMM.words(), Duration::from_millis(1)).unwrap_err());
        drop(block(gpu).unwrap());
        drop(module.copying([64; 4]).unwrap());
        drop(loaded(gpu));
        assert_eq!(waiting(), before);
    });
}

#[test]
fn briefly_forbidden_call_loses_nothing() {
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: another thread captures a graph.
    const CAPTURING: i32 = 900;
    let config = Config::default().failing(Function::cuEventQuery, 1, CAPTURING).failing(
        Function::cuStreamQuery,
        2,
        CAPTURING,
    );
    let controls = with_queue(&config, |mut queue, pool| {
        let failed = queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap_err();
        assert_eq!(code(failed.error), ("cuEventQuery", CAPTURING));
        drop(failed.buffers.expect("the stream was seen empty in the end"));
        assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
    });
    clean(&controls);
}

#[test]
fn operands_are_checked_as_for_the_fpga() {
    let controls = with_queue(&Config::default(), |mut queue, pool| {
        let refused = queue.submit(operands(pool), &Gemm { n: 17, ..GEMM }.words()).unwrap_err();
        assert!(
            matches!(refused.error, Error::Argument { name: "n", value: 17, .. }),
            "{refused:?}"
        );
        drop(refused);
        let refused = queue.submit(operands(pool), &Gemm { m: 4, ..GEMM }.words()).unwrap_err();
        assert!(
            matches!(
                refused.error,
                Error::BufferSize { index: 0, need_bytes: 192, have_bytes: 144 }
            ),
            "{refused:?}"
        );
        assert_eq!(queue.driver().name(), "gemm8 (CUDA)");
    });
    clean(&controls);
}

#[test]
fn queues_on_threads_have_own_streams() {
    let controls = with_gpu(&Config::default(), |_, module, pool, _| {
        let threads = [(); 2].map(|()| {
            let (mut queue, pool) = (queue(module), pool.clone());
            thread::spawn(move || {
                for _ in 0..100 {
                    drop(queue.run(operands(&pool), &GEMM.words(), LIMIT).unwrap());
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(pool.taken(), 0);
    });
    clean(&controls);
}
