//! The gate between a core that cannot be stopped and memory that stalls and reorders.

use super::gate_regs as regs;
use super::rig::Rig;
use super::skip::or_skip;
use contigo::drivers::axi_gate::{AxiGate, Owed, Part, WINDOW_BYTES};
use contigo::sim::{Faults, SimBoard, SimDevice};
use contigo::{Error, Mmio, Wait};
use contigo_rtl::axi::SlaveConfig;
use contigo_rtl::{RtlConfig, RtlModel};

// The core's registers, and the gate's as rtl/gate/registers.md has them.
const START: usize = 0x00;
const TO: usize = 0x04;
const FROM: usize = 0x08;
const BURSTS: usize = 0x0C;
const RESET: usize = 0x10;
const GATE: usize = 0x1000;
const CONTROL: usize = GATE + 0x0C;
const STATUS: usize = GATE + 0x10;
const OWED: usize = GATE + 0x14;
const ERROR: usize = GATE + 0x18;
const ERROR_ADDR_LOW: usize = GATE + 0x1C;
const ERROR_ADDR_HIGH: usize = GATE + 0x20;
const READ_BURSTS: usize = GATE + 0x24;
const READ_BEATS: usize = GATE + 0x28;
const WRITE_BURSTS: usize = GATE + 0x2C;
const WRITE_BEATS: usize = GATE + 0x30;

/// 16 KiB each way, from and to places of their own.
const FROM_ADDR: u32 = 0x1000;
const TO_ADDR: u32 = 0x8000;
const MOST: u32 = 256;
/// The slowest memory answers 8 bursts within 3,200 cycles, 16 us.
const PATIENCE_US: u64 = 20;
const STOPS: u64 = 60;

fn rig(core: &str, seed: u64) -> Option<Rig> {
    // Every third has its data first, and every third its address; the others draw.
    let memory = SlaveConfig {
        data_first: seed.is_multiple_of(3),
        address_first: seed % 3 == 1,
        ..SlaveConfig::HOSTILE
    };
    let config = RtlConfig { memory, window_bytes: 0x2000, ..RtlConfig::default() };
    Some(Rig::new(or_skip(RtlModel::new(core, config))?, seed))
}

fn start(rig: &mut Rig, bursts: u32) {
    for (register, value) in [(TO, TO_ADDR), (FROM, FROM_ADDR), (BURSTS, bursts), (START, 1)] {
        rig.write(register, value);
    }
}

/// Waits until STATUS has these bits, and says whether they came.
fn until(rig: &mut Rig, bits: u32) -> bool {
    (0..PATIENCE_US).any(|_| {
        rig.pass_us(1);
        rig.read(STATUS) & bits == bits
    })
}

/// Memory changes after it was said that the core is stopped.
fn writes_later(rig: &mut Rig) -> bool {
    let then = rig.memory.bytes.clone();
    rig.pass_us(PATIENCE_US);
    rig.memory.bytes != then
}

/// Without the gate a core's own reset leaves writes under way: the reason for all of this.
#[test]
fn without_the_gate_writes_come_after_the_stop() {
    let mut wrote = 0;
    for seed in 0..STOPS {
        let Some(mut rig) = rig("ungated", seed) else { return };
        start(&mut rig, MOST);
        rig.pass_us(1 + seed / 4);
        rig.write(RESET, 1);
        assert_eq!(rig.read(START), 0, "it says that it is stopped");
        wrote += u32::from(writes_later(&mut rig));
    }
    assert!(wrote > 20, "{wrote} of {STOPS} stops wrote");
}

#[test]
fn with_the_gate_no_write_comes_after_the_stop() {
    let mut died = 0;
    for seed in 0..STOPS {
        let Some(mut rig) = rig("gated", seed) else { return };
        start(&mut rig, MOST);
        rig.pass_us(1 + seed / 4);
        // Every second core dies first, in the middle of a burst mostly.
        if seed % 2 == 1 {
            rig.write(RESET, 1);
        }
        rig.write(CONTROL, 1);
        if !until(&mut rig, 3) {
            assert_eq!(seed % 2, 1, "seed {seed}: a living core gives its beats, and stops");
            assert_ne!(
                rig.read(OWED) >> 16,
                0,
                "seed {seed}: only beats that a dead core owes keep it from stopping"
            );
            died += 1;
        }
        // Stop and reset; the beats that are owed are the gate's now.
        rig.write(CONTROL, 3);
        assert!(until(&mut rig, 0b0111), "seed {seed}: idle, stopped, and the core in its reset");
        assert!(!writes_later(&mut rig), "seed {seed}");
        rig.write(CONTROL, 0);
        while rig.read(STATUS) & 4 != 0 {}
        // The next job is whole.
        let before = rig.model.counts(0).map(|counts| counts.write_beats);
        rig.memory.bytes[TO_ADDR as usize..][..0x4000].fill(0);
        start(&mut rig, 32);
        while rig.read(START) != 0 {}
        assert_eq!(
            rig.model.counts(0).map(|counts| counts.write_beats),
            before.map(|beats| beats + 32 * 16)
        );
        for (left, word) in
            (1..=512_u32).rev().zip(rig.memory.bytes[TO_ADDR as usize..].chunks_exact(4))
        {
            assert_eq!(
                word,
                (0xC0D0_0000 + left).to_le_bytes(),
                "seed {seed}: {left} words to the end"
            );
        }
        assert_eq!(
            rig.findings(),
            [],
            "seed {seed}: no rule of AXI is broken, whenever the core dies"
        );
    }
    assert!(died > 10, "{died} cores died while they owed beats");
}

#[test]
fn a_cleared_stop_lets_the_core_go_on() {
    let Some(mut rig) = rig("gated", 7) else { return };
    start(&mut rig, MOST);
    for _ in 0..20 {
        rig.pass_us(1);
        rig.write(CONTROL, 1);
        assert!(until(&mut rig, 3));
        assert_eq!((rig.read(OWED), writes_later(&mut rig)), (0, false));
        rig.write(CONTROL, 0);
    }
    while rig.read(START) != 0 {}
    for (left, word) in
        (1..=16 * MOST).rev().zip(rig.memory.bytes[TO_ADDR as usize..].chunks_exact(4))
    {
        assert_eq!(word, (0xC0D0_0000 + left).to_le_bytes());
    }
    assert_eq!(rig.findings(), []);
}

/// The core of this test looks at no response: its job seems to end well.
#[test]
fn the_first_error_is_kept_with_its_address() {
    let Some(mut rig) = rig("gated", 3) else { return };
    // The memory ends at 64 KiB: the third burst's address is none.
    rig.write(TO, 0xFF80);
    rig.write(FROM, FROM_ADDR);
    rig.write(BURSTS, 6);
    rig.write(START, 1);
    while rig.read(START) != 0 {}
    assert_eq!(rig.read(ERROR) & 0xF, 0b1111, "a write, DECERR");
    let addr = (rig.read(ERROR_ADDR_HIGH), rig.read(ERROR_ADDR_LOW));
    assert!(addr.0 == 0 && (0x1_0000..0x1_0100).contains(&addr.1), "{addr:x?}");
    assert_eq!(rig.read(ERROR) >> 16, (6 - (addr.1 - 0xFF80) / 64) & 3, "the ID of that burst");
    // A later error changes nothing, until the first is cleared.
    rig.faults = Faults { error: 1_000, ..Faults::NONE };
    start(&mut rig, MOST);
    while rig.read(START) != 0 {}
    assert_eq!((rig.read(ERROR_ADDR_HIGH), rig.read(ERROR_ADDR_LOW)), addr);
    rig.write(ERROR, 1);
    assert_eq!((rig.read(ERROR) & 1, rig.read(STATUS) & 8), (0, 0));
    start(&mut rig, MOST);
    while rig.read(START) != 0 {}
    assert_eq!(rig.read(ERROR) & 0x7, 0b101, "SLVERR");
}

/// The driver's table is the Verilog's, and what it says and does is what happens.
#[test]
#[allow(unsafe_code, reason = "the gate is where the core has it")]
fn the_driver_drives_it() {
    let config = RtlConfig { window_bytes: 0x2000, ..RtlConfig::default() };
    let Some(model) = or_skip(RtlModel::new("gated", config)) else { return };
    let board = SimBoard::new(1);
    let core = SimDevice::with_model(&board, board.port(), model);
    let window = core.window().unwrap();
    // SAFETY: no other code writes the gate's registers.
    let gate = unsafe { AxiGate::open(Part::new(&window, GATE, WINDOW_BYTES).unwrap()).unwrap() };
    assert_eq!(window.read32(GATE + 0x08), 8 << 24 | 64 << 16 | 12 << 10 | 32);
    assert_eq!(gate.error(), None);
    // The board has no memory: each burst ends with DECERR.
    for (register, value) in [(TO, 0x1200), (FROM, 0x1200), (BURSTS, 400), (START, 1)] {
        // SAFETY: there is no memory that it could touch.
        unsafe { window.write32(register, value) };
    }
    window.wait_at_most(2).unwrap();
    assert!(
        matches!(gate.error(), Some(Error::FaultAt { device: "axi_gate", addr: 0x1200, what, .. }) if what.starts_with("DECERR"))
    );
    gate.shut().unwrap();
    assert_eq!(gate.owed(), Owed { reads: 0, writes: 0, beats: 0 });
    let bursts = || [READ_BURSTS, WRITE_BURSTS].map(|register| window.read32(register));
    let beats = || [READ_BEATS, WRITE_BEATS].map(|register| window.read32(register));
    let passed = bursts();
    assert!(passed.iter().all(|count| (2..400).contains(count)), "{passed:?}");
    assert_eq!(beats(), passed.map(|bursts| 16 * bursts), "each burst has all of its beats");
    assert_eq!(
        window.read32(GATE + regs::ERRORS.offset()),
        16 * passed[0] + passed[1],
        "each beat of a read has a response"
    );
    gate.release().unwrap();
    gate.clear_error();
    assert_eq!((gate.error(), bursts(), window.read32(START)), (None, passed, 0));
    assert_eq!(core.model(|model| model.findings().len()).unwrap(), 0);
}

/// Each burst waits for the data before, and no cycle is lost by that.
#[test]
fn it_costs_no_bandwidth() {
    let took = |core| {
        let memory = SlaveConfig { outstanding: 64, ..SlaveConfig::CALM };
        let config = RtlConfig { memory, window_bytes: 0x2000, ..RtlConfig::default() };
        let mut rig = Rig::new(or_skip(RtlModel::new(core, config))?, 1);
        start(&mut rig, MOST);
        let from = rig.model.cycle();
        while rig.read(START) != 0 {}
        Some(rig.model.cycle() - from)
    };
    let (Some(bare), Some(gated)) = (took("ungated"), took("gated")) else { return };
    assert!(
        (4096..4200).contains(&bare) && gated < bare + 64,
        "{bare} {gated} cycles for 4096 beats each way"
    );
}

/// Three tables: the page's, the driver's (its part), and the Verilog's, which the proofs compare
/// with theirs.
#[test]
fn the_tables_agree() {
    let driver = [
        ("ID", regs::ID.offset()),
        ("VERSION", regs::VERSION.offset()),
        ("CONTROL", regs::CONTROL.offset()),
        ("STATUS", regs::STATUS.offset()),
        ("OWED", regs::OWED.offset()),
        ("ERROR", regs::ERROR.offset()),
        ("ERROR_ADDR_LOW", regs::ERROR_ADDR_LOW.offset()),
        ("ERROR_ADDR_HIGH", regs::ERROR_ADDR_HIGH.offset()),
        ("ERRORS", regs::ERRORS.offset()),
    ];
    let (page, verilog) =
        (include_str!("../../gate/registers.md"), include_str!("../../gate/axi_gate_registers.v"));
    let rows: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | 0x")).collect();
    let page: Vec<_> = rows
        .iter()
        .map(|(name, rest)| (*name, usize::from_str_radix(&rest[..2], 16).unwrap()))
        .collect();
    for row in driver {
        assert!(page.contains(&row), "{row:?}");
    }
    let words = verilog
        .lines()
        .filter(|line| line.trim_start().starts_with("10'h") && line.contains("s_axil_rdata <="))
        .count();
    assert_eq!(words, page.len());
    let bits = [
        ("IDLE", regs::IDLE),
        ("STOPPED", regs::STOPPED),
        ("IN_RESET", regs::IN_RESET),
        ("FAILED", regs::FAILED),
    ];
    let status = rows.iter().find(|(name, _)| *name == "STATUS").unwrap().1;
    for (name, bit) in
        bits.into_iter().chain([("MISFRAMED", regs::MISFRAMED), ("STRAY", regs::STRAY)])
    {
        assert!(status.contains(&format!("{} `{name}`", bit.trailing_zeros())), "{name}: {status}");
    }
}
