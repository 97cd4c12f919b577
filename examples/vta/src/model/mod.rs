//! VTA as its HLS design is on a Zynq: four kernels, a page of registers each, and the memories
//! between them.
//!
//! | file | what it is |
//! |---|---|
//! | `insn` | the instructions' fields |
//! | `core` | the memories on the chip, LOAD, STORE, GEMM and ALU |
//! | here | registers, queues and tokens, over virtual time |
//! | `vcr` | the registers that the DE10-Nano has in their place |
//!
//! References: apache/tvm-vta, `hardware/xilinx/src/vta.cc`, `include/vta/hw_spec.h`,
//! `config/pkg_config.py` (the registers); UG1399 (the control registers).

mod core;
mod insn;
mod vcr;

use self::core::{Bases, Core};
use self::insn::{Insn, Opcode};
pub use self::vcr::VtaDe10Nano;
use contigo::{
    DevAddr,
    sim::{Model, SimBus},
};
use std::collections::VecDeque;

const PAGE: usize = 0x1000;
const STAGES: usize = 4;
/// The stages' pages, in their order.
const FETCH: usize = 0;
const LOAD: usize = 1;
const COMPUTE: usize = 2;
const STORE: usize = 3;
/// From the start to the first instruction's end: until then `done` is the run before's.
const FIRST_NS: u64 = 800;
/// An instruction.
const INSN_NS: u64 = 400;
/// AP_START, AP_DONE, AP_IDLE, AP_READY, auto-restart.
const START: u32 = 0x01;
const DONE: u32 = 0x02;
const IDLE: u32 = 0x04;
const READY: u32 = 0x08;
const AUTO_RESTART: u32 = 0x80;

/// A run under way.
#[derive(Clone, Copy, Debug)]
struct Run {
    begins_at_ns: u64,
    ends_at_ns: u64,
    began: bool,
}

/// **A model of VTA**, as `pynq_sample.json` has it.
///
/// All of a run's accesses happen at its end. A run whose instructions wait for a token that never
/// comes hangs, as in hardware; so does one that [`Faults::hang`](contigo::sim::Faults) strikes.
#[derive(Debug)]
pub struct VtaModel {
    core: Core,
    bases: Bases,
    insn_count: u32,
    insn_addr: u32,
    /// The stages that restart by themselves.
    restarts: [bool; STAGES],
    /// AP_DONE of each, until it is read.
    ended: [bool; STAGES],
    done: u32,
    done_valid: bool,
    run: Option<Run>,
}

impl Default for VtaModel {
    fn default() -> Self {
        Self::new()
    }
}

impl VtaModel {
    /// As after power-on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            core: Core::new(),
            bases: Bases::default(),
            insn_count: 0,
            insn_addr: 0,
            restarts: [false; STAGES],
            ended: [false; STAGES],
            done: 0,
            done_valid: false,
            run: None,
        }
    }

    /// AP_CTRL of a stage.
    fn control(&mut self, stage: usize) -> u32 {
        let bit = |set: bool, mask: u32| if set { mask } else { 0 };
        let ended = self.ended.get_mut(stage).map(std::mem::take).unwrap_or_default();
        let restarts = self.restarts.get(stage).copied().unwrap_or_default();
        let busy = restarts || stage == FETCH && self.run.is_some();
        bit(busy, START) | bit(ended, DONE | READY) | bit(!busy, IDLE) | bit(restarts, AUTO_RESTART)
    }

    /// Runs all instructions by their queues and tokens. `None`: it waits for ever.
    fn execute(&mut self, bus: &mut SimBus<'_>) -> Option<()> {
        let mut queues: [VecDeque<Insn>; 3] = Default::default();
        for at in 0..self.insn_count {
            let mut bytes = [0; insn::BYTES];
            bus.read(
                DevAddr(u64::from(self.insn_addr) + u64::from(at) * insn::BYTES as u64),
                &mut bytes,
            )
            .ok()?;
            let insn = Insn::new(bytes);
            let queue = match insn.opcode()? {
                Opcode::Store => 2,
                Opcode::Load if matches!(insn.access().memory, insn::INP | insn::WGT) => 0,
                _ => 1,
            };
            queues.get_mut(queue)?.push_back(insn);
        }
        // Tokens: load to compute, compute to load, compute to store, store to compute.
        let (mut l2c, mut c2l, mut c2s, mut s2c) = (0u32, 0u32, 0u32, 0u32);
        let [loads, computes, stores] = &mut queues;
        loop {
            let mut worked = false;
            while let Some(insn) = next_if(loads, |insn| !insn.pops_next() || c2l > 0) {
                c2l -= u32::from(insn.pops_next());
                self.core.load(insn, &self.bases, bus).ok()?;
                l2c += u32::from(insn.pushes_next());
                worked = true;
            }
            while let Some(insn) = next_if(computes, |insn| {
                (!insn.pops_prev() || l2c > 0) && (!insn.pops_next() || s2c > 0)
            }) {
                l2c -= u32::from(insn.pops_prev());
                s2c -= u32::from(insn.pops_next());
                match insn.opcode()? {
                    Opcode::Load => self.core.load(insn, &self.bases, bus).ok()?,
                    Opcode::Gemm => self.core.gemm(insn),
                    Opcode::Alu => self.core.alu(insn),
                    Opcode::Store => {}
                    Opcode::Finish => return Some(()),
                }
                c2l += u32::from(insn.pushes_prev());
                c2s += u32::from(insn.pushes_next());
                worked = true;
            }
            while let Some(insn) = next_if(stores, |insn| !insn.pops_prev() || c2s > 0) {
                c2s -= u32::from(insn.pops_prev());
                self.core.store(insn, &self.bases, bus).ok()?;
                s2c += u32::from(insn.pushes_prev());
                worked = true;
            }
            if !worked {
                return None;
            }
        }
    }

    /// A register that holds an address or a count.
    fn word(&mut self, offset: usize) -> Option<&mut u32> {
        match (offset / PAGE, offset % PAGE) {
            (FETCH, 0x10) => Some(&mut self.insn_count),
            (FETCH, 0x18) => Some(&mut self.insn_addr),
            (LOAD, 0x10) => Some(&mut self.bases.inp),
            (LOAD, 0x18) => Some(&mut self.bases.wgt),
            (COMPUTE, 0x20) => Some(&mut self.bases.uop),
            (COMPUTE, 0x28) => Some(&mut self.bases.acc),
            (STORE, 0x10) => Some(&mut self.bases.out),
            _ => None,
        }
    }
}

/// The oldest instruction of a queue, where its tokens are there.
fn next_if(queue: &mut VecDeque<Insn>, ready: impl FnOnce(&Insn) -> bool) -> Option<Insn> {
    if queue.front().is_some_and(ready) { queue.pop_front() } else { None }
}

// SAFETY: it touches the instructions and what they name, at the end of a run, before `done` is 1;
// nothing without a run.
unsafe impl Model for VtaModel {
    const WINDOW_BYTES: usize = STAGES * PAGE;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let Some(run) = &mut self.run else { return };
        // The other stages were not started: instructions wait in their queues.
        if !self.restarts.iter().skip(LOAD).all(|on| *on) {
            return;
        }
        if !run.began && run.begins_at_ns <= bus.now_ns() {
            run.began = true;
            (self.done, self.done_valid) = (0, true);
            if let Some(ended) = self.ended.get_mut(COMPUTE) {
                *ended = true;
            }
        }
        if run.ends_at_ns <= bus.now_ns() {
            run.ends_at_ns = u64::MAX;
            if self.execute(bus).is_some() {
                self.run = None;
                (self.done, self.done_valid, self.ended) = (1, true, [true; STAGES]);
            }
        }
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        match (offset / PAGE, offset % PAGE) {
            (stage, 0) => self.control(stage),
            (COMPUTE, 0x18) => self.done,
            (COMPUTE, 0x1C) => u32::from(std::mem::take(&mut self.done_valid)),
            _ => self.word(offset).map_or(0, |word| *word),
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match (offset / PAGE, offset % PAGE) {
            (FETCH, 0) if value & START != 0 && self.run.is_none() => {
                let hangs = bus.strikes(bus.faults().hang) || bus.strikes(bus.faults().stuck);
                let begins_at_ns = bus.now_ns() + FIRST_NS;
                let ends_at_ns = if hangs {
                    u64::MAX
                } else {
                    begins_at_ns + INSN_NS * u64::from(self.insn_count)
                };
                self.run = Some(Run { begins_at_ns, ends_at_ns, began: false });
            }
            (stage, 0) => {
                if let Some(restarts) = self.restarts.get_mut(stage) {
                    *restarts = value & AUTO_RESTART != 0;
                }
            }
            _ => {
                if let Some(word) = self.word(offset) {
                    *word = value;
                }
            }
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self) {
        *self = Self::new();
    }
}
