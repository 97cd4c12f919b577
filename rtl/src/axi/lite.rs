//! The processor's side of a core's registers: an AXI-Lite master, one access at a time.

use super::watch::{Patience, Watch};
use super::{Breach, Channel, Findings};
use crate::ports::{LiteIn, LiteOut};
use contigo::sim::SimBus;

/// An address or its data comes later than the other by fewer cycles than this.
const APART_CYCLES: u8 = 4;

/// The settings of the processor's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteConfig {
    /// In so many cycles of 1,000 it does not take an answer. Above 0, a write's address and data
    /// also come one after the other, in either order. In every second access, by chance, it then
    /// takes an answer only in a cycle after it saw valid.
    pub stalls: u16,
    /// After so many cycles without an answer, there will be none. A processor waits for ever.
    pub patience_cycles: u32,
}

impl Default for LiteConfig {
    /// It takes answers at once, and waits 1,000 cycles.
    fn default() -> Self {
        Self { stalls: 0, patience_cycles: 1_000 }
    }
}

/// An access under way.
#[derive(Clone, Copy, Debug)]
struct Access {
    offset: u32,
    /// `None`: a read.
    value: Option<u32>,
    /// In so many cycles the address and the data come; `None`: they were taken.
    address_in: Option<u8>,
    data_in: Option<u8>,
}

impl Access {
    const fn is_asked(&self) -> bool {
        self.address_in.is_none() && self.data_in.is_none()
    }
}

/// The processor's side of a core's registers.
#[derive(Debug)]
pub struct LiteMaster {
    config: LiteConfig,
    access: Option<Access>,
    /// The value of the last read, or that the write is over.
    answer: Option<u32>,
    /// An access had no answer: AXI lets no master take it back.
    is_dead: bool,
    b: Watch<u32>,
    r: Watch<(u32, u32)>,
    /// An answer without a request is on the wires, and was reported: B, R.
    stray: [bool; 2],
    /// This access' answer is taken only after its valid; the valids of the last cycle: B, R.
    after_valid: bool,
    asked: [bool; 2],
    patience: Patience,
}

impl LiteMaster {
    /// A processor that accesses nothing.
    #[must_use]
    pub const fn new(config: LiteConfig) -> Self {
        Self {
            config,
            access: None,
            answer: None,
            is_dead: false,
            b: Watch::new(Channel::B),
            r: Watch::new(Channel::R),
            stray: [false; 2],
            after_valid: false,
            asked: [false; 2],
            patience: Patience::new(),
        }
    }

    /// Begins an access; [`take_answer`](Self::take_answer) has its end. `value`: it is a write. A
    /// core that has left one without an answer gets no other, and all of them read as ones.
    pub fn begin(&mut self, offset: u32, value: Option<u32>, bus: &mut SimBus<'_>) {
        if self.is_dead {
            self.answer = Some(u32::MAX);
            return;
        }
        let mut later = || if self.config.stalls > 0 { bus.rng().u8(..APART_CYCLES) } else { 0 };
        self.access = Some(Access {
            offset,
            value,
            address_in: Some(later()),
            data_in: value.map(|_| later()),
        });
        self.after_valid = self.config.stalls > 0 && bus.rng().bool();
        self.answer = None;
    }

    /// The value that was read, or anything for a write; `None`: it is under way.
    pub const fn take_answer(&mut self) -> Option<u32> {
        self.answer.take()
    }

    /// An access is under way.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.access.is_some()
    }

    /// The core's inputs.
    pub fn drive(&mut self, input: &mut LiteIn, bus: &mut SimBus<'_>) {
        let mut ready = |asked: bool| {
            u32::from(!bus.strikes(self.config.stalls) && (asked || !self.after_valid))
        };
        *input = LiteIn {
            bready: ready(self.asked[0]),
            rready: ready(self.asked[1]),
            ..LiteIn::default()
        };
        let Some(access) = &mut self.access else { return };
        let comes = |cycles: &mut Option<u8>| {
            let now = *cycles == Some(0);
            *cycles = cycles.map(|cycles| cycles.saturating_sub(1));
            u32::from(now)
        };
        let address = comes(&mut access.address_in);
        match access.value {
            Some(value) => {
                (input.awvalid, input.awaddr) = (address, access.offset);
                (input.wvalid, input.wdata, input.wstrb) = (comes(&mut access.data_in), value, 0xF);
            }
            None => (input.arvalid, input.araddr) = (address, access.offset),
        }
    }

    /// The core's outputs in cycle `now`, after it has seen `input`.
    pub fn take(&mut self, now: u64, input: &LiteIn, out: &LiteOut, findings: &mut Findings) {
        let mut found = |breach: Option<Breach>| {
            if let Some(breach) = breach {
                findings.add(now, None, breach);
            }
        };
        self.asked = [out.bvalid & !input.bready == 1, out.rvalid & !input.rready == 1];
        found(self.b.see(out.bvalid, input.bready, out.bresp));
        found(self.r.see(out.rvalid, input.rready, (out.rdata, out.rresp)));
        let is_asked = |write: bool| {
            self.access.is_some_and(|access| access.is_asked() && access.value.is_some() == write)
        };
        let answers =
            [(Channel::B, out.bvalid, is_asked(true)), (Channel::R, out.rvalid, is_asked(false))];
        for ((channel, valid, asked), told) in answers.into_iter().zip(&mut self.stray) {
            let stray = valid == 1 && !asked;
            found((stray && !*told).then_some(Breach::Unasked { channel }));
            *told = stray;
        }
        let Some(access) = &mut self.access else { return };
        let write = access.value.is_some();
        let (answered, response) = if write {
            (out.bvalid & input.bready, out.bresp)
        } else {
            (out.rvalid & input.rready, out.rresp)
        };
        if access.is_asked() && answered == 1 {
            found(
                (response != 0)
                    .then_some(Breach::RegisterError { offset: access.offset, response }),
            );
            self.answer = Some(if write { 0 } else { out.rdata });
            self.access = None;
        } else {
            let taken = input.awvalid & out.awready | input.arvalid & out.arready;
            access.address_in = access.address_in.filter(|_| taken == 0);
            access.data_in = access.data_in.filter(|_| input.wvalid & out.wready == 0);
        }
        if self.patience.is_over(self.access.is_some(), self.config.patience_cycles)
            && let Some(Access { offset, .. }) = self.access.take()
        {
            found(Some(Breach::NoAnswer { offset, write, cycles: self.config.patience_cycles }));
            (self.is_dead, self.answer) = (true, Some(u32::MAX));
        }
    }

    /// The reset line was pulled. `out` is how the core is in reset.
    pub fn reset(&mut self, now: u64, out: &LiteOut, findings: &mut Findings) {
        for (channel, _) in [(Channel::B, out.bvalid), (Channel::R, out.rvalid)]
            .into_iter()
            .filter(|(_, valid)| *valid == 1)
        {
            findings.add(now, None, Breach::ValidInReset { channel });
        }
        *self = Self::new(self.config);
    }
}
