#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! LiteX's DMA behind a driver and the queue: copies, bit for bit, and stops at every moment. Its
//! own stop forgets what is under way, and the checks say so. With the gate before its master,
//! nothing is written after a stop, and the next job is whole.

use crate::cores::{skip, suite};
use contigo::drivers::axi_gate::{AxiGate, Gated, Part, WINDOW_BYTES as GATE_BYTES};
use contigo::sim::{Faults, SimBoard, SimDevice, SimWindow};
use contigo::{CpuBuf, Driver, Error, Pool, Queue, Region};
use contigo_exerciser::Limits;
use contigo_rtl::axi::{Breach, Channel, Finding, SlaveConfig};
use contigo_rtl::litex::{LitexDma, WINDOW_BYTES};
use contigo_rtl::{RtlConfig, RtlModel};
use contigo_testkit::conformance::Failure;
use contigo_testkit::suite::{Kind, Subject, faults};
use std::time::Duration;

const SLOT_BYTES: usize = 4096;
/// The core alone, and with the gate before its master.
const ALONE: &str = "litex";
const GATED: &str = "litex_gated";
/// The gate's registers.
const GATE: usize = 0x1000;
const STOPS: u32 = 60;
const SEEDS: u64 = 24;
/// 1,024 words, each of them an answer of 400 cycles at most.
const A_JOB: Duration = Duration::from_millis(20);
/// Writes are answered after 2 µs, and clearing `enable` does not wait for that.
const SLOW: SlaveConfig = SlaveConfig { write_cycles: 400..=400, ..SlaveConfig::CALM };

fn config(memory: SlaveConfig) -> RtlConfig {
    RtlConfig { window_bytes: GATE + GATE_BYTES, memory, ..RtlConfig::default() }
}

/// The driver of the core that has a gate.
fn gated(window: &SimWindow<RtlModel>) -> impl Driver {
    // SAFETY: each part has one owner. All that the core does to memory passes the gate, which
    // resets it; after a reset both of its halves are off.
    unsafe {
        let driver = LitexDma::open(Part::new(window, 0, WINDOW_BYTES).unwrap()).unwrap();
        Gated::new(driver, AxiGate::open(Part::new(window, GATE, GATE_BYTES).unwrap()).unwrap())
    }
}

/// Jobs of one driver.
struct Bench<D: Driver> {
    queue: Queue<D>,
    pool: Pool,
}

impl<D: Driver> Bench<D> {
    /// Copies these bytes over zeros; all of the output's slot.
    fn copy(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let [mut from, mut to] = [(); 2].map(|()| self.pool.take().unwrap());
        from.copy_from_slice(bytes).unwrap();
        to.view_mut::<u8>().unwrap().fill(0);
        let operands = [from.to_device(..bytes.len()), to.from_device(..)];
        let [_, to] = self.queue.run(operands, &[], A_JOB).map_err(|failed| failed.error)?.buffers;
        Ok(to.view::<u8>().unwrap().to_vec())
    }

    /// Starts a copy of a whole slot of this byte, and stops it after `us`.
    fn stop(&mut self, byte: u8, us: u32, device: &SimDevice<RtlModel>) {
        let [mut from, to] = [(); 2].map(|()| self.pool.take().unwrap());
        from.view_mut::<u8>().unwrap().fill(byte);
        self.queue.submit([from.to_device(..), to.from_device(..)], &[]).unwrap();
        device.run_for(us).unwrap();
        self.queue.clear().unwrap();
    }
}

/// Runs `$body` with the jobs of this core, on a board; its value, and the rules that the core
/// broke. Where the core was not built, it prints that and ends the test.
macro_rules! on_core {
    ($core:expr, $memory:expr, $faults:expr, |$board:ident, $device:ident, $bench:ident| $body:expr) => {{
        let Some(model) = skip::or_skip(RtlModel::new($core, config($memory))) else { return };
        let $board = SimBoard::with(7, $faults);
        let $device = SimDevice::with_model(&$board, $board.port(), model);
        let window = $device.window().unwrap();
        let region = Region::new($board.memory(64 << 10).unwrap()).unwrap();
        let pool = region.pool(4, SLOT_BYTES).unwrap();
        let value = if $core == GATED {
            let mut $bench = Bench { queue: Queue::new(gated(&window), 1).unwrap(), pool };
            $body
        } else {
            let mut $bench = Bench {
                // SAFETY: a stopped job touches memory of this test later; no other code has it.
                queue: Queue::new(unsafe { LitexDma::open(window) }.unwrap(), 1).unwrap(),
                pool,
            };
            $body
        };
        (value, $device.model(|model| model.findings().to_vec()).unwrap())
    }};
}

#[test]
fn a_length_that_is_no_whole_words_is_refused() {
    let ((), found) = on_core!(ALONE, SlaveConfig::CALM, Faults::NONE, |board, _device, bench| {
        let error = bench.copy(&[1; 6]).unwrap_err();
        assert_eq!(
            error,
            Error::Argument {
                name: "the bytes of a copy",
                value: 6,
                min: 4,
                max: 0xFFFF_FFFF,
                multiple_of: 4
            }
        );
        assert_eq!(board.counts().bytes_read, 0);
    });
    assert_eq!(found, []);
}

/// How many of 60 stops were followed by writes, and how many accesses went to no memory.
macro_rules! stops {
    ($core:expr, $memory:expr) => {
        on_core!($core, $memory, Faults::NONE, |board, device, bench| {
            let mut late = 0;
            for us in 0..STOPS {
                bench.stop(9, us, &device);
                let before = board.counts().bytes_written;
                device.run_for(50).unwrap();
                late += u32::from(board.counts().bytes_written > before);
            }
            println!(
                "{}: {late} of {STOPS} stops were followed by writes, {} accesses to no memory",
                $core,
                board.counts().stray_accesses
            );
            (late, board.counts().stray_accesses)
        })
    };
}

/// Clearing `enable` forgets what is under way: the place of a gate.
#[test]
fn its_own_stop_is_no_quiesce() {
    let ((late, _), found) = stops!(ALONE, SLOW);
    assert!(late > STOPS / 2, "{late} of {STOPS} stops were followed by writes");
    let owed = found
        .iter()
        .filter(|finding| matches!(finding.breach, Breach::IdleWhileOwed { writes: 1.., .. }))
        .count();
    assert!(owed >= late as usize, "{late} stops, {found:?}");
}

/// Where memory has not taken the address yet, the address falls to 0 while it is offered, and so
/// does the word.
#[test]
fn its_own_stop_writes_to_address_0() {
    let ((_, stray), found) = stops!(ALONE, SlaveConfig { stalls: 900, ..SlaveConfig::CALM });
    let changed = |finding: &Finding| {
        matches!(
            finding.breach,
            Breach::PayloadChanged { channel: Channel::Aw | Channel::Ar | Channel::W }
        )
    };
    assert!(stray > 0 && found.iter().any(changed), "{stray} accesses to no memory, {found:?}");
}

#[test]
fn nothing_written_behind_gate_after_stop() {
    for memory in [SLOW, SlaveConfig { stalls: 900, ..SlaveConfig::CALM }] {
        let stops = stops!(GATED, memory.clone());
        assert_eq!(stops, ((0, 0), vec![]));
    }
}

/// A job at once after a stop: alone the core takes an old answer for its own.
#[test]
fn the_next_job_is_whole_behind_the_gate_only() {
    let bytes: Vec<u8> = (1..=128).collect();
    for core in [ALONE, GATED] {
        let (wrong, found) = on_core!(core, SLOW, Faults::NONE, |_board, device, bench| {
            let mut wrong = 0;
            for us in 0..STOPS {
                bench.stop(0xEE, us, &device);
                // Alone, an old write may go to address 0 beside the job: the board refuses it.
                wrong +=
                    u32::from(bench.copy(&bytes).map_or(true, |copied| copied[..128] != bytes));
            }
            wrong
        });
        println!("{core}: {wrong} of {STOPS} jobs after a stop were wrong");
        assert_eq!(
            core == GATED,
            wrong == 0 && found.is_empty(),
            "{core}: {wrong} of {STOPS} were wrong, {found:?}"
        );
    }
}

/// LiteX ends a word that was refused like any other.
#[test]
fn bus_error_is_told_only_behind_the_gate() {
    for core in [ALONE, GATED] {
        let faults = Faults { error: 1_000, ..Faults::NONE };
        let (told, _) = on_core!(core, SlaveConfig::CALM, faults, |_board, _device, bench| bench
            .copy(&[1; 64]));
        match told {
            Ok(_) => assert_eq!(core, ALONE, "the copy says that all went well"),
            Err(error) => assert!(
                core == GATED && matches!(error, Error::FaultAt { device: "axi_gate", .. }),
                "{error}"
            ),
        }
    }
}

/// The core, behind the gate or alone, through the suite for drivers.
struct Suite(&'static str);

impl Subject for Suite {
    type Model = RtlModel;

    fn name(&self) -> &'static str {
        if self.0 == GATED { "LiteX's DMA behind the gate" } else { "LiteX's DMA" }
    }
    fn kind(&self) -> Kind {
        Kind::Copy
    }
    fn model(&self) -> RtlModel {
        // An answer that is lost keeps a stop for 20 ms: a slow clock, 25 MHz.
        RtlModel::new(self.0, RtlConfig { cycle_ns: 40, ..config(SlaveConfig::HOSTILE) }).unwrap()
    }
    fn findings(&self, model: &RtlModel) -> Vec<String> {
        model.broken_rules().collect()
    }
    fn limits(&self) -> Limits {
        Limits { offset_align_bytes: 4, len_align_bytes: 4, len_max_bytes: 256 }
    }
    /// It has no interrupt: its driver sleeps 5 us between its polls.
    fn waits_most(&self) -> u64 {
        1_000
    }
    fn may_fail(&self, error: &Error) -> bool {
        matches!(error, Error::FaultAt { device: "axi_gate", .. })
    }
    fn open<R>(
        &self,
        window: SimWindow<RtlModel>,
        _: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R, Error> {
        if self.0 == GATED {
            return Ok(act(&mut gated(&window)));
        }
        // SAFETY: the window is the core's, and the only one. The board's stray writes are what the
        // test is about.
        let mut alone = unsafe { LitexDma::open(Part::new(&window, 0, WINDOW_BYTES).unwrap()) }?;
        Ok(act(&mut alone))
    }
}

#[test]
fn the_suite_for_drivers_behind_the_gate() {
    suite::run(GATED, &Suite(GATED), SEEDS);
}

/// Without the gate a stop forgets what is under way. The suite says the rules that the core broke
/// beside what it found itself.
#[test]
fn driver_suite_keeps_the_cores_findings() {
    if skip::or_skip(RtlModel::new(ALONE, config(SlaveConfig::CALM))).is_none() {
        return;
    }
    let Err(Failure::Wrong(what)) = faults(&Suite(ALONE), 0..SEEDS) else {
        panic!("LiteX's own stop is no quiesce")
    };
    assert!(
        what.starts_with("LiteX's DMA, seed ") && what.contains("; the model's findings: cycle "),
        "{what}"
    );
    assert!(what.contains("byte"), "{what}");
}
