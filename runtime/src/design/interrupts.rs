//! A core's interrupts: which of its pins, and how each reaches the processor.

use super::{Core, Design, DesignError, DesignRule, Soc, module::Module};
use heapless::Vec;

/// How many interrupts a core has at most: as many as a guard's node.
pub const MAX_INTERRUPTS: usize = 16;

/// How many instances a signal goes through at most.
const MAX_STEPS: usize = 6;
/// How many pins a search looks at: a signal that is connected with many of them is none that
/// somebody waits for.
const MAX_LOOKS: usize = 64;

/// An interrupt of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt<'a> {
    /// The core's pin: `s2mm_introut`.
    pub pin: &'a str,
    /// How it is raised.
    pub trigger: Trigger,
    /// Where it goes.
    pub wired: Wired<'a>,
}

/// How an interrupt is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// It stays high until it is acknowledged. So does every core of Vivado's that says nothing.
    LevelHigh,
    /// It rises.
    EdgeRising,
    /// It stays low, or falls: the processor's interrupt controller has no such input (UG585,
    /// "PL Interrupts"; UG1085, "System Interrupts"), so something between must turn it.
    Low,
}

/// Where an interrupt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wired<'a> {
    /// To the processor: one of its 16 lines from the fabric, as [`Soc::shared_interrupt`] counts
    /// them.
    Processor {
        /// The line.
        line: u8,
    },
    /// To an AXI interrupt controller in the fabric.
    Controller {
        /// The controller's instance.
        instance: &'a str,
        /// Which of its inputs.
        input: u8,
    },
    /// To something else, such as a logic gate or a pin of the chip.
    Elsewhere {
        /// That instance.
        instance: &'a str,
    },
    /// To nothing.
    Nowhere,
}

impl<'a> Core<'_, 'a> {
    /// Its interrupts, in the file's order. A pin counts when the file calls it an interrupt, or
    /// when it reaches the processor's interrupts.
    ///
    /// # Errors
    /// [`DesignRule::TooMany`], with the line.
    pub fn interrupts(&self) -> Result<Vec<Interrupt<'a>, MAX_INTERRUPTS>, DesignError> {
        let mut interrupts = Vec::new();
        for pin in self.module.pins().filter(|pin| pin.tag.get("DIR") == Some("O")) {
            let said = pin.tag.text("SIGIS").eq_ignore_ascii_case("interrupt");
            // One too many is refused below.
            for bit in (0..pin.width()).take(MAX_INTERRUPTS + 1) {
                let wired = self.design.goal(self.name(), pin.name(), bit);
                if !said && !matches!(wired, Wired::Processor { .. } | Wired::Controller { .. }) {
                    break;
                }
                let found = Interrupt { pin: pin.name(), trigger: Trigger::of(pin.tag.text("SENSITIVITY"), bit), wired };
                let most = MAX_INTERRUPTS as u64;
                let rule = DesignRule::TooMany { what: "interrupts", most };
                interrupts.push(found).map_err(|_| DesignError::at(&self.module.text, rule, self.name(), 0))?;
            }
        }
        Ok(interrupts)
    }
}

impl Trigger {
    /// The file's word for this wire: a word, or one for each wire with `:` between.
    fn of(words: &str, bit: u32) -> Self {
        let word = words.split(':').nth(bit as usize).or_else(|| words.split(':').next());
        match word.unwrap_or_default() {
            "EDGE_RISING" => Self::EdgeRising,
            "LEVEL_LOW" | "EDGE_FALLING" => Self::Low,
            _ => Self::LevelHigh,
        }
    }
}

impl<'a> Design<'a> {
    /// Where wire `bit` of this pin goes in the end: to the processor where any of its branches
    /// does, then to a controller.
    fn goal(&self, instance: &'a str, pin: &'a str, bit: u32) -> Wired<'a> {
        let mut looks = MAX_LOOKS;
        self.follow(instance, pin, bit, MAX_STEPS, &mut looks)
    }

    fn follow(&self, instance: &'a str, pin: &str, bit: u32, steps: usize, looks: &mut usize) -> Wired<'a> {
        let mut best = Wired::Nowhere;
        let Some(pin) = self.module(instance).and_then(|module| module.pin(pin)) else { return best };
        for (to, input) in pin.connections() {
            let Some(left) = looks.checked_sub(1) else { break };
            *looks = left;
            let found = match self.module(to) {
                None => Wired::Elsewhere { instance: to },
                Some(module) => self.passed(&module, input, bit, steps, looks),
            };
            if found.rank() > best.rank() {
                best = found;
            }
        }
        best
    }

    /// Where wire `bit` of a signal goes that enters `module` at `input`.
    fn passed(&self, module: &Module<'a>, input: &str, bit: u32, steps: usize, looks: &mut usize) -> Wired<'a> {
        let elsewhere = Wired::Elsewhere { instance: module.name() };
        if let Some(first) = Soc::of(module.ip()).and_then(|soc| soc.interrupt_pin(input)) {
            return self.line(module, input, first, bit).map_or(elsewhere, |line| Wired::Processor { line });
        }
        let on = match module.ip() {
            "axi_intc" if input.eq_ignore_ascii_case("intr") => {
                return u8::try_from(bit).map_or(elsewhere, |input| Wired::Controller { instance: module.name(), input });
            }
            "xlconcat" | "ilconcat" => before(module, input).and_then(|before| Some(("dout", before.checked_add(bit)?))),
            "xlslice" | "ilslice" => slice(module, bit).map(|bit| ("Dout", bit)),
            _ => None,
        };
        match (on, steps.checked_sub(1)) {
            (Some((output, bit)), Some(steps)) => self.follow(module.name(), output, bit, steps, looks),
            _ => elsewhere,
        }
    }

    /// The line of the processor that wire `bit` of its pin is.
    fn line(&self, processor: &Module<'a>, pin: &str, first: u32, bit: u32) -> Option<u8> {
        let width = processor.pin(pin)?.width();
        // Until 2014 Vivado counted them from the last one down (PG082, "IRQ_F2P_MODE").
        let reversed = processor.parameter("C_IRQ_F2P_MODE").is_some_and(|mode| mode == "REVERSE");
        let line = if reversed { 16_u32.checked_sub(width)?.checked_add(bit)? } else { first.checked_add(bit)? };
        u8::try_from(line).ok().filter(|line| bit < width && *line < 16)
    }

    /// The interrupt of the controller `core` itself.
    pub(super) fn controller_output(&self, core: &Core<'_, 'a>) -> Wired<'a> {
        self.goal(core.name(), "irq", 0)
    }
}

impl<'a> Core<'_, 'a> {
    /// Where the output of an AXI interrupt controller goes; of another core [`Wired::Nowhere`].
    #[must_use]
    pub fn controller_goes(&self) -> Wired<'a> {
        if self.is_interrupt_controller() { self.design.controller_output(self) } else { Wired::Nowhere }
    }
}

impl Wired<'_> {
    const fn rank(&self) -> u8 {
        match self {
            Self::Nowhere => 0,
            Self::Elsewhere { .. } => 1,
            Self::Controller { .. } => 2,
            Self::Processor { .. } => 3,
        }
    }
}

/// How many wires of a concatenation come before its input `input`.
fn before(module: &Module<'_>, input: &str) -> Option<u32> {
    let index: u32 = input.strip_prefix("In").or_else(|| input.strip_prefix("in"))?.parse().ok()?;
    let mut wires = 0_u32;
    for pin in module.pins().filter(|pin| pin.tag.get("DIR") == Some("I")) {
        let place: Option<u32> = pin.name().get(2..).and_then(|digits| digits.parse().ok());
        if place.is_some_and(|place| place < index) {
            wires = wires.checked_add(pin.width())?;
        }
    }
    Some(wires)
}

/// The wire of a slice's output that wire `bit` of its input is.
fn slice(module: &Module<'_>, bit: u32) -> Option<u32> {
    let side = |name| module.number(name).and_then(|side| u32::try_from(side).ok());
    let (from, to) = (side("DIN_FROM")?, side("DIN_TO")?);
    (to..=from).contains(&bit).then(|| bit - to)
}
