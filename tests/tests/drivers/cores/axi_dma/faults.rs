//! The faults of the simulated board, as the table of `docs/write-a-driver.md` has them.

use super::{DIRECT, WITH_SG, core, ring};
use contigo::{
    Error, Queue, Region,
    drivers::axi_dma::{AxiDmaConfig, Side},
    sim::{
        Faults, SimBoard, SimConfig,
        axi_dma::CoreSpec,
        stream::{SourceConfig, StreamConfig},
    },
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(2);

/// How a packet of 4 KiB from a camera ends where each job has `faults`: its error, how many
/// microseconds of the board it took, its bytes.
fn ends(spec: CoreSpec, faults: Faults) -> (Option<Error>, u64, Option<usize>) {
    let board = SimBoard::with(SimConfig { seed: 7, faults });
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = region.pool(1, 4096).unwrap();
    let device = core(
        &board,
        CoreSpec { stream: StreamConfig::source(SourceConfig::default(), 512), ..spec },
    );
    let driver = device
        .window()
        .unwrap()
        .channel(Side::S2mm, AxiDmaConfig::default(), Some(ring(&region)))
        .unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let begun = board.now_ns();
    let ended = queue.run([pool.take().unwrap().from_device(..4096)], &[], LIMIT);
    let took_us = (board.now_ns() - begun) / 1_000;
    match ended {
        Ok(done) => (None, took_us, done.bytes),
        Err(failed) => (Some(failed.error), took_us, None),
    }
}

#[test]
fn each_fault_ends_as_the_table_says() {
    let often = 1_000;
    for spec in [DIRECT, WITH_SG] {
        let (none, usual_us, bytes) = ends(spec, Faults::NONE);
        assert_eq!((none, bytes), (None, Some(4096)));
        let (late, late_us, bytes) = ends(spec, Faults { late_irq: often, ..Faults::NONE });
        assert_eq!((late, bytes), (None, Some(4096)));
        let (lost, lost_us, bytes) = ends(spec, Faults { lost_irq: often, ..Faults::NONE });
        assert_eq!((lost, bytes), (None, Some(4096)));
        assert!(
            usual_us < late_us && late_us < lost_us && lost_us >= 2_000,
            "{usual_us} {late_us} {lost_us}"
        );
        let (error, ..) = ends(spec, Faults { error: often, ..Faults::NONE });
        assert!(
            matches!(error, Some(Error::FaultAt { what, .. }) if what.starts_with("DMASlvErr: ")),
            "{error:?}"
        );
        // A packet that ends early is a packet: as many bytes as came.
        let (short, _, bytes) = ends(spec, Faults { short: often, ..Faults::NONE });
        assert!(
            short.is_none() && bytes.is_some_and(|bytes| (1..4096).contains(&bytes)),
            "{short:?} {bytes:?}"
        );
        let (hang, ..) = ends(spec, Faults { hang: often, ..Faults::NONE });
        assert!(matches!(hang, Some(Error::Timeout { .. })), "{hang:?}");
        // A stuck core is one that does not stop when its driver stops it.
        let (stuck, _, bytes) = ends(spec, Faults { stuck: often, ..Faults::NONE });
        assert_eq!((stuck, bytes), (None, Some(4096)));
        let (stuck, ..) = ends(spec, Faults { hang: often, stuck: often, ..Faults::NONE });
        assert!(matches!(stuck, Some(Error::WillNotStop { .. })), "{stuck:?}");
    }
}
