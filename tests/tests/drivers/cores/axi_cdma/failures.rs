//! Errors of the bus, lengths that are cut, interrupts that never come, cores that hang, and that
//! the next job works.

use super::{DEFAULT, DRE, LIMIT, carve, narrow};
use contigo::{
    Driver, Error, Queue, Region,
    drivers::axi_cdma::{AxiCdmaConfig, regs},
    sim::{
        Faults, SimBoard, SimConfig, SimDevice,
        axi_cdma::{AxiCdmaModel, AxiCdmaSpec, SimAxiCdma},
    },
};
use std::{collections::BTreeSet, time::Duration};

/// A copy of 1,000 bytes.
fn copy(queue: &mut Queue<impl Driver>, region: &Region, byte: u8) -> Result<(), Error> {
    let mut from = carve!(region)(4096);
    from.view_mut::<u8>().unwrap().fill(byte);
    let operands = [from.to_device(..1000), carve!(region)(4096).from_device(..)];
    let [_, to] = queue.run(operands, &[], LIMIT).map_err(|failed| failed.error)?.buffers;
    assert_eq!(to.view_at::<u8>(..1000).unwrap(), [byte; 1000]);
    Ok(())
}

#[test]
fn every_error_is_a_sentence_and_the_next_copy_works() {
    for sg in [false, true] {
        let mut seen = BTreeSet::new();
        for seed in 0..40 {
            let faults = Faults { error: 500, ..Faults::NONE };
            let board = SimBoard::with(SimConfig { seed, faults });
            let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
            let device = SimAxiCdma::new(&board, board.port());
            let window = device.window().unwrap();
            let cdma = if sg {
                window.sg(DRE, carve!(region)(4096)).map_err(Error::from)
            } else {
                window.simple(DRE)
            };
            let mut queue = Queue::new(cdma.unwrap(), 1).unwrap();
            let mut good = 0;
            for byte in 0..10 {
                match copy(&mut queue, &region, byte) {
                    Ok(()) => good += 1,
                    Err(Error::FaultAt { device: "axi_cdma", status, what, addr }) => {
                        assert!(
                            status & regs::ERRORS != 0
                                && addr != 0
                                && what == regs::describe(status),
                            "{status:#x}"
                        );
                        seen.insert(what.split(':').next().unwrap());
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(good > 0, "seed {seed}");
            drop(queue);
            assert_eq!(board.counts().unowned_accesses, 0);
        }
        let names: &[&str] = if sg {
            &["DMADecErr", "DMAIntErr", "DMASlvErr", "SGSlvErr"]
        } else {
            &["DMADecErr", "DMAIntErr", "DMASlvErr"]
        };
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), names);
    }
}

#[test]
fn the_jobs_before_an_error_are_told_first() {
    let (mut mixed, mut failures) = (0, 0);
    for seed in 0..200 {
        let board =
            SimBoard::with(SimConfig { seed, faults: Faults { error: 150, ..Faults::NONE } });
        let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
        let device = narrow(&board);
        let cdma = device.window().unwrap().sg(DRE, carve!(region)(4096)).unwrap();
        let mut queue = Queue::new(cdma, 8).unwrap();
        for byte in 0..8 {
            let mut from = carve!(region)(1024);
            from.view_mut::<u8>().unwrap().fill(byte);
            queue.submit([from.to_device(..), carve!(region)(1024).from_device(..)], &[]).unwrap();
        }
        // Everything has ended before the first look.
        device.run_for(1_000).unwrap();
        let mut told = 0;
        let failed = loop {
            match queue.wait::<2>(Duration::ZERO) {
                Ok(Some(done)) => {
                    assert_eq!(done.buffers[1].view::<u8>().unwrap(), [told; 1024]);
                    told += 1;
                }
                Ok(None) => break false,
                Err(failed) => {
                    assert!(matches!(failed.error, Error::FaultAt { .. }), "{failed}");
                    break true;
                }
            }
        };
        assert!(failed || told == 8, "seed {seed}: {told}");
        failures += u32::from(failed);
        mixed += u32::from(failed && told > 0);
    }
    assert!(failures > 50 && mixed > 30, "{failures} {mixed}");
}

/// Version 4.0 had 23 bits: the others are dropped without a word, and BTT tells.
#[test]
fn a_length_that_btt_cuts_is_an_error() {
    let board = SimBoard::new(1);
    let len = (8 << 20) + 64;
    let region = Region::new(board.memory(2 * (len + 4096)).unwrap()).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiCdmaModel::new(AxiCdmaSpec { length_bits: 23, ..AxiCdmaSpec::default() }),
    );
    let config = AxiCdmaConfig { length_bits: 26, ..DEFAULT };
    let mut queue = Queue::new(device.window().unwrap().simple(config).unwrap(), 1).unwrap();
    let failed = queue
        .submit([carve!(region)(len).to_device(..), carve!(region)(len).from_device(..)], &[])
        .unwrap_err();
    assert!(
        matches!(failed.error, Error::Unsupported { fix: "set length_bits=23", .. }),
        "{failed}"
    );
    assert!(failed.buffers.is_some(), "the buffers are back");
    assert_eq!(board.counts().unowned_accesses, 0);
}

#[test]
fn an_interrupt_that_never_comes_costs_time_alone() {
    for sg in [false, true] {
        let board = SimBoard::with(SimConfig {
            seed: 1,
            faults: Faults { lost_irq: 1000, ..Faults::NONE },
        });
        let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
        let device = SimAxiCdma::new(&board, board.port());
        let window = device.window().unwrap();
        let cdma = if sg {
            window.sg(DRE, carve!(region)(4096)).unwrap()
        } else {
            window.simple(DRE).unwrap()
        };
        let mut queue = Queue::new(cdma, 1).unwrap();
        for byte in 0..5 {
            copy(&mut queue, &region, byte).unwrap();
        }
    }
}

#[test]
fn a_core_that_hangs_is_stopped_and_one_that_will_not_stop_keeps_its_buffers() {
    for (faults, stops) in [
        (Faults { hang: 1000, ..Faults::NONE }, true),
        (Faults { stuck: 1000, ..Faults::NONE }, false),
    ] {
        for sg in [false, true] {
            let board = SimBoard::with(SimConfig { seed: 1, faults });
            let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
            let device = SimAxiCdma::new(&board, board.port());
            let window = device.window().unwrap();
            let cdma = if sg {
                window.sg(DRE, carve!(region)(4096)).unwrap()
            } else {
                window.simple(DRE).unwrap()
            };
            let mut queue = Queue::new(cdma, 1).unwrap();
            let error = copy(&mut queue, &region, 1).unwrap_err();
            if stops {
                assert_eq!(error, Error::Timeout { timeout_us: 20_000 });
            } else {
                assert!(
                    matches!(error, Error::WillNotStop { device: "axi_cdma", status, .. } if status & regs::RESET != 0),
                    "{error}"
                );
                assert_eq!(queue.clear().unwrap_err(), error);
                device.reset().unwrap();
                queue.clear().unwrap();
            }
            drop(queue);
            assert_eq!(board.counts().unowned_accesses, 0);
        }
    }
}

/// The steps for the kernel stop what the driver started.
#[test]
fn the_stop_program_resets_the_core() {
    let board =
        SimBoard::with(SimConfig { seed: 1, faults: Faults { hang: 1000, ..Faults::NONE } });
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let device = SimAxiCdma::new(&board, board.port());
    let cdma = device.window().unwrap().sg(DRE, carve!(region)(4096)).unwrap();
    let program = cdma.stop_program();
    assert_eq!(program.steps().len(), 3);
    drop(cdma);
    let window = device.window().unwrap();
    #[allow(unsafe_code, reason = "the driver's own steps")]
    // SAFETY: the steps start nothing.
    let ran = unsafe { program.run(&window, 10) };
    assert_eq!(ran, Ok(()));
}
