//! The kernels' inputs, the bytes that they have to write, and their PTX, executed as the stand-in
//! for NVIDIA's driver does it.

use super::PTX;
use contigo_gemm8::{Output, requantize};
use fake_cuda::{
    Launch,
    ptx::{Window, parse},
};
use fastrand::Rng;
use std::iter;

const RELU: u32 = 1;
const INT8: u32 = 2;
/// Every bit of the flags that says nothing.
const IGNORED: u32 = !(RELU | INT8 | 31 << 8);
/// Grid and block: what a launcher would take, one thread for everything, more threads than
/// elements, every direction at once, and few threads in many blocks.
pub(crate) const GRIDS: [[u32; 6]; 6] = [
    [4, 1, 1, 64, 1, 1],
    [1, 1, 1, 1, 1, 1],
    [3, 2, 1, 16, 16, 1],
    [2, 3, 2, 3, 2, 5],
    [1, 7, 1, 1, 1, 9],
    [5, 2, 3, 2, 1, 1],
];
/// More than the longest of them takes.
const STATEMENTS_MAX: u64 = 1 << 30;
/// Where operands are: multiples of 64, far from each other.
const BASES: [u64; 4] = [0x10_0000_0000, 0x20_0000_0000, 0x30_0000_0000, 0x40_0000_0000];

#[derive(Clone, Copy, Debug)]
enum Kernel {
    Gemm8,
    CopyBytes,
    FillBytes,
}

/// One kernel, launched once.
pub(crate) struct Job {
    kernel: Kernel,
    /// Blocks, and threads of each.
    grid: [u32; 6],
    /// Of `gemm8`: m, n, k, flags. Of the others: offsets of `dst` and `src` from a multiple of 64,
    /// length, value.
    arguments: [u32; 4],
    /// What is read.
    operands: Vec<Vec<u8>>,
    /// The written bytes, all of them.
    expected: Vec<u8>,
}

impl Job {
    /// The kernel's name, its parameters and its memory. Its output comes last.
    fn launch(&self) -> (&'static str, Vec<u64>, Vec<Window>) {
        let [p, q, r, s] = self.arguments.map(u64::from);
        let (name, inputs, output, params) = match self.kernel {
            Kernel::Gemm8 => {
                let [a, b, bias, c] = BASES;
                // A, B and C of int8 are bytes, wherever they are.
                let (a, b, c) =
                    (a + 1, b + 3, if self.arguments[3] & INT8 == 0 { c + 4 } else { c + 5 });
                ("gemm8", vec![a, b, bias], c, vec![a, b, bias, c, p, q, r, s])
            }
            Kernel::CopyBytes => (
                "copy_bytes",
                vec![BASES[1] + q],
                BASES[0] + p,
                vec![BASES[0] + p, BASES[1] + q, r],
            ),
            Kernel::FillBytes => ("fill_bytes", Vec::new(), BASES[0] + p, vec![BASES[0] + p, s, r]),
        };
        let inputs = inputs
            .into_iter()
            .zip(&self.operands)
            .map(|(addr, bytes)| Window::new(addr, bytes.clone(), false));
        let output = Window::new(output, vec![0xEE; self.expected.len()], true);
        (name, params, inputs.chain([output]).collect())
    }
}

/// Runs all of `jobs`, and says which one came out otherwise than expected. A byte read or written
/// beside the operands ends it.
pub(crate) fn run(jobs: &[Job]) {
    let entries = parse(PTX, 53).unwrap_or_else(|log| panic!("{log}"));
    for job in jobs {
        let what = format!("{:?}{:?} on {:?}", job.kernel, job.arguments, job.grid);
        let (name, params, mut windows) = job.launch();
        let entry = entries.iter().find(|entry| entry.name == name).unwrap();
        let [gx, gy, gz, bx, by, bz] = job.grid;
        let mut progress =
            entry.start(Launch { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes: 0 });
        assert_eq!(
            entry.run(&mut progress, &params, &mut windows, STATEMENTS_MAX),
            Ok(true),
            "{what}"
        );
        let wrong = windows
            .last()
            .unwrap()
            .bytes()
            .iter()
            .zip(&job.expected)
            .position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "the first wrong byte of {what}");
    }
}

/// The operands of one product.
pub(crate) struct Product {
    pub(crate) size: [u32; 3],
    pub(crate) a: Vec<u8>,
    pub(crate) b: Vec<u8>,
    bias: Vec<i32>,
}

impl Product {
    /// Bytes from `byte`, bias from `sum`.
    fn new(size: [u32; 3], mut byte: impl FnMut() -> u8, mut sum: impl FnMut() -> i32) -> Self {
        let [m, n, k] = size.map(|value| value as usize);
        let (a, b) = ((0..m * k).map(|_| byte()).collect(), (0..k * n).map(|_| byte()).collect());
        Self { size, a, b, bias: (0..n).map(|_| sum()).collect() }
    }

    pub(crate) fn random(rng: &mut Rng, size: [u32; 3]) -> Self {
        let mut bytes = rng.fork();
        Self::new(size, || bytes.u8(..), || rng.i32(..) >> rng.u32(..32))
    }

    pub(crate) fn bias_bytes(&self) -> Vec<u8> {
        self.bias.iter().copied().flat_map(i32::to_le_bytes).collect()
    }

    /// examples/gemm8/README.md, "Arithmetic", 1.
    pub(crate) fn sums(&self) -> Vec<i32> {
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

    /// On `grid`; `sums` as above, for a test that wants several outputs of one product.
    pub(crate) fn job(&self, sums: &[i32], output: Output, grid: [u32; 6]) -> Job {
        let bytes = usize::try_from(output.element_bytes()).unwrap();
        let expected = sums
            .iter()
            .flat_map(|&sum| requantize(sum, output).to_le_bytes().into_iter().take(bytes))
            .collect();
        self.job_with(expected, output, grid)
    }

    pub(crate) fn job_with(&self, expected: Vec<u8>, output: Output, grid: [u32; 6]) -> Job {
        let [m, n, k] = self.size;
        let flags = match output {
            Output::Int8 { relu, shift } => INT8 | (u32::from(relu) * RELU) | (shift << 8),
            Output::Int32 { relu } => u32::from(relu) * RELU,
        };
        let operands = vec![self.a.clone(), self.b.clone(), self.bias_bytes()];
        Job { kernel: Kernel::Gemm8, grid, arguments: [m, n, k, flags], operands, expected }
    }
}

/// Every output there is: both forms, with and without ReLU, every shift.
pub(crate) fn outputs() -> impl Iterator<Item = Output> {
    [false, true].into_iter().flat_map(|relu| {
        (0..32)
            .map(move |shift| Output::Int8 { relu, shift })
            .chain(iter::once(Output::Int32 { relu }))
    })
}

/// Sums at every border: of signs, of saturation after every shift, of rounding, and of 32 bits.
fn borders() -> Vec<i32> {
    let powers = (0..32).map(|bit| 1_i64 << bit);
    let saturation = (0..32).flat_map(|shift| [127_i64, 128, 129].map(|value| value << shift));
    let halves =
        (1..32).flat_map(|shift| [1_i64, 3, 5, 253, 255, 257].map(|value| value << (shift - 1)));
    let around =
        powers.chain(saturation).chain(halves).flat_map(|value| [value - 1, value, value + 1]);
    around
        .flat_map(|value| [value, -value])
        .filter_map(|value| i32::try_from(value).ok())
        .chain([0, i32::MIN, i32::MAX])
        .collect()
}

/// Every border, times every output, with nothing added to it, whatever the other flags are. By
/// products of zeros, and by no products, which a compiler may give code of its own.
pub(crate) fn border_jobs() -> Vec<Job> {
    let mut bias = borders();
    bias.resize(bias.len().next_multiple_of(16), 0);
    let n = u32::try_from(bias.len()).unwrap();
    let sizes = [[1, n, 16], [1, n, 0], [2, n / 2, 0]];
    let jobs = sizes.into_iter().flat_map(|size| {
        let mut next = bias.iter();
        let product = Product::new(size, || 0, || *next.next().unwrap());
        let sums = product.sums();
        let job = |(output, &grid)| {
            let mut job = product.job(&sums, output, grid);
            job.arguments[3] |= IGNORED;
            job
        };
        outputs().zip(GRIDS.iter().cycle()).map(job).collect::<Vec<_>>()
    });
    jobs.collect()
}

/// The longest sums of one sign, and sums that leave 32 bits: through the bias, and by products
/// alone, which takes a k beyond the contract.
pub(crate) fn longest_jobs() -> Vec<Job> {
    const EXTREMES: [(u8, u8, i32); 4] =
        [(0x80, 0x80, i32::MAX), (0x80, 0x7F, i32::MIN), (0x7F, 0x7F, i32::MAX), (0x80, 0x80, 0)];
    let mut jobs = Vec::new();
    for k in [4096, 140_000] {
        for (left, right, bias) in EXTREMES {
            let mut product = Product::new([1, 4, k], || left, || bias);
            product.b.fill(right);
            let sums = product.sums();
            let wraps = sums[0] < bias && left == right || sums[0] > bias && left != right;
            assert_eq!(wraps, bias != 0 || k > 4096, "{k} {left} {right} {bias}");
            for output in [
                Output::Int32 { relu: false },
                Output::Int8 { relu: false, shift: 19 },
                Output::Int8 { relu: true, shift: 31 },
            ] {
                jobs.push(product.job(&sums, output, GRIDS[2]));
            }
        }
    }
    jobs
}

/// Any size, also those that the FPGA's engine does not take, on any grid.
pub(crate) fn random_jobs(rng: &mut Rng, count: usize) -> Vec<Job> {
    let outputs: Vec<_> = outputs().collect();
    let size =
        |rng: &mut Rng, most: u32| if rng.bool() { rng.u32(1..=4) } else { rng.u32(1..=most) };
    let jobs = (0..count).map(|_| {
        let size = [size(rng, 40), size(rng, 70), size(rng, 200)];
        let product = Product::random(rng, size);
        let output = outputs[rng.usize(..outputs.len())];
        product.job(&product.sums(), output, GRIDS[rng.usize(..GRIDS.len())])
    });
    jobs.collect()
}

/// Every length up to some vectors, every alignment of both.
pub(crate) fn byte_jobs(rng: &mut Rng) -> Vec<Job> {
    let mut jobs = Vec::new();
    // The long ones on every grid: each of its threads has something to do, and several times.
    let lens = (0..=70)
        .map(|len| (len, 0))
        .chain((0..GRIDS.len()).flat_map(|grid| [(1000, grid), (5000, grid)]));
    for (len, grid) in lens {
        let len_bytes = len as usize;
        for offset in [0, 1, 4, 8, 15] {
            let grid = GRIDS[if len > 70 { grid } else { rng.usize(..GRIDS.len()) }];
            let source: Vec<u8> = iter::repeat_with(|| rng.u8(..)).take(len_bytes).collect();
            for [to, from] in [[offset, 0], [0, offset], [offset, offset]] {
                let (arguments, operands) = ([to, from, len, 0], vec![source.clone()]);
                jobs.push(Job {
                    kernel: Kernel::CopyBytes,
                    grid,
                    arguments,
                    operands,
                    expected: source.clone(),
                });
            }
            let value = rng.u32(..);
            let expected = vec![value.to_le_bytes()[0]; len_bytes];
            jobs.push(Job {
                kernel: Kernel::FillBytes,
                grid,
                arguments: [offset, 0, len, value],
                operands: Vec::new(),
                expected,
            });
        }
    }
    jobs
}
