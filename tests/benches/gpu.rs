//! Zero-copy against copies, on a GPU: `cargo bench -p contigo-tests --bench gpu`, or
//! `tests/gpu/run`, which does the tests too.
//!
//! One job reads a block of pinned memory and writes another of the same size, by the kernel
//! `copy_bytes`: every byte crosses the bus once in each direction. **zero-copy**: the kernel
//! itself reads and writes the CPU's memory. **copies**: the same kernel on the GPU's memory, with
//! a copy there and one back on its stream. **cuMemcpyAsync**: a copy of that size to the GPU and
//! one back, from the same pinned memory, without a kernel and without this runtime: what the link
//! gives. Latency is the shortest tenth's upper end of the time from the doorbell to the result
//! seen by the CPU, which waits polling.
//!
//! The second table has products, whose inputs are read again and again: there zero-copy stops
//! paying.
//!
//! Behind it the cost of one poll: the runtime makes the context current around each `cuEventQuery`
//! and leaves the thread's own as it was.
//!
//! `--json` prints lines of JSON in place of the tables; `--json FILE` writes them beside the
//! tables.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a measurement that cannot be made ends; a kernel's promise; figures have six digits"
)]

#[cfg(target_pointer_width = "64")]
#[path = "../tests/gpu/libcuda.rs"]
mod libcuda;

#[cfg(target_pointer_width = "64")]
mod measured {
    use super::libcuda::{
        cuCtxPopCurrent_v2, cuCtxPushCurrent_v2, cuCtxSetCurrent, cuCtxSynchronize,
        cuDevicePrimaryCtxRetain, cuEventCreate, cuEventQuery, cuEventRecord, cuMemAlloc_v2,
        cuMemcpyAsync, cuStreamCreate, cuStreamSynchronize,
    };
    use contigo::cuda::{
        CopyingFunction, Cuda, CudaFunction, CudaHost, Gpu, Launch, Log, Parameter, Signature,
        code_name,
    };
    use contigo::{Align, Backend, OperandSpec, Pool, Queue, Region};
    use contigo_gemm8::cuda::Gemm8Module;
    use contigo_gemm8::{Gemm, Output};
    use std::ffi::{c_int, c_void};
    use std::time::{Duration, Instant};
    use std::{env, fs, io, ptr};

    const LIMIT: Duration = Duration::from_secs(10);
    /// Some time for each figure, and some repetitions.
    const FIGURE_MS: u128 = 300;
    const LEAST: usize = 20;
    /// The last product of the table: twenty of the next one may take 8 s each way.
    const LONGEST_US: f64 = 5e4;

    /// `copy_bytes(dst, src, len)`, with enough threads to keep any link busy, 16 bytes each at a
    /// time.
    fn signature(len_bytes: usize) -> Signature {
        let (to, from) = (
            Parameter::Operand(OperandSpec::from_device()),
            Parameter::Operand(OperandSpec::to_device()),
        );
        let blocks = u32::try_from(len_bytes.div_ceil(16 * 256)).unwrap_or(u32::MAX).clamp(1, 1024);
        let signature = Signature::new("copy_bytes", &[to, from, Parameter::Words(2)])
            .unwrap()
            .launched(Launch::of(blocks, 256));
        signature.sized(0, 1, &[0]).and_then(|signature| signature.sized(1, 1, &[0])).unwrap()
    }

    /// The time of one go, in microseconds: the tenth percentile, which other programs disturb
    /// least.
    fn shortest_us(mut go: impl FnMut()) -> f64 {
        (0..3).for_each(|_| go());
        let (begin, mut times) = (Instant::now(), Vec::new());
        while times.len() < LEAST || begin.elapsed().as_millis() < FIGURE_MS {
            let since = Instant::now();
            go();
            times.push(since.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        *times.get(times.len() / 10).unwrap()
    }

    /// Jobs of `len_bytes` on `queue`.
    fn jobs_us(queue: &mut Queue<impl contigo::Driver>, pool: &Pool, len_bytes: usize) -> f64 {
        let mut source = pool.take().unwrap();
        source
            .view_mut::<u8>()
            .unwrap()
            .iter_mut()
            .zip((0..=250).cycle())
            .for_each(|(to, from)| *to = from);
        let mut held = Some([pool.take().unwrap(), source]);
        let time_us = shortest_us(|| {
            let [to, from] = held.take().unwrap();
            let operands = [to.from_device(..len_bytes), from.to_device(..len_bytes)];
            held = Some(
                queue
                    .run(operands, &[u32::try_from(len_bytes).unwrap(), 0], LIMIT)
                    .unwrap()
                    .buffers,
            );
        });
        let [to, from] = held.unwrap();
        assert_eq!(
            to.view_at::<u8>(..len_bytes).unwrap(),
            from.view_at::<u8>(..len_bytes).unwrap()
        );
        time_us
    }

    /// A square product of `side`: a kernel that reads each byte of its inputs `side` times.
    fn product_us(queue: &mut Queue<impl contigo::Driver>, pool: &Pool, side: u32) -> f64 {
        let args = Gemm { m: side, n: side, k: side, output: Output::Int32 { relu: false } };
        let [a_bytes, b_bytes, bias_bytes, c_bytes] =
            args.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap());
        let mut held = Some([(); 4].map(|()| {
            let mut buf = pool.take().unwrap();
            buf.view_mut::<u8>()
                .unwrap()
                .iter_mut()
                .zip((0..=250).cycle())
                .for_each(|(to, from)| *to = from);
            buf
        }));
        shortest_us(|| {
            let [a, b, bias, c] = held.take().unwrap();
            let operands = [
                a.to_device(..a_bytes),
                b.to_device(..b_bytes),
                bias.to_device(..bias_bytes),
                c.from_device(..c_bytes),
            ];
            held = Some(queue.run(operands, &args.words(), LIMIT).unwrap().buffers);
        })
    }

    /// Where zero-copy stops paying: lines of JSON, and of a table where it is `shown`.
    fn products(gpu: &Gpu, module: &Gemm8Module, shown: bool) -> String {
        if shown {
            println!(
                "\ngemm8, square: each byte of the inputs is read so many times; microseconds\n"
            );
            println!("{:>9}  {:>10}  {:>10}  {:>8}", "side", "zero-copy", "copies", "ratio");
        }
        let mut lines = String::new();
        for side in [16, 32, 64, 128, 256, 512, 1024] {
            let slot_bytes = 4 * (side * side) as usize;
            let region =
                Region::new(CudaHost::allocate(gpu, 4 * slot_bytes, Align::PAGE).unwrap()).unwrap();
            let pool = region.pool(4, slot_bytes).unwrap();
            let direct_us =
                product_us(&mut Queue::new(module.kernel().unwrap(), 1).unwrap(), &pool, side);
            let copying_us = product_us(
                &mut Queue::new(module.copying([slot_bytes; 4]).unwrap(), 1).unwrap(),
                &pool,
                side,
            );
            if shown {
                println!(
                    "{side:>9}  {direct_us:>10.1}  {copying_us:>10.1}  {:>8.2}",
                    direct_us / copying_us
                );
            }
            lines += &format!(
                "{{\"product_side\":{side},\"zero_copy_us\":{direct_us:.3},\"copies_us\":{copying_us:.3}}}\n"
            );
            // The next one takes eight times as long.
            if direct_us > LONGEST_US {
                break;
            }
        }
        lines
    }

    /// Makes the primary context current on this thread.
    fn current() -> *mut c_void {
        let mut context = ptr::null_mut();
        // SAFETY: the pointer is a reference; the device is there.
        unsafe {
            assert_eq!(cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
            assert_eq!(cuCtxSetCurrent(context), 0);
        }
        context
    }

    /// The cost of one look at an event, in microseconds.
    struct Poll {
        push_query_pop_us: f64,
        query_us: f64,
        /// With no context current on the thread, and what the driver answers then.
        without_us: f64,
        without_code: c_int,
    }

    impl Poll {
        /// Looks at an event that has happened.
        fn measured() -> Self {
            const LOOKS: u32 = 1_000;
            let context = current();
            let mut event = ptr::null_mut();
            // SAFETY: the pointer is a reference; the event is recorded in the default stream.
            unsafe {
                assert_eq!(cuEventCreate(&raw mut event, 2), 0);
                assert_eq!(cuEventRecord(event, ptr::null_mut()), 0);
                assert_eq!(cuCtxSynchronize(), 0);
            }
            // One look is shorter than the clock's own call.
            let each_us = |look: &dyn Fn() -> c_int| {
                shortest_us(|| (0..LOOKS).for_each(|_| _ = look())) / f64::from(LOOKS)
            };
            // SAFETY: the event is one, so below.
            let bare = || unsafe { cuEventQuery(event) };
            let around = || {
                let mut popped = ptr::null_mut();
                // SAFETY: the context is one, and what is pushed is popped.
                unsafe {
                    (
                        cuCtxPushCurrent_v2(context),
                        cuEventQuery(event),
                        cuCtxPopCurrent_v2(&raw mut popped),
                    )
                        .1
                }
            };
            assert_eq!(bare(), 0);
            let query_us = each_us(&bare);
            // SAFETY: none is current from here on, which `around` is measured with too: as on a
            // thread of the runtime's users.
            assert_eq!(unsafe { cuCtxSetCurrent(ptr::null_mut()) }, 0);
            assert_eq!(around(), 0);
            Self {
                push_query_pop_us: each_us(&around),
                query_us,
                without_us: each_us(&bare),
                without_code: bare(),
            }
        }

        fn print(&self) {
            let (us, code) = (self.without_us, self.without_code);
            let name = code_name(code);
            println!("\ncost of one poll, microseconds\n");
            println!(
                "{:<52}  {:>8.3}",
                "cuCtxPushCurrent, cuEventQuery, cuCtxPopCurrent", self.push_query_pop_us
            );
            println!("{:<52}  {:>8.3}", "cuEventQuery, the context current", self.query_us);
            println!("{:<52}  {us:>8.3}  {name} ({code})", "cuEventQuery, no context current");
        }

        fn json(&self) -> String {
            let Self { push_query_pop_us, query_us, without_us, without_code } = self;
            format!(
                "{{\"push_query_pop_us\":{push_query_pop_us:.4},\"query_us\":{query_us:.4},\
                 \"query_without_context_us\":{without_us:.4},\"query_without_context_code\":{without_code}}}"
            )
        }
    }

    /// The driver's own copies, there and back.
    struct Driver {
        stream: *mut c_void,
        device: u64,
    }

    impl Driver {
        fn open(len_bytes: usize) -> Self {
            current();
            let (mut stream, mut device) = (ptr::null_mut(), 0);
            // SAFETY: the pointers are references.
            let made = unsafe {
                (cuStreamCreate(&raw mut stream, 1), cuMemAlloc_v2(&raw mut device, len_bytes))
            };
            assert_eq!(made, (0, 0));
            Self { stream, device }
        }

        fn there_and_back_us(&self, host: u64, len_bytes: usize) -> f64 {
            // SAFETY: so many bytes are at both; no other code uses them.
            shortest_us(|| unsafe {
                assert_eq!(cuMemcpyAsync(self.device, host, len_bytes, self.stream), 0);
                assert_eq!(cuMemcpyAsync(host, self.device, len_bytes, self.stream), 0);
                assert_eq!(cuStreamSynchronize(self.stream), 0);
            })
        }
    }

    /// The tables, and lines of JSON beside them or in their place.
    pub(crate) fn tables() -> io::Result<()> {
        let mut words = env::args().skip_while(|argument| argument != "--json");
        let json = words.next().is_some();
        // Cargo puts `--bench` behind what it was given.
        let file = words.next().filter(|word| !word.starts_with("--"));
        let shown = !json || file.is_some();
        let cuda = match Cuda::load() {
            Ok(cuda) => cuda,
            Err(why) => {
                println!("skipped: gpu: {why}");
                return Ok(());
            }
        };
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let module = Gemm8Module::load(&gpu, &mut Log::new()).unwrap();
        if shown {
            let (major, minor) = gpu.facts().compute_capability;
            println!(
                "{}, compute capability {major}.{minor}, CUDA {}",
                gpu.facts().name,
                cuda.version()
            );
            println!("microseconds for one job there and back; GB/s counts both directions\n");
            println!(
                "{:>9}  {:>18}  {:>18}  {:>18}  {:>8}",
                "bytes", "zero-copy", "copies", "cuMemcpyAsync", "ratio"
            );
        }
        let mut lines = String::new();
        // 4 KiB to 64 MiB.
        for len_bytes in (12..=26).step_by(2).map(|bits| 1_usize << bits) {
            let region =
                Region::new(CudaHost::allocate(&gpu, 2 * len_bytes, Align::PAGE).unwrap()).unwrap();
            let pool = region.pool(2, len_bytes).unwrap();
            // SAFETY: `examples/gemm8/kernels/gemm8.cu`: it reads `len` bytes at the second
            // operand, and writes as many at the first; so below.
            let direct =
                unsafe { CudaFunction::new(module.module(), c"copy_bytes", signature(len_bytes)) };
            let mut direct = Queue::new(direct.unwrap(), 1).unwrap();
            let direct_us = jobs_us(&mut direct, &pool, len_bytes);
            // SAFETY: as above.
            let copying = unsafe {
                CopyingFunction::new(
                    module.module(),
                    c"copy_bytes",
                    signature(len_bytes),
                    &[len_bytes; 2],
                )
            };
            let mut copying = Queue::new(copying.unwrap(), 1).unwrap();
            let copying_us = jobs_us(&mut copying, &pool, len_bytes);
            let own = CudaHost::allocate(&gpu, len_bytes, Align::PAGE).unwrap();
            let driver_us =
                Driver::open(len_bytes).there_and_back_us(own.mapping().base.raw(), len_bytes);
            if shown {
                let cell = |time_us: f64| {
                    format!("{time_us:>8.1} {:>4.1} GB/s", 2.0 * len_bytes as f64 / time_us / 1e3)
                };
                println!(
                    "{len_bytes:>9}  {}  {}  {}  {:>8.2}",
                    cell(direct_us),
                    cell(copying_us),
                    cell(driver_us),
                    direct_us / copying_us
                );
            }
            lines += &format!(
                "{{\"bytes\":{len_bytes},\"zero_copy_us\":{direct_us:.3},\"copies_us\":{copying_us:.3},\"cu_memcpy_async_us\":{driver_us:.3}}}\n"
            );
        }
        lines += &products(&gpu, &module, shown);
        let poll = Poll::measured();
        lines += &format!("{{\"cost_of_one_poll\":{}}}\n", poll.json());
        if shown {
            poll.print();
        }
        match file {
            Some(file) => fs::write(file, lines),
            None if json => io::Write::write_all(&mut io::stdout(), lines.as_bytes()),
            None => Ok(()),
        }
    }
}

fn main() -> std::io::Result<()> {
    // `cargo test` runs benches once, to see that they run: without a GPU it prints why it skips.
    #[cfg(target_pointer_width = "64")]
    measured::tables()?;
    Ok(())
}
