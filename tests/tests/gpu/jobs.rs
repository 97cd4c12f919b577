//! Jobs by the hundred thousand: right, from any thread, in any pinned memory, and nothing is left
//! of them.

use super::products::{OPERAND_BYTES, products};
use super::raw::{self, Raw};
use super::{alone, say};
use contigo::cuda::{CudaHost, Gpu, Log};
use contigo::{Align, Error, Pool, Queue, Region};
use contigo_gemm8::cuda::Gemm8Module;
use contigo_gemm8::{Gemm, Output};
use contigo_testkit::skipped;
use std::time::Duration;
use std::{env, fs, thread};

const LIMIT: Duration = Duration::from_secs(10);
/// Room for four operands.
const POOL_BYTES: usize = 4 * OPERAND_BYTES;

fn with_pool(gpu: &Gpu, act: impl FnOnce(&Pool)) {
    pool_in(CudaHost::allocate(gpu, POOL_BYTES, Align::DLPACK).unwrap(), act);
}

fn pool_in(memory: CudaHost, act: impl FnOnce(&Pool)) {
    let region = Region::new(memory).unwrap();
    act(&region.pool(4, OPERAND_BYTES).unwrap());
}

#[test]
fn products_are_exact_with_and_without_copy() {
    let Some((gpu, _alone)) = alone() else {
        return;
    };
    let mut log = Log::new();
    let module = Gemm8Module::load(gpu, &mut log).unwrap_or_else(|error| panic!("{error}: {log}"));
    with_pool(gpu, |pool| {
        products(&mut Queue::new(module.kernel().unwrap(), 1).unwrap(), pool, 2_000, 11);
    });
    let copying = module.copying([OPERAND_BYTES; 4]).unwrap();
    with_pool(gpu, |pool| {
        products(&mut Queue::new(copying, 1).unwrap(), pool, 2_000, 11);
    });
}

/// Each thread has a queue and a pool of its own, and never makes a context current.
#[test]
fn queues_of_two_threads_are_right_bit_for_bit() {
    let Some((gpu, _alone)) = alone() else { return };
    let module = Gemm8Module::load(gpu, &mut Log::new()).unwrap();
    let threads = [21, 22].map(|seed| {
        let module = module.clone();
        thread::spawn(move || {
            assert!(raw::current().is_null(), "a new thread has none");
            with_pool(gpu, |pool| {
                products(&mut Queue::new(module.kernel().unwrap(), 1).unwrap(), pool, 1_000, seed);
            });
            assert!(raw::current().is_null(), "the runtime has left one");
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The program's own memory, page by page, as the operands of a kernel.
#[test]
fn registered_memory_is_exact_uncopied() {
    const NAME: &str = "registered_memory_is_exact_uncopied";
    const PAGE_BYTES: usize = 4096;
    /// `CUDA_ERROR_NOT_SUPPORTED`: some integrated GPUs below compute capability 7.2.
    const NOT_SUPPORTED: i32 = 801;
    let Some((gpu, _alone)) = alone() else { return };
    let whole = Vec::leak(vec![0x5A_u8; POOL_BYTES + PAGE_BYTES]);
    let skip = whole.as_ptr().align_offset(PAGE_BYTES);
    let own = whole.get_mut(skip..skip + POOL_BYTES).unwrap();
    let first = own.as_ptr();
    let registered = match CudaHost::register(gpu, own) {
        Ok(registered) => registered,
        Err(refused)
            if matches!(
                refused.error,
                Error::Cuda { call: "cuMemHostRegister", code: NOT_SUPPORTED, .. }
            ) =>
        {
            return skipped(NAME, &refused.error.to_string());
        }
        Err(refused) => panic!("{}", refused.error),
    };
    let module = Gemm8Module::load(gpu, &mut Log::new()).unwrap();
    pool_in(registered, |pool| {
        let buf = pool.take().unwrap();
        let page = buf.view::<u8>().unwrap();
        assert!(
            (first..first.wrapping_add(POOL_BYTES)).contains(&page.as_ptr()),
            "not the program's own"
        );
        assert!(page.iter().all(|byte| *byte == 0x5A), "its bytes are kept");
        drop(buf);
        products(&mut Queue::new(module.kernel().unwrap(), 1).unwrap(), pool, 1_000, 31);
    });
}

/// The memory of a GPU that other programs may take meanwhile. On a Jetson it is the machine's
/// memory, and a card may have a display, or another user. A leak of 64 bytes a job in a million,
/// or of one round's block in eight, is more.
const OTHERS_BYTES: usize = 32 << 20;

/// Is as much free as before? Both numbers go to the log, for either answer.
fn assert_all_is_back(what: &str, before: usize, after: usize, allowed: usize) {
    let difference = i128::try_from(after).unwrap() - i128::try_from(before).unwrap();
    say(&format!(
        "  free bytes of {what}: {before} before, {after} after, difference {difference}"
    ));
    let lost = before.saturating_sub(after);
    assert!(
        lost <= allowed,
        "{lost} bytes of {before} that were free are not, {allowed} are allowed: {what}"
    );
}

/// `CONTIGO_JOBS` of them, a million where nothing is said. Of a few thousand no leak shows: all
/// that they leave may be less than is allowed.
#[test]
fn a_million_small_jobs_leave_nothing_behind() {
    let Some((gpu, _alone)) = alone() else { return };
    let jobs: u64 =
        env::var("CONTIGO_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1_000_000);
    let raw = Raw::open();
    let module = Gemm8Module::load(gpu, &mut Log::new()).unwrap();
    let run = |jobs: u64| {
        with_pool(gpu, |pool| {
            let mut queue = Queue::new(module.kernel().unwrap(), 1).unwrap();
            let args = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
            for _ in 0..jobs {
                let [a, b, bias, c] = [(); 4].map(|()| pool.take().unwrap());
                let operands = [
                    a.to_device(..16),
                    b.to_device(..256),
                    bias.to_device(..64),
                    c.from_device(..64),
                ];
                drop(queue.run(operands, &args.words(), LIMIT).unwrap());
            }
            assert_eq!(queue.counts().completed, jobs);
        });
    };
    // The memory that the driver keeps from its first jobs is not counted.
    run(1_000);
    let before = raw.free_bytes();
    run(jobs);
    assert_all_is_back(
        &format!("the GPU's memory, {jobs} jobs"),
        before,
        raw.free_bytes(),
        OTHERS_BYTES,
    );
}

/// How much of the CPU's memory a program could still get; `None` where this kernel does not say.
fn available_bytes() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
}

/// A hundred blocks made and given back, and a hundred modules: the GPU's memory is what it was,
/// and so is the CPU's, where a card's pinned blocks are. All of them have 800 MiB; of
/// `MemAvailable` in `/proc/meminfo` other programs may take 256 MiB meanwhile.
#[test]
fn opening_and_closing_leaks_nothing() {
    const OTHER_PROGRAMS_BYTES: usize = 256 << 20;
    let Some((gpu, _alone)) = alone() else { return };
    let raw = Raw::open();
    let round = || {
        // SAFETY: no other thread sees it.
        let memory = unsafe { CudaHost::allocate_write_combined(gpu, 8 << 20, Align::PAGE) };
        let region = Region::new(memory.unwrap()).unwrap();
        let module = Gemm8Module::load(gpu, &mut Log::new()).unwrap();
        drop(module.copying([1 << 20; 4]).unwrap());
        drop(region);
    };
    round();
    let (before, before_of_cpu) = (raw.free_bytes(), available_bytes());
    (0..100).for_each(|_| round());
    let (after, after_of_cpu) = (raw.free_bytes(), available_bytes());
    assert_all_is_back("the GPU's memory, 100 rounds", before, after, OTHERS_BYTES);
    if let Some((before, after)) = before_of_cpu.zip(after_of_cpu) {
        assert_all_is_back("the CPU's memory, 100 rounds", before, after, OTHER_PROGRAMS_BYTES);
    }
}
