//! Jobs whose memory their port cannot use: refused before anything is touched.

use super::Watched;
use crate::gemm::{GEMM, LIMIT, SLOT, operands, queue, region};
use contigo::mem::SyncScope;
use contigo::sim::{SimBoard, SimSpec};
use contigo::types::BaseAddr;
use contigo::{Align, CpuBuf, Error, PhysAddr, Port, Region};
use contigo_gemm8::SimGemm8;
use std::sync::atomic::Ordering;

fn good() -> SimSpec {
    SimSpec { len_bytes: 4096, ..SimSpec::default() }
}

/// Why a job behind `port` is refused whose output is `c`, and `None` where it runs. A refused
/// output comes back as it was.
fn refusal(board: &SimBoard, port: Port, mut c: CpuBuf) -> Option<Error> {
    let inputs = region(board, 4096).pool(3, SLOT).unwrap();
    let [a, b, bias] = [(); 3].map(|()| inputs.take().unwrap());
    c.view_mut::<u8>().unwrap().fill(0x5A);
    let mut queue = queue(&SimGemm8::new(board, port));
    let failed = queue.run(operands([a, b, bias, c]), &GEMM.words(), LIMIT).err()?;
    assert_eq!((failed.cause, queue.len(), queue.counts().pushed), (failed.error, 0, 0));
    let [.., c] = failed.buffers.unwrap().map(|operand| operand.into_buf().unwrap());
    assert!(c.view::<u8>().unwrap().iter().all(|&byte| byte == 0x5A), "{}", failed.error);
    Some(failed.error)
}

/// The same of an output in memory like `spec`, which is freed afterwards.
fn job_on(spec: SimSpec, port: fn(&SimBoard) -> Port) -> Option<Error> {
    let board = SimBoard::new(1);
    let (watched, freed) = Watched::new(board.memory_with(spec).unwrap());
    let odd = Region::new(watched).unwrap().pool(2, SLOT).unwrap();
    let error = refusal(&board, port(&board), odd.take().unwrap());
    assert_eq!(odd.taken(), 0, "every buffer came back");
    drop(odd);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    error
}

#[test]
fn memory_that_a_port_cannot_use() {
    let (plain, snooping) = (SimBoard::port, SimBoard::coherent_port);
    let (good, install) = (good(), "the module contigo");
    let mismatch = |port, memory_coherent| Some(Error::CoherencyMismatch { port, memory_coherent });
    for (spec, at_plain, at_snooping) in [
        (good, None, None),
        (SimSpec { coherent: Some(true), ..good }, mismatch("sim-hp0", true), None),
        (SimSpec { coherent: Some(false), ..good }, None, mismatch("sim-acp", false)),
        (SimSpec { scope: SyncScope::Coherent, ..good }, mismatch("sim-hp0", true), None),
        (
            SimSpec { scope: SyncScope::None { install }, ..good },
            Some(Error::CannotSync { port: "sim-hp0", install }),
            None,
        ),
        (
            SimSpec { scope: SyncScope::Whole, ..good },
            Some(Error::WholeBlock { shared_bytes: SLOT }),
            None,
        ),
    ] {
        assert_eq!(
            (job_on(spec, plain), job_on(spec, snooping)),
            (at_plain, at_snooping),
            "{spec:?}"
        );
    }
}

/// Beyond the port's 32 bits, outside of its window, and on another board.
#[test]
fn memory_that_a_port_does_not_reach() {
    let board = SimBoard::new(1);
    let windowed = Port { window: (0x1000_0000, 0x1FFF_FFFF), addr_bits: 40, ..board.port() };
    for (port, (first, last)) in
        [(board.port(), (0, 0xFFFF_FFFF)), (windowed, (0x1000_0000, 0x1FFF_FFFF))]
    {
        let base = Some(BaseAddr::Phys(PhysAddr(0xFFFF_FF00)));
        let high = Region::new(board.memory_with(SimSpec { base, ..good() }).unwrap()).unwrap();
        let _below = high.alloc(SLOT, Align::LINE).unwrap();
        let c = high.alloc(64, Align::LINE).unwrap();
        let addr = 0x1_0000_0000;
        let beyond = Error::Unreachable { port: "sim-hp0", addr, len_bytes: 64, first, last };
        assert_eq!(refusal(&board, port, c), Some(beyond));
    }
    let there = SimBoard::new(1);
    let c = region(&there, 4096).alloc(64, Align::LINE).unwrap();
    let wrong = Error::WrongBus { port: "sim-hp0", memory: there.bus() };
    assert_eq!(refusal(&board, board.port(), c), Some(wrong));
}

#[test]
fn block_synced_as_a_whole_holds_one_buffer() {
    let board = SimBoard::new(1);
    let spec = SimSpec { scope: SyncScope::Whole, ..good() };
    let whole = Region::new(board.memory_with(spec).unwrap()).unwrap();
    let first = whole.alloc(128, Align::LINE).unwrap();
    assert_eq!(whole.alloc(64, Align::LINE).unwrap_err(), Error::WholeBlock { shared_bytes: 128 });
    drop(first);
    assert!(whole.alloc(64, Align::LINE).is_ok(), "a refused buffer counts for nothing");
}
