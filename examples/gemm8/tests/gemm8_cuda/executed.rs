//! The kernels' PTX, executed as the stand-in for NVIDIA's driver does it.

use super::{
    PTX,
    jobs::{GUARD, Job, Kernel},
};
use fake_cuda::ptx::{Entry, Grid, Window, parse};

/// More than the longest of them takes.
const STATEMENTS_MAX: u64 = 1 << 30;
/// Where operands are: multiples of 64, far from each other.
const BASES: [u64; 4] = [0x10_0000_0000, 0x20_0000_0000, 0x30_0000_0000, 0x40_0000_0000];

/// Runs all of `jobs`, and says which one came out otherwise than expected. A byte read or written
/// beside the operands ends it.
pub(crate) fn run(jobs: &[Job]) {
    let entries = parse(PTX, 53, 10020).unwrap_or_else(|refused| panic!("{}", refused.log));
    for job in jobs {
        let (name, params, mut windows, output, guard) = launch(job);
        let entry: &Entry = entries.iter().find(|entry| entry.name() == name).unwrap();
        let [gx, gy, gz, bx, by, bz] = job.grid;
        let mut progress = entry.start(Grid { blocks: [gx, gy, gz], threads: [bx, by, bz] });
        let ended = entry.run(&mut progress, &params, &mut windows, STATEMENTS_MAX);
        assert_eq!(ended, Ok(true), "{}", job.what());
        let found = windows[output].bytes();
        let expected = &job.expected[guard..job.expected.len() - guard];
        let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!((wrong, found.len()), (None, expected.len()), "the first wrong byte of {}", job.what());
    }
}

/// The kernel's name, its parameters, its memory, which of that is written, and how much of what is
/// expected is around that.
fn launch(job: &Job) -> (&'static str, Vec<u64>, Vec<Window>, usize, usize) {
    let [p, q, r, s] = job.arguments.map(u64::from);
    let output = |addr, guard: usize| Window::new(addr, vec![0xEE; job.expected.len() - 2 * guard], true);
    let input = |addr, bytes: &[u8]| Window::new(addr, bytes.to_vec(), false);
    match job.kernel {
        Kernel::Gemm8 => {
            let [a, b, bias, c] = BASES;
            // A, B and C of int8 are bytes, wherever they are.
            let (a, b, c) = (a + 1, b + 3, if job.arguments[3] & 2 == 0 { c + 4 } else { c + 5 });
            let windows = [a, b, bias].into_iter().zip(&job.operands).map(|(addr, bytes)| input(addr, bytes));
            ("gemm8", vec![a, b, bias, c, p, q, r, s], windows.chain([output(c, 0)]).collect(), 3, 0)
        }
        Kernel::CopyBytes => {
            let [to, from] = [BASES[0] + p, BASES[1] + q];
            ("copy_bytes", vec![to, from, r], vec![output(to, GUARD.len()), input(from, &job.operands[0])], 0, GUARD.len())
        }
        Kernel::FillBytes => ("fill_bytes", vec![BASES[0] + p, s, r], vec![output(BASES[0] + p, GUARD.len())], 0, GUARD.len()),
    }
}
