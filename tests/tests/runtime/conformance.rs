//! The conformance suite on every backend, and on backends that are broken on purpose.

use contigo::linux::memory::HugeTlb;
use contigo::mem::SyncScope;
use contigo::names::{AnyMemory, MemoryName};
use contigo::sim::{SimBoard, SimSpec};
use contigo::{Align, CpuBuf, DevAddr, Error, Port, Queue, Region};
use contigo_testkit::conformance::boards::{OnMemory, OnName, OnOtherBoard, OnSim};
use contigo_testkit::conformance::fakes::{
    OnFakeModule, OnFakeVfio, on_fake_dev_node, on_fake_heap, on_fake_port,
};
use contigo_testkit::conformance::mutant::{Mutated, Mutation, REFUSAL};
use contigo_testkit::conformance::rig::{WAIT, expect, keyed, scribble};
use contigo_testkit::conformance::xor::Xor;
use contigo_testkit::conformance::{Failure, Harness, Verdict, all};
use contigo_testkit::fake_dev_node::DevNodeConfig;
use contigo_testkit::fake_u_dma_buf::Config;
use contigo_testkit::fake_vfio::{Machine, Way};
use contigo_testkit::{conformance, ensure};
use fastrand::Rng;

const HP: fn(&SimBoard) -> Port = SimBoard::port;
const ACP: fn(&SimBoard) -> Port = SimBoard::coherent_port;

/// Cyclone V's ACP is a window: an address through it is not the physical one.
fn window(board: &SimBoard) -> Port {
    Port {
        name: "sim-window",
        offset: 0x8000_0000,
        window: (0x8000_0000, 0xBFFF_FFFF),
        ..board.port()
    }
}

conformance! {
    sim_lines_of_32: OnSim::new(1, HP, lines(Align::MIN));
    sim_lines_of_64: OnSim::new(2, HP, lines(Align::LINE));
    sim_lines_of_128: OnSim::new(3, HP, lines(LINE_128));
    sim_through_a_window: OnSim::new(4, window, SimSpec::default());
    sim_coherent: OnSim::new(5, ACP, SimSpec { coherent: Some(true), ..SimSpec::default() });
    sim_coherent_unreported: OnSim::new(6, ACP, SimSpec::default());
    sim_not_cached: OnSim::new(10, HP, SimSpec { cached: false, ..SimSpec::default() });
    sim_whole: OnSim::new(7, HP, scope(SyncScope::Whole));
    sim_without_syncs_but_coherent: OnSim::new(8, ACP, scope(SyncScope::None { install: "nothing" }));
    sim_on_another_board: OnOtherBoard::new(9);
    hugetlb: OnMemory::new(huge_pages);
    u_dma_buf: OnFakeModule::new(Config::default());
    u_dma_buf_by_sysfs: OnFakeModule::new(Config { ioctls: false, ..Config::default() });
    u_dma_buf_lines_of_128: OnFakeModule::new(Config { line: LINE_128, ..Config::default() });
    u_dma_buf_coherent: OnFakeModule::new(Config { coherent: Some(true), ..Config::default() });
    dma_heap: on_fake_heap();
    dev_node: on_fake_dev_node(DevNodeConfig::default(), false);
    contigo_device_lines_of_128: on_fake_dev_node(DevNodeConfig { granule_bytes: 128, ..DevNodeConfig::default() }, false);
    contigo_device_that_snoops: on_fake_dev_node(snoops(), false);
    contigo_device_translated: on_fake_dev_node(translated(), false);
    contigo_device_coherent: on_fake_dev_node(DevNodeConfig::default(), true);
    contigo_device_coherent_that_snoops: on_fake_dev_node(snoops(), true);
    dma_heap_by_the_module: on_fake_port(DevNodeConfig::default());
    dma_heap_by_the_module_coherent: on_fake_port(snoops());
    dma_heap_by_the_module_translated: on_fake_port(translated());
    vfio_by_its_group: OnFakeVfio::new(Machine::with(Way::Group));
    vfio_by_iommufd: OnFakeVfio::new(Machine::with(Way::Iommufd));
    sim_by_its_name: on_name();
    hugetlb_by_its_name: OnMemory::new(huge_pages_by_name);
    vfio_that_does_not_snoop: OnFakeVfio::new(old_machine());
}

const LINE_128: Align = match Align::new(128) {
    Ok(align) => align,
    Err(_) => Align::LINE,
};

fn scope(scope: SyncScope) -> SimSpec {
    SimSpec { scope, ..SimSpec::default() }
}

fn snoops() -> DevNodeConfig {
    DevNodeConfig { coherent: true, ..DevNodeConfig::default() }
}

fn translated() -> DevNodeConfig {
    DevNodeConfig { translated: true, ..DevNodeConfig::default() }
}

fn old_machine() -> Machine {
    Machine { release: (5, 4), ..Machine::with(Way::Group) }
}

fn lines(line: Align) -> SimSpec {
    SimSpec { line, ..SimSpec::default() }
}

/// Huge pages, where this machine has some to spare and this user may know where they are.
fn huge_pages(len_bytes: usize) -> Result<HugeTlb, Failure> {
    HugeTlb::new(len_bytes).map_err(skipped)
}

fn huge_pages_by_name(len_bytes: usize) -> Result<AnyMemory, Failure> {
    let name: MemoryName = "hugetlb".parse().map_err(Error::from)?;
    name.open(len_bytes).map_err(skipped)
}

fn skipped(error: Error) -> Failure {
    match error {
        Error::NoMemory { .. } | Error::Os { .. } | Error::PagemapHidden { .. } => {
            Failure::Skipped(error.to_string())
        }
        other => other.into(),
    }
}

fn on_name() -> OnName {
    OnName::new("sim:board@10", "sim").unwrap_or_else(|error| panic!("{error}"))
}

/// The checks that fail, by name; the first few say why.
fn caught<H: Harness>(make: impl Fn() -> H, mutation: Mutation) -> Vec<String> {
    let mut caught = Vec::new();
    for (name, check) in all::<Mutated<H>>() {
        // A line that is synchronised by another thread than its owner's: the mutant would race
        // with a view.
        if name == "two_threads_at_once" {
            continue;
        }
        if let Err(Failure::Wrong(what)) = check(&Mutated { inner: make(), mutation }) {
            caught.push(format!("{name}: {what}"));
        }
    }
    caught
}

fn every_mutant_is_caught<H: Harness>(make: impl Fn() -> H) {
    assert_eq!(caught(&make, Mutation::None), [""; 0], "nothing is wrong, and yet");
    for mutation in Mutation::ALWAYS {
        let caught = caught(&make, mutation);
        println!("{mutation:?}: caught by {} checks\n  {}", caught.len(), caught.join("\n  "));
        assert!(!caught.is_empty(), "{mutation:?} was not caught");
    }
}

#[test]
fn mutants_of_sim_are_caught() {
    every_mutant_is_caught(|| OnSim::new(1, HP, lines(Align::LINE)));
}

#[test]
fn mutants_of_u_dma_buf_are_caught() {
    every_mutant_is_caught(|| OnFakeModule::new(Config::default()));
}

/// In a thousand jobs, a sync that is left out is detected, at any position. The region's first
/// touch is an exception, which the jobs' own syncs make good. An eviction may do by luck what the
/// sync would have done, so each gets up to four seeds.
#[test]
fn one_missing_sync_is_caught_within_four_seeds() {
    let is_caught = |mutation| {
        (1..=4).any(|seed| {
            let harness = Mutated { inner: OnSim::new(seed, HP, lines(Align::LINE)), mutation };
            matches!(conformance::jobs::a_thousand_jobs(&harness), Err(Failure::Wrong(_)))
        })
    };
    for n in (1..8).chain((8..1_000).step_by(37)) {
        for mutation in [
            Mutation::NoSyncForDeviceOnce(2 * n),
            Mutation::NoSyncForDeviceOnce(2 * n + 1),
            Mutation::NoSyncForCpuOnce(n),
        ] {
            assert!(is_caught(mutation), "{mutation:?} was not caught");
        }
    }
}

/// A sync that the kernel refuses, at any call, where a job is submitted and waited for, and where
/// it is run. The job's buffers come back and the next try works. In a drop no caller can try
/// again, and the slot stays out.
#[test]
fn a_refused_sync_loses_nothing() {
    for (n, job) in (0..12).flat_map(|n| [(n, waited as JobOf), (n, ran)]) {
        if let Err(failure) = refused_sync(n, job) {
            panic!("sync {n} was refused: {failure}");
        }
    }
}

type XorQueue<'h> = Queue<Xor<'h, Mutated<OnSim>, 2>>;
/// Copies the first buffer to the second one, and counts the refusals.
type JobOf = fn(&mut XorQueue<'_>, [CpuBuf; 2], &mut u64) -> Verdict<[CpuBuf; 2]>;

fn refused_sync(n: u64, job: JobOf) -> Verdict {
    let harness = Mutated {
        inner: OnSim::new(1, HP, SimSpec::default()),
        mutation: Mutation::RefusedOnce(n),
    };
    let backend = harness.open(4096)?;
    let region = match Region::new(backend) {
        Err(refused) if n < 2 => {
            return if refused.error == REFUSAL { Ok(()) } else { Err(refused.error.into()) };
        }
        other => other?,
    };
    let pool = region.pool(4, 512)?;
    let mut queue = Queue::new(Xor::new(&harness), 1)?;
    let mut rng = Rng::with_seed(n);
    let (mut input, mut output) = (pool.take()?, pool.take()?);
    let mut refusals = 0;
    for round in 0..3 {
        let bytes = scribble(&mut rng, &mut input)?;
        [input, output] = job(&mut queue, [input, output], &mut refusals)?;
        ensure!(queue.is_empty() && !queue.is_stopped(), "{queue:?}");
        expect(&format!("round {round}"), &output, &keyed(&bytes, 1))?;
        expect("the input", &input, &bytes)?;
    }
    // Two syncs of the first touch, three of the first job, and two of each later one, whose output
    // the CPU has not written.
    ensure!(refusals == u64::from(n < 2 + 3 + 2 * 2), "{refusals} refusals were seen");
    drop((input, output));
    ensure!(pool.taken() == 0, "{} slots are still out", pool.taken());
    Ok(())
}

/// A job that is refused is tried again. Of one that is done, the output may not be visible yet:
/// then the device owns the buffers, and they can be taken back again.
fn waited(
    queue: &mut XorQueue<'_>,
    [input, output]: [CpuBuf; 2],
    refusals: &mut u64,
) -> Verdict<[CpuBuf; 2]> {
    let mut operands = [input.to_device(..), output.from_device(..)];
    while let Err(failed) = queue.submit(operands, &[1]) {
        ensure!(failed.error == REFUSAL && *refusals == 0, "{failed}");
        *refusals += 1;
        operands = failed.buffers.ok_or(Failure::Wrong("a refused job kept its buffers".into()))?;
    }
    match queue.wait(WAIT) {
        Ok(done) => Ok(done.ok_or(Failure::Wrong("the job did not end".into()))?.buffers),
        Err(failed) => {
            ensure!(failed.error == REFUSAL, "{failed}");
            *refusals += 1;
            let [input, output] =
                failed.buffers.ok_or(Failure::Wrong("a finished job kept its buffers".into()))?;
            Ok([input.into_cpu()?, output.into_cpu()?])
        }
    }
}

/// The same by `run`, whose caller cannot tell the two cases apart: the buffers are taken back, and
/// the job is run again.
fn ran(
    queue: &mut XorQueue<'_>,
    [mut input, mut output]: [CpuBuf; 2],
    refusals: &mut u64,
) -> Verdict<[CpuBuf; 2]> {
    loop {
        let failed = match queue.run([input.to_device(..), output.from_device(..)], &[1], WAIT) {
            Ok(done) => return Ok(done.buffers),
            Err(failed) => failed,
        };
        ensure!(failed.error == REFUSAL && *refusals == 0, "{failed}");
        *refusals += 1;
        let [from, to] =
            failed.buffers.ok_or(Failure::Wrong("a refused job kept its buffers".into()))?;
        (input, output) = (from.into_cpu()?, to.into_cpu()?);
    }
}

/// The caches cannot be made to agree with memory while a buffer is dropped: its slot stays out,
/// and its memory is kept.
#[test]
fn a_refused_sync_in_a_drop_keeps_the_slot() {
    // The region's first touch, two operands for the device, and the output back from it.
    let harness = Mutated {
        inner: OnSim::new(1, HP, SimSpec::default()),
        mutation: Mutation::RefusedOnce(4),
    };
    let verdict = || -> Verdict {
        let base = {
            let region = Region::new(harness.open(4096)?)?;
            let pool = region.pool(2, 512)?;
            let mut queue = Queue::new(Xor::<_, 2>::new(&harness), 1)?;
            queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[1])?;
            drop(queue);
            ensure!(pool.taken() == 1, "{} slots are out", pool.taken());
            region.base()
        };
        Ok(harness.probe(DevAddr(base.raw()), &mut [0; 4])?)
    };
    assert_eq!(verdict(), Ok(()));
}
