//! The CUDA kernels of `examples/gemm8/kernels/` without a GPU. Their PTX is executed instruction
//! by instruction as any grid would run it, and compared with the runtime's arithmetic and its
//! simulated engine. Their source is compiled, and must give the same PTX.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod jobs;

use self::jobs::{
    GRIDS, Job, Product, border_jobs, byte_jobs, longest_jobs, outputs, random_jobs, run,
};
use contigo::{
    Align, Queue, Region,
    sim::{SimBoard, SimSpec},
};
use contigo_gemm8::{Gemm, Gemm8, SimGemm8};
use core::time::Duration;
use fastrand::Rng;
use std::{path::Path, process::Command};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const PTX: &str = include_str!("../../kernels/gemm8.ptx");

#[test]
fn the_ptx_computes_what_the_runtime_says() {
    run(&border_jobs());
    run(&longest_jobs());
    run(&random_jobs(&mut Rng::with_seed(5), 200));
}

/// Products of the simulated engine, with every output.
fn simulated_jobs() -> Vec<Job> {
    const OPERAND_BYTES: usize = 8192;
    let mut rng = Rng::with_seed(2);
    let board = SimBoard::new(1);
    let region = Region::new(
        board
            .memory_with(SimSpec {
                len_bytes: 4 * OPERAND_BYTES,
                coherent: Some(true),
                ..SimSpec::default()
            })
            .unwrap(),
    )
    .unwrap();
    let device = SimGemm8::new(&board, board.coherent_port());
    let mut queue =
        Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    let mut bufs = [(); 4].map(|()| region.alloc(OPERAND_BYTES, Align::LINE).unwrap());
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
        let operands = [
            a.to_device(..lens[0]),
            b.to_device(..lens[1]),
            bias.to_device(..lens[2]),
            c.from_device(..lens[3]),
        ];
        bufs = queue.run(operands, &args.words(), Duration::from_millis(100)).unwrap().buffers;
        let c: &[u8] = bufs[3].view_at(..lens[3]).unwrap();
        jobs.push(product.job_with(c.to_vec(), output, GRIDS[rng.usize(..GRIDS.len())]));
    }
    jobs
}

#[test]
fn ptx_computes_what_sim_engine_does() {
    run(&simulated_jobs());
}

#[test]
fn bytes_are_moved_and_no_others() {
    run(&byte_jobs(&mut Rng::with_seed(3)));
}

/// The oldest GPU and the oldest driver.
#[test]
fn the_ptx_is_for_every_driver() {
    for line in [".version 6.0", ".target sm_53", ".address_size 64"] {
        assert_eq!(PTX.lines().filter(|found| *found == line).count(), 1, "{line}");
    }
    assert!(PTX.is_ascii() && !PTX.contains('\0'), "a driver takes it up to the first zero");
}

/// `examples/gemm8/kernels/ptx`, which says by its exit status that a tool is missing.
fn ptx(test: &str, argument: &str) {
    let Ok(output) =
        Command::new("python3").arg(Path::new(CRATE).join("kernels/ptx")).arg(argument).output()
    else {
        return contigo_testkit::skipped(test, "python3 is not here");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(3) => contigo_testkit::skipped(test, said.trim()),
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
