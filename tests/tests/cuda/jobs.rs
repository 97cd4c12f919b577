//! Kernels as jobs: results, faults that come late, kernels that never end.

use super::products::{OPERAND_BYTES, lens, products};
use super::{Clean, block, code, leaked, opened};
use contigo::cuda::{CudaFunction, Gpu, Image, Log, Module, Parameter, Signature};
use contigo::sim::SimBoard;
use contigo::{Driver, Error, Operand, OperandSpec, Pool, Queue, Region};
use contigo_gemm8::cuda::{Gemm8Kernel, Gemm8Module};
use contigo_gemm8::{Gemm, Output, SimGemm8};
use fake_cuda::{Config, Counters, Function, LateError, code as answers};
use std::thread;
use std::time::{Duration, Instant};

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

/// A GPU, gemm8's module and a pool on a driver of its own, which has to be clean in the end.
pub(crate) struct Rig {
    pub(crate) pool: Pool,
    pub(crate) region: Region,
    pub(crate) module: Gemm8Module,
    pub(crate) gpu: Gpu,
    pub(crate) controls: Clean,
}

pub(crate) fn rig_with(config: &Config, slots: usize, slot_bytes: usize) -> Rig {
    let (controls, gpu) = opened(config);
    let (module, region) = (loaded(&gpu), Region::new(block(&gpu).unwrap()).unwrap());
    let pool = region.pool(slots, slot_bytes).unwrap();
    Rig { pool, region, module, gpu, controls }
}

impl Rig {
    /// The driver's counters after all else is dropped, where the test leaks.
    fn leaked(self) -> Counters {
        let Rig { pool, region, module, gpu, mut controls } = self;
        drop((pool, region, module, gpu));
        controls.leaks = true;
        leaked(&controls)
    }
}

fn rig(config: &Config) -> Rig {
    rig_with(config, 8, 4096)
}

#[test]
fn jobs_of_every_size_are_right_bit_for_bit() {
    let rig = rig_with(&Config::default(), 4, OPERAND_BYTES);
    let mut queue = queue(&rig.module);
    products(&mut queue, &rig.pool, 60, 5);
    let stats = rig.region.stats();
    assert_eq!((queue.counts().completed, stats.bytes_copied, stats.syncs), (60, 0, 0));
}

/// Four operands of [`GEMM`], out of `pool`.
pub(crate) fn operands(pool: &Pool) -> [Operand; 4] {
    let [a, b, bias, c] = [(); 4].map(|()| pool.take().unwrap());
    let [a_len, b_len, bias_len, c_len] = lens(&GEMM);
    [a.to_device(..a_len), b.to_device(..b_len), bias.to_device(..bias_len), c.from_device(..c_len)]
}

#[test]
fn result_is_seen_only_when_driver_says_so() {
    let rig = rig(&Config { kernel_polls: 5, ..Config::default() });
    let (mut queue, pool) = (queue(&rig.module), &rig.pool);
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
}

#[test]
fn slow_job_is_waited_out_buffers_come_back() {
    let rig = rig(&Config { kernel_us: 20_000, ..Config::default() });
    let (mut queue, pool) = (queue(&rig.module), &rig.pool);
    let failed = queue.run(operands(pool), &GEMM.words(), Duration::from_micros(100)).unwrap_err();
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
}

#[test]
fn endless_kernel_keeps_all_it_uses() {
    let since = Instant::now();
    let rig = rig(&Config { hang_launch: 2, ..Config::default() });
    let (mut queue, pool) = (queue(&rig.module), &rig.pool);
    drop(queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap());
    let failed = queue.run(operands(pool), &GEMM.words(), Duration::from_millis(10)).unwrap_err();
    assert!(
        matches!(failed.error, Error::WillNotStop { device: "gemm8 (CUDA)", status: 600, .. }),
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
    // Bounded: the wait for its end.
    assert!(since.elapsed().as_secs() < 30, "{:?}", since.elapsed());
    let counters = rig.leaked();
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
        let rig = rig(&Config { late_error, ..Config::default() });
        let (mut queue, pool) = (queue(&rig.module), &rig.pool);
        for _ in 1..faulty {
            drop(queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap());
        }
        // The launch itself, or the look after it, is what reports it.
        let (error, cause, is_leaked) = match queue.submit(operands(pool), &GEMM.words()) {
            Ok(_) => {
                let failed = queue.wait::<4>(LIMIT).unwrap_err();
                (failed.error, failed.cause, failed.buffers.is_none())
            }
            Err(failed) => (failed.error, failed.cause, failed.buffers.is_none()),
        };
        assert!(
            matches!(error, Error::WillNotStop { waited_us: ..1_000_000, .. }) && is_leaked,
            "{error:?}"
        );
        assert!(cause.to_string().contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "{cause}");
        // A lost context may still be writing.
        assert_eq!((pool.taken(), queue.len()), (4, 1));
        assert!(queue.stop().is_err());
        drop(queue);
        let counters = rig.leaked();
        assert_eq!((counters.host_allocs, counters.retained_contexts), (1, 1), "{counters:?}");
    }
}

#[test]
fn images_that_do_not_load_say_why() {
    let (mut controls, gpu) = opened(&Config::default());
    controls.provoked = vec![Function::cuModuleGetFunction, Function::cuModuleLoadDataEx];
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
}

#[test]
fn failed_kernel_open_gives_all_back() {
    for function in [
        Function::cuStreamCreate,
        Function::cuEventCreate,
        Function::cuModuleGetFunction,
        Function::cuModuleLoadDataEx,
    ] {
        let (_controls, gpu) =
            opened(&Config::default().failing(function, 1, answers::OUT_OF_MEMORY));
        let made =
            Gemm8Module::load(&gpu, &mut Log::new()).and_then(|module| module.kernel().map(drop));
        assert_eq!(code(made.unwrap_err()).1, answers::OUT_OF_MEMORY);
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
    let rig = rig(&Config::default());
    let (mut gpu, pool) = (queue(&rig.module), &rig.pool);
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
}

/// Objects that are forgotten under a kernel that runs stay: module, stream, memory, context.
#[test]
fn a_forgotten_queue_keeps_what_its_kernel_uses() {
    let rig = rig(&Config { hang_launch: 1, ..Config::default() });
    let mut queue = queue(&rig.module);
    queue.submit(operands(&rig.pool), &GEMM.words()).unwrap();
    std::mem::forget(queue);
    let copying = Queue::new(rig.module.copying([4096; 4]).unwrap(), 1).unwrap();
    std::mem::forget(copying);
    assert!(rig.gpu.is_in_use());
    let counters = rig.leaked();
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
    let rig = rig(&Config { hang_launch: 1, ..Config::default() });
    let mut queue = queue(&rig.module);
    let waiting = || {
        let counters = rig.controls.counters();
        [Function::cuMemFreeHost, Function::cuMemFree_v2, Function::cuModuleUnload]
            .map(|function| counters.calls(function))
    };
    let before = waiting();
    drop(queue.run(operands(&rig.pool), &GEMM.words(), Duration::from_millis(1)).unwrap_err());
    drop(block(&rig.gpu).unwrap());
    drop(rig.module.copying([64; 4]).unwrap());
    drop(loaded(&rig.gpu));
    assert_eq!(waiting(), before);
    drop(queue);
    rig.leaked();
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
    let rig = rig(&config);
    let (mut queue, pool) = (queue(&rig.module), &rig.pool);
    let failed = queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap_err();
    assert_eq!(code(failed.error), ("cuEventQuery", CAPTURING));
    drop(failed.buffers.expect("the stream was seen empty in the end"));
    assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
}

#[test]
fn operands_are_checked_as_for_the_fpga() {
    let rig = rig(&Config::default());
    let (mut queue, pool) = (queue(&rig.module), &rig.pool);
    let refused = queue.submit(operands(pool), &Gemm { n: 17, ..GEMM }.words()).unwrap_err();
    assert!(matches!(refused.error, Error::Argument { name: "n", value: 17, .. }), "{refused:?}");
    drop(refused);
    let refused = queue.submit(operands(pool), &Gemm { m: 4, ..GEMM }.words()).unwrap_err();
    assert!(
        matches!(refused.error, Error::BufferSize { index: 0, need_bytes: 192, have_bytes: 144 }),
        "{refused:?}"
    );
    assert_eq!(queue.driver().name(), "gemm8 (CUDA)");
}

#[test]
fn queues_on_threads_have_own_streams() {
    let rig = rig(&Config::default());
    let threads = [(); 2].map(|()| {
        let (mut queue, pool) = (queue(&rig.module), rig.pool.clone());
        thread::spawn(move || {
            for _ in 0..100 {
                drop(queue.run(operands(&pool), &GEMM.words(), LIMIT).unwrap());
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(rig.pool.taken(), 0);
}
