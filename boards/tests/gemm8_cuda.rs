//! The CUDA kernels of `boards/kernels/` without a GPU: their very source, compiled for this machine's processor and run as any grid would,
//! against the runtime's arithmetic and its simulated engine; and whether the PTX is what that source compiles to.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]

use contigo::{
    Align, Engine, Region, Timeout,
    accel::gemm8::{Gemm, Gemm8, Output, requantize},
    sim::{SimBoard, SimGemm8, SimSpec},
};
use contigo_tests::emulated;
use fastrand::Rng;
use std::{
    io::Write,
    iter,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const PTX: &str = include_str!("../kernels/gemm8.ptx");
const RELU: u32 = 1;
const INT8: u32 = 2;
/// Grid and block: what a launcher would take, one thread for everything, more threads than elements, and every direction at once.
const GRIDS: [[u32; 6]; 5] = [[4, 1, 1, 64, 1, 1], [1, 1, 1, 1, 1, 1], [3, 2, 1, 16, 16, 1], [2, 3, 2, 3, 2, 5], [1, 7, 1, 1, 1, 9]];
/// What host.cpp puts around the bytes that a kernel writes.
const GUARD: [u8; 32] = [0xEE; 32];

/// The compiled host program, in a folder that goes with it.
struct Host {
    _folder: tempfile::TempDir,
    program: PathBuf,
}

impl Host {
    /// None, with the reason said, where `test` cannot run.
    fn build(test: &str, more: &[&str]) -> Option<Self> {
        let skip = |why: &str| emulated::skipped(test, why);
        if let Some(why) = emulated::why() {
            skip(&why);
            return None;
        }
        if !Command::new("c++").arg("--version").output().is_ok_and(|output| output.status.success()) {
            skip("c++ is not here");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("host");
        let compile = |source: &Path, flags: &[&str]| {
            let warnings = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"];
            Command::new("c++").args(warnings).args(flags).arg(source).arg("-o").arg(&program).output().unwrap()
        };
        let empty = folder.path().join("empty.cpp");
        std::fs::write(&empty, "int main() {}\n").unwrap();
        if !compile(&empty, more).status.success() {
            skip(&format!("c++ {} does not link", more.join(" ")));
            return None;
        }
        let output = compile(&Path::new(CRATE).join("tests/gemm8_cuda/host.cpp"), more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Self { _folder: folder, program })
    }

    /// Runs all of `jobs` in one process, and says which one came out otherwise than expected.
    fn run(&self, jobs: &[Job]) {
        let mut child = Command::new(&self.program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = thread::scope(|scope| {
            scope.spawn(move || jobs.iter().try_for_each(|job| stdin.write_all(&job.input)));
            child.wait_with_output().unwrap()
        });
        assert!(output.status.success(), "{}", output.status);
        let mut rest = output.stdout.as_slice();
        for job in jobs {
            let (found, after) = rest.split_at(job.expected.len());
            let wrong = found.iter().zip(&job.expected).position(|(found, expected)| found != expected);
            assert_eq!(wrong, None, "the first wrong byte of {}", job.what);
            rest = after;
        }
        assert!(rest.is_empty(), "{} bytes more than asked for", rest.len());
    }
}

/// One kernel, launched once.
struct Job {
    what: String,
    input: Vec<u8>,
    expected: Vec<u8>,
}

impl Job {
    /// As host.cpp reads it.
    fn new(what: &str, kernel: u32, grid: [u32; 6], arguments: [u32; 4], operands: &[&[u8]], expected: Vec<u8>) -> Self {
        let header = iter::once(kernel).chain(grid).chain(arguments).flat_map(u32::to_ne_bytes);
        let input = header.chain(operands.iter().flat_map(|bytes| bytes.iter().copied())).collect();
        Self { what: format!("{what}{arguments:?} on {grid:?}"), input, expected }
    }
}

/// The operands of one product.
struct Product {
    size: [u32; 3],
    a: Vec<u8>,
    b: Vec<u8>,
    bias: Vec<i32>,
}

impl Product {
    /// Bytes from `byte`, bias from `sum`.
    fn new(size: [u32; 3], mut byte: impl FnMut() -> u8, mut sum: impl FnMut() -> i32) -> Self {
        let [m, n, k] = size.map(|value| value as usize);
        let (a, b) = ((0..m * k).map(|_| byte()).collect(), (0..k * n).map(|_| byte()).collect());
        Self { size, a, b, bias: (0..n).map(|_| sum()).collect() }
    }

    fn random(rng: &mut Rng, size: [u32; 3]) -> Self {
        let mut bytes = rng.fork();
        Self::new(size, || bytes.u8(..), || rng.i32(..) >> rng.u32(..32))
    }

    fn bias_bytes(&self) -> Vec<u8> {
        self.bias.iter().copied().flat_map(i32::to_le_bytes).collect()
    }

    /// boards/gemm8.md, "Arithmetic", 1.
    fn sums(&self) -> Vec<i32> {
        let [m, n, k] = self.size.map(|value| value as usize);
        let mut sums: Vec<i32> = Vec::with_capacity(m * n);
        for row in 0..m {
            let first = sums.len();
            sums.extend(&self.bias);
            for inner in 0..k {
                let left = i32::from(self.a[row * k + inner].cast_signed());
                for (sum, &right) in sums[first..].iter_mut().zip(&self.b[inner * n..][..n]) {
                    *sum = sum.wrapping_add(left * i32::from(right.cast_signed()));
                }
            }
        }
        sums
    }

    /// On `grid`; `sums` as above, for whoever wants several outputs of one product.
    fn job(&self, sums: &[i32], output: Output, grid: [u32; 6]) -> Job {
        let bytes = usize::try_from(output.element_bytes()).unwrap();
        let expected = sums.iter().flat_map(|&sum| requantize(sum, output).to_le_bytes().into_iter().take(bytes)).collect();
        self.job_with(expected, output, grid)
    }

    fn job_with(&self, expected: Vec<u8>, output: Output, grid: [u32; 6]) -> Job {
        let [m, n, k] = self.size;
        let flags = match output {
            Output::Int8 { relu, shift } => INT8 | (u32::from(relu) * RELU) | (shift << 8),
            Output::Int32 { relu } => u32::from(relu) * RELU,
        };
        Job::new("gemm8", 0, grid, [m, n, k, flags], &[&self.a, &self.b, &self.bias_bytes()], expected)
    }
}

/// Every output there is: both forms, with and without ReLU, every shift.
fn outputs() -> impl Iterator<Item = Output> {
    [false, true]
        .into_iter()
        .flat_map(|relu| (0..32).map(move |shift| Output::Int8 { relu, shift }).chain(iter::once(Output::Int32 { relu })))
}

/// Sums at every border: of signs, of saturation after every shift, of rounding, and of 32 bits.
fn borders() -> Vec<i32> {
    let powers = (0..32).map(|bit| 1_i64 << bit);
    let saturation = (0..32).flat_map(|shift| [127_i64, 128, 129].map(|value| value << shift));
    let halves = (1..32).flat_map(|shift| [1_i64, 3, 5, 253, 255, 257].map(|value| value << (shift - 1)));
    let around = powers.chain(saturation).chain(halves).flat_map(|value| [value - 1, value, value + 1]);
    around.flat_map(|value| [value, -value]).filter_map(|value| i32::try_from(value).ok()).chain([0, i32::MIN, i32::MAX]).collect()
}

/// Every border, times every output, with nothing added to it.
fn border_jobs() -> Vec<Job> {
    let mut bias = borders();
    bias.resize(bias.len().next_multiple_of(16), 0);
    let mut next = bias.iter();
    let product = Product::new([1, u32::try_from(bias.len()).unwrap(), 16], || 0, || *next.next().unwrap());
    outputs().zip(GRIDS.iter().cycle()).map(|(output, &grid)| product.job(&bias, output, grid)).collect()
}

/// The longest sums of one sign, and sums that leave 32 bits: through the bias, and by products alone, which takes a k beyond the contract.
fn longest_jobs() -> Vec<Job> {
    const EXTREMES: [(u8, u8, i32); 4] = [(0x80, 0x80, i32::MAX), (0x80, 0x7F, i32::MIN), (0x7F, 0x7F, i32::MAX), (0x80, 0x80, 0)];
    let mut jobs = Vec::new();
    for k in [4096, 140_000] {
        for (left, right, bias) in EXTREMES {
            let mut product = Product::new([2, 16, k], || left, || bias);
            product.b.fill(right);
            let sums = product.sums();
            let wraps = sums[0] < bias && left == right || sums[0] > bias && left != right;
            assert_eq!(wraps, bias != 0 || k > 4096, "{k} {left} {right} {bias}");
            for output in [Output::Int32 { relu: false }, Output::Int8 { relu: false, shift: 19 }, Output::Int8 { relu: true, shift: 31 }] {
                jobs.push(product.job(&sums, output, GRIDS[2]));
            }
        }
    }
    jobs
}

/// Any size, also those that the FPGA's engine does not take, on any grid.
fn random_jobs(rng: &mut Rng, count: usize) -> Vec<Job> {
    let outputs: Vec<_> = outputs().collect();
    let size = |rng: &mut Rng, most: u32| if rng.bool() { rng.u32(1..=4) } else { rng.u32(1..=most) };
    let jobs = (0..count).map(|_| {
        let size = [size(rng, 40), size(rng, 70), size(rng, 200)];
        let product = Product::random(rng, size);
        let output = outputs[rng.usize(..outputs.len())];
        product.job(&product.sums(), output, GRIDS[rng.usize(..GRIDS.len())])
    });
    jobs.collect()
}

/// Every length up to some vectors, every alignment of both.
fn byte_jobs(rng: &mut Rng) -> Vec<Job> {
    let around = |bytes: &[u8]| [&GUARD, bytes, &GUARD].concat();
    let mut jobs = Vec::new();
    for len in (0..=70).chain([1000, 4096]) {
        let len_bytes = len as usize;
        for offset in [0, 1, 4, 8, 15] {
            let grid = GRIDS[rng.usize(..GRIDS.len())];
            let source: Vec<u8> = iter::repeat_with(|| rng.u8(..)).take(len_bytes).collect();
            for [to, from] in [[offset, 0], [0, offset], [offset, offset]] {
                jobs.push(Job::new("copy_bytes", 1, grid, [to, from, len, 0], &[&source], around(&source)));
            }
            let value = rng.u32(..);
            jobs.push(Job::new("fill_bytes", 2, grid, [offset, 0, len, value], &[], around(&vec![value.to_le_bytes()[0]; len_bytes])));
        }
    }
    jobs
}

#[test]
fn it_computes_what_the_runtime_says() {
    let Some(host) = Host::build("gemm8_cuda::it_computes_what_the_runtime_says", &[]) else { return };
    host.run(&border_jobs());
    host.run(&longest_jobs());
    host.run(&random_jobs(&mut Rng::with_seed(1), 600));
}

#[test]
fn it_computes_what_the_simulated_engine_does() {
    const TEST: &str = "gemm8_cuda::it_computes_what_the_simulated_engine_does";
    const OPERAND_BYTES: usize = 8192;
    let Some(host) = Host::build(TEST, &[]) else { return };
    let mut rng = Rng::with_seed(2);
    let board = SimBoard::new(1);
    let region =
        Region::new(board.memory_with(SimSpec { len_bytes: 4 * OPERAND_BYTES, coherent: Some(true), ..SimSpec::default() }).unwrap())
            .unwrap();
    let device = SimGemm8::new(&board, board.coherent_port());
    let mut engine = Engine::new(Gemm8::open(device.window().unwrap()).unwrap()).unwrap();
    let mut bufs = [(); 4].map(|()| region.carve(OPERAND_BYTES, Align::LINE).unwrap().into_buf());
    let mut jobs = Vec::new();
    for output in outputs() {
        let size = [rng.u32(1..=24), 16 * rng.u32(1..=4), 16 * rng.u32(1..=8)];
        let product = Product::random(&mut rng, size);
        let [m, n, k] = product.size;
        let args = Gemm { m, n, k, output };
        let lens = args.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap());
        for (buf, bytes) in bufs.iter_mut().zip([&product.a, &product.b, &product.bias_bytes()]) {
            let view: &mut [u8] = buf.view_at_mut(..bytes.len()).unwrap();
            view.copy_from_slice(bytes);
        }
        let [a, b, bias, c] = bufs;
        let operands = [a.to_device(..lens[0]), b.to_device(..lens[1]), bias.to_device(..lens[2]), c.from_device(..lens[3])];
        bufs = engine.start(operands, &args).unwrap().wait(Timeout::ms(100)).unwrap();
        let c: &[u8] = bufs[3].view_at(..lens[3]).unwrap();
        jobs.push(product.job_with(c.to_vec(), output, GRIDS[rng.usize(..GRIDS.len())]));
    }
    host.run(&jobs);
}

#[test]
fn bytes_are_moved_and_no_others() {
    let Some(host) = Host::build("gemm8_cuda::bytes_are_moved_and_no_others", &[]) else { return };
    host.run(&byte_jobs(&mut Rng::with_seed(3)));
}

/// Nothing undefined, and nothing outside the operands.
#[test]
fn sanitizers_find_nothing() {
    const SANITIZE: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let Some(host) = Host::build("gemm8_cuda::sanitizers_find_nothing", &SANITIZE) else { return };
    let mut rng = Rng::with_seed(4);
    host.run(&border_jobs());
    host.run(&longest_jobs());
    host.run(&random_jobs(&mut rng, 200));
    host.run(&byte_jobs(&mut rng));
}

/// What a launcher relies on: the names, the parameters' widths in order, the oldest GPU and the oldest driver.
#[test]
fn the_ptx_has_these_kernels() {
    let mut found = Vec::new();
    for entry in PTX.split(".visible .entry ").skip(1) {
        let (name, rest) = entry.split_once('(').unwrap();
        let parameters = rest.split_once(')').unwrap().0;
        let types: Vec<_> = parameters.split_whitespace().filter(|word| matches!(*word, ".u32" | ".u64")).collect();
        assert_eq!(types.len(), parameters.matches(".param").count(), "{parameters}");
        found.push((name, types.join("")));
    }
    let expected = [("gemm8", ".u64.u64.u64.u64.u32.u32.u32.u32"), ("copy_bytes", ".u64.u64.u64"), ("fill_bytes", ".u64.u32.u64")];
    assert_eq!(found, expected.map(|(name, types)| (name, types.to_owned())));
    for line in [".version 6.0", ".target sm_53", ".address_size 64"] {
        assert_eq!(PTX.lines().filter(|found| *found == line).count(), 1, "{line}");
    }
    assert!(PTX.is_ascii() && !PTX.contains('\0'), "a driver takes it up to the first zero");
}

/// `boards/kernels/ptx`, which says by its exit status that a tool is missing.
fn ptx(test: &str, argument: &str) {
    let Ok(output) = Command::new("python3").arg(Path::new(CRATE).join("kernels/ptx")).arg(argument).output() else {
        return emulated::skipped(test, "python3 is not here");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(3) => emulated::skipped(test, said.trim()),
        _ => panic!("{}\n{said}", output.status),
    }
}

#[test]
fn the_ptx_is_what_the_source_compiles_to() {
    ptx("gemm8_cuda::the_ptx_is_what_the_source_compiles_to", "--check");
}

#[test]
fn the_ptx_assembles_for_every_gpu() {
    ptx("gemm8_cuda::the_ptx_assembles_for_every_gpu", "--assemble");
}
