//! Each check finds its fault, and nothing else; a core without a fault breaks no rule, in memory
//! that stalls and reorders.

use crate::cores::rig::Rig;
use crate::cores::skip;
use contigo::sim::{Faults, Model};
use contigo_rtl::axi::{Breach, Channel, LiteConfig, SlaveConfig};
use contigo_rtl::{Core, NoCore, PowerOn, RtlConfig, RtlModel};

/// Registers of `cores/broken/top.v`.
const CTRL: usize = 0x00;
const SRC: usize = 0x04;
const DST: usize = 0x08;
const HIGH: usize = 0x0C;
const WORDS: usize = 0x10;
const ISR: usize = 0x14;
const FAULT: usize = 0x18;
const ERRORS: usize = 0x1C;

/// The same core with the narrowest and the widest bus.
const CORES: [(&str, u32); 2] = [("broken32", 4), ("broken512", 64)];

/// Both ends of a copy are over a boundary of 4 KiB.
const fn ends(bus_bytes: u32) -> (u32, u32) {
    (0x1000 - 4 * bus_bytes, 0x9000 - 8 * bus_bytes)
}

fn hostile() -> RtlConfig {
    let memory = SlaveConfig { patience_cycles: 2_000, ..SlaveConfig::HOSTILE };
    RtlConfig {
        memory,
        lite: LiteConfig { stalls: 300, ..LiteConfig::default() },
        has_irq: true,
        ..RtlConfig::default()
    }
}

fn rig(core: &str, config: RtlConfig, seed: u64) -> Option<Rig> {
    Some(Rig::new(skip::or_skip(RtlModel::new(core, config))?, seed))
}

fn start(rig: &mut Rig, bus_bytes: u32, words: u32) {
    let (src, dst) = ends(bus_bytes);
    for (register, value) in [(SRC, src), (DST, dst), (WORDS, words), (CTRL, 1)] {
        rig.write(register, value);
    }
}

fn is_copied(rig: &Rig, bus_bytes: u32, words: u32) -> bool {
    let (src, dst) = ends(bus_bytes);
    let (src, dst, len) = (src as usize, dst as usize, (bus_bytes * words) as usize);
    rig.memory.bytes[src..src + len] == rig.memory.bytes[dst..dst + len]
}

#[test]
fn an_unknown_name_is_refused() {
    assert_eq!(Core::open("unknown", PowerOn::Zeros).err(), Some(NoCore::Unknown));
}

#[test]
fn a_good_core_breaks_no_rule() {
    let mut overtook = 0;
    for (core, bus_bytes) in CORES {
        for seed in 0..40 {
            let config = RtlConfig { finds_unknowns: seed % 4 == 0, ..hostile() };
            let Some(mut rig) = rig(core, config, seed) else { return };
            for words in [1, 40, 16, 17] {
                start(&mut rig, bus_bytes, words);
                assert!(rig.wait_us(1_000) < 1_000_000, "{core}, seed {seed}: no interrupt");
                assert_eq!(
                    (rig.read(CTRL), rig.read(ISR), rig.read(ERRORS)),
                    (0, 1, 0),
                    "{core}, seed {seed}"
                );
                assert!(is_copied(&rig, bus_bytes, words), "{core}, seed {seed}, {words} words");
                rig.write(ISR, 1);
            }
            rig.model.reset();
            assert_eq!(rig.read(SRC), 0);
            assert_eq!(rig.findings(), [], "{core}, seed {seed}");
            overtook += rig.model.counts(0).unwrap().overtook;
        }
    }
    assert_eq!(overtook, 0, "it has one burst under way");
}

/// A core with `fault` copies `words`; every rule that it breaks is one that `expected` takes.
fn breaks(fault: u32, words: u32, change: impl Fn(&mut RtlConfig), expected: fn(&Breach) -> bool) {
    for (core, bus_bytes) in CORES {
        let mut config = hostile();
        change(&mut config);
        let Some(mut rig) = rig(core, config, u64::from(fault)) else { return };
        rig.write(FAULT, fault);
        start(&mut rig, bus_bytes, words);
        rig.wait_us(100);
        rig.pass_us(100);
        for register in [CTRL, ISR, ERRORS, SRC, DST, WORDS].repeat(8) {
            rig.read(register);
            rig.write(ISR, 0);
        }
        let wrong: Vec<_> =
            rig.findings().iter().filter(|finding| !expected(&finding.breach)).collect();
        assert_eq!(
            wrong,
            [] as [&contigo_rtl::axi::Finding; 0],
            "{core} with fault {fault} breaks another rule"
        );
        assert!(!rig.findings().is_empty(), "{core}: fault {fault} was not found");
    }
}

fn breaks_at_once(fault: u32, expected: fn(&Breach) -> bool) {
    breaks(fault, 40, |_| (), expected);
}

#[test]
fn bursts() {
    breaks_at_once(1, |breach| matches!(breach, Breach::Crosses4KiB { addr: 0xC00..0x9000, .. }));
    breaks_at_once(10, |breach| matches!(breach, Breach::ReservedBurst { burst: 3, .. }));
    breaks_at_once(11, |breach| matches!(breach, Breach::SizeOverBus { beat_bytes: 8 | 128, .. }));
    breaks(12, 3, |_| (), |breach| matches!(breach, Breach::BurstLength { beats: 3, .. }));
    breaks(13, 4, |_| (), |breach| matches!(breach, Breach::WrapUnaligned { .. }));
}

#[test]
fn data() {
    breaks_at_once(2, |breach| matches!(breach, Breach::LastMissing { .. }));
    breaks_at_once(
        3,
        |breach| matches!(breach, Breach::LastEarly { beats, came, .. } if came + 1 == *beats),
    );
    breaks_at_once(
        14,
        |breach| matches!(breach, Breach::StrobeOutside { allowed, .. } if allowed.count_ones() == 1),
    );
}

#[test]
fn channels_stay_valid() {
    breaks(4, 400, |_| (), |breach| *breach == Breach::ValidDropped { channel: Channel::Aw });
    breaks(5, 400, |_| (), |breach| *breach == Breach::PayloadChanged { channel: Channel::Aw });
    breaks(6, 400, |_| (), |breach| *breach == Breach::ValidDropped { channel: Channel::W });
    breaks(7, 400, |_| (), |breach| *breach == Breach::PayloadChanged { channel: Channel::W });
    breaks(8, 400, |_| (), |breach| *breach == Breach::ValidDropped { channel: Channel::Ar });
    breaks(9, 400, |_| (), |breach| *breach == Breach::PayloadChanged { channel: Channel::Ar });
    breaks(27, 400, |_| (), |breach| *breach == Breach::PayloadChanged { channel: Channel::R });
    breaks(28, 400, |_| (), |breach| *breach == Breach::ValidDropped { channel: Channel::B });
}

#[test]
fn nothing_waits_for_ever() {
    let data_first = |config: &mut RtlConfig| config.memory.data_first = true;
    breaks(15, 40, data_first, |breach| {
        matches!(breach, Breach::DataWaitsForAddress { cycles: 2_000, .. })
    });
    let address_first = |config: &mut RtlConfig| config.memory.address_first = true;
    breaks(36, 40, address_first, |breach| {
        *breach == Breach::AddressWaitsForData { cycles: 2_000 }
    });
    // These never send one half of a write. Memory that draws may be waiting for that half, and
    // then tells the other half as the one that waits: here it draws nothing.
    let waits_for_none = |config: &mut RtlConfig| config.memory.draws = false;
    breaks(16, 40, waits_for_none, |breach| {
        matches!(breach, Breach::DataMissing { cycles: 2_000, .. })
    });
    breaks(17, 40, waits_for_none, |breach| {
        matches!(breach, Breach::AddressMissing { cycles: 2_000 })
    });
    breaks_at_once(18, |breach| {
        matches!(breach, Breach::AnswerNotTaken { channel: Channel::B, .. })
    });
    breaks_at_once(19, |breach| {
        matches!(breach, Breach::AnswerNotTaken { channel: Channel::R, .. })
    });
    let short = |config: &mut RtlConfig| config.most_cycles = 5_000;
    breaks(29, 1, short, |breach| matches!(breach, Breach::Lagged { cycles: 1.. }));
}

#[test]
fn valid_waits_for_no_ready() {
    let after = |config: &mut RtlConfig| config.memory.ready_after_valid = true;
    breaks(31, 400, after, |breach| {
        *breach == Breach::ValidWaitsForReady { channel: Channel::Aw, times: 6 }
    });
    breaks(32, 400, after, |breach| {
        *breach == Breach::ValidWaitsForReady { channel: Channel::W, times: 6 }
    });
    breaks(33, 400, after, |breach| {
        *breach == Breach::ValidWaitsForReady { channel: Channel::Ar, times: 6 }
    });
    breaks(
        34,
        40,
        |_| (),
        |breach| matches!(breach, Breach::NoAnswer { write: true, cycles: 1_000, .. }),
    );
    breaks(
        35,
        40,
        |_| (),
        |breach| matches!(breach, Breach::NoAnswer { write: false, cycles: 1_000, .. }),
    );
}

#[test]
fn registers_answer_once() {
    breaks_at_once(21, |breach| {
        *breach == Breach::NoAnswer { offset: 0x1C, write: false, cycles: 1_000 }
    });
    breaks_at_once(22, |breach| *breach == Breach::Unasked { channel: Channel::R });
    breaks_at_once(23, |breach| *breach == Breach::Unasked { channel: Channel::B });
    breaks_at_once(24, |breach| matches!(breach, Breach::RegisterError { response: 2, .. }));
}

#[test]
fn a_core_is_idle_after_its_last_answer() {
    breaks_at_once(
        20,
        |breach| matches!(breach, Breach::IdleWhileOwed { reads: 0, writes: 1, addr } if *addr > 0x1000),
    );
}

#[test]
fn the_interrupt_comes() {
    breaks_at_once(25, |breach| matches!(breach, Breach::NoInterrupt { .. }));
}

#[test]
fn nothing_depends_on_power_on() {
    breaks(26, 40, |config| config.finds_unknowns = true, |breach| *breach == Breach::Unknown);
}

#[test]
fn nothing_is_valid_in_reset() {
    let Some(mut rig) = rig("broken32", hostile(), 1) else { return };
    rig.write(FAULT, 30);
    rig.model.reset();
    let breaches: Vec<_> = rig.findings().iter().map(|finding| finding.breach).collect();
    assert_eq!(breaches, [Breach::ValidInReset { channel: Channel::Ar }]);
}

/// A core that has left an access without an answer is dead: no access hangs.
#[test]
fn a_dead_core_reads_as_ones_until_its_reset() {
    let Some(mut rig) = rig("broken32", hostile(), 1) else { return };
    rig.write(FAULT, 21);
    assert_eq!((rig.read(ERRORS), rig.read(FAULT)), (u32::MAX, u32::MAX));
    rig.write(SRC, 4);
    assert_eq!(rig.findings().len(), 1);
    rig.model.reset();
    assert_eq!((rig.read(ERRORS), rig.read(FAULT), rig.read(SRC)), (0, 0, 0));
}

/// 64 of them are kept, and the others are counted.
#[test]
fn findings_are_bounded() {
    let Some(mut rig) = rig("broken32", hostile(), 1) else { return };
    rig.write(FAULT, 24);
    for _ in 0..100 {
        rig.read(SRC);
    }
    assert_eq!(rig.findings().len(), 64);
}

#[test]
fn errors_of_the_bus_reach_the_core() {
    for (core, bus_bytes) in CORES {
        let Some(mut rig) = rig(core, hostile(), 3) else { return };
        // No memory is above 64 KiB, and none above 4 GiB.
        for (high, words) in [(0, 0x4000), (1, 4)] {
            rig.write(HIGH, high);
            start(&mut rig, bus_bytes, words);
            rig.wait_us(50_000);
            assert_eq!((rig.read(ISR), rig.read(ERRORS) > 0), (1, true), "{core}: DECERR");
            rig.write(ISR, 1);
        }
        rig.write(HIGH, 0);
        rig.faults = Faults { error: 1_000, ..Faults::NONE };
        start(&mut rig, bus_bytes, 500);
        rig.wait_us(50_000);
        assert_eq!((rig.read(ISR), rig.read(ERRORS) > 0), (1, true), "{core}: SLVERR");
        assert_eq!(rig.findings(), []);
    }
}

/// Its answer is lost, it is busy for ever, and a reset ends that.
#[test]
fn a_lost_answer_hangs_the_core_until_a_reset() {
    let Some(mut rig) = rig("broken32", hostile(), 3) else { return };
    rig.faults = Faults { hang: 1_000, ..Faults::NONE };
    start(&mut rig, 4, 500);
    rig.wait_us(2_000);
    assert_eq!((rig.read(CTRL), rig.model.owed().0 + rig.model.owed().1), (1, 1));
    rig.model.reset();
    rig.faults = Faults::NONE;
    start(&mut rig, 4, 40);
    rig.wait_us(1_000);
    assert!(is_copied(&rig, 4, 40) && rig.read(CTRL) == 0 && rig.findings().is_empty());
}

#[test]
fn interrupts_are_late_or_lost() {
    let Some(mut rig) = rig("broken32", hostile(), 3) else { return };
    let mut ended = |faults| {
        rig.faults = faults;
        start(&mut rig, 4, 40);
        let took_ns = rig.wait_us(1_000);
        assert_eq!(rig.read(ISR), 1, "its register is right each time");
        rig.write(ISR, 1);
        took_ns
    };
    let [on_time, late] = [Faults::NONE, Faults { late_irq: 1_000, ..Faults::NONE }];
    let longest = |times: [u64; 10]| times.into_iter().max();
    let (on_time, late) =
        (longest([(); 10].map(|()| ended(on_time))), longest([(); 10].map(|()| ended(late))));
    assert!(on_time.map(|ns| 2 * ns) < late && late < Some(1_000_000), "{on_time:?} {late:?}");
    assert_eq!(ended(Faults { lost_irq: 1_000, ..Faults::NONE }), 1_000_000);
    assert_eq!(rig.findings(), [], "the board does that, not the core");
}

/// The board's fault that only a core's own registers could have is refused by its name, once.
#[test]
fn a_job_that_ends_short_is_no_fault_of_gates() {
    let core = RtlModel::new("scratch", RtlConfig::default());
    let Some(model) = skip::or_skip(core) else { return };
    let mut rig = Rig::new(model, 1);
    rig.write(0, 1);
    assert_eq!(rig.findings(), []);
    rig.faults.short = 1;
    rig.write(0, 2);
    rig.write(0, 3);
    let found: Vec<_> = rig.findings().iter().map(|finding| finding.breach).collect();
    assert_eq!((found, rig.read(0)), (vec![Breach::NoSuchFault { fault: "short" }], 3));
}
