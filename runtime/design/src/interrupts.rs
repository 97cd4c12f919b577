//! A core's interrupts: its pins, and how each reaches the processor.

use super::budget::Budget;
use super::module::{Module, Pin};
use super::text::number;
use super::{Core, Design, DesignError, DesignRule};
use heapless::Vec;

/// The most interrupts of a core, as of a contigo device node.
pub(crate) const MAX_INTERRUPTS: usize = 16;

/// The most instances that a signal goes through.
const MAX_STEPS: usize = 6;
/// The most pins that a search visits: a signal connected to more is not an interrupt that a
/// program waits for.
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
    /// It stays high until acknowledged; the default for Vivado's cores.
    LevelHigh,
    /// It rises.
    EdgeRising,
    /// It stays low, or falls: the processor's interrupt controller has no such input (UG585, "PL
    /// Interrupts"; UG1085, "System Interrupts"), so something between must invert it.
    Low,
}

/// Where an interrupt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wired<'a> {
    /// To the processor: one of its 16 lines from the fabric, as
    /// [`Soc::shared_interrupt`](super::Soc::shared_interrupt) counts them.
    Processor {
        /// The line.
        line: u8,
    },
    /// To an AXI interrupt controller in the fabric.
    Controller {
        /// The controller's instance.
        instance: &'a str,
        /// The controller's input.
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
    /// [`DesignRule::TooMany`], [`DesignRule::NotANumber`], [`DesignRule::Tangled`], with the line.
    pub fn interrupts(&self) -> Result<Vec<Interrupt<'a>, MAX_INTERRUPTS>, DesignError> {
        let budget = Budget::of(&self.design.text);
        let interrupts = self.interrupts_within(&budget);
        budget.check(&self.module.text, self.name())?;
        interrupts
    }

    fn interrupts_within(
        &self,
        budget: &Budget,
    ) -> Result<Vec<Interrupt<'a>, MAX_INTERRUPTS>, DesignError> {
        let (mut interrupts, mut wires) = (Vec::new(), Wires::of(self.design, budget));
        for pin in self.module.pins(Some(budget)).filter(|pin| pin.tag.get("DIR") == Some("O")) {
            let said = pin.tag.text("SIGIS").eq_ignore_ascii_case("interrupt");
            // A pin without interrupts may have any text for its wires.
            let width = match pin.width() {
                None if said => {
                    return Err(DesignError::at(
                        &self.module.text,
                        DesignRule::NotANumber("LEFT or RIGHT"),
                        pin.name(),
                        0,
                    ));
                }
                width => width.unwrap_or(1),
            };
            // One too many is refused below.
            for bit in (0..width).take(MAX_INTERRUPTS + 1) {
                let wired = wires.goal(&pin, bit);
                if !said && !matches!(wired, Wired::Processor { .. } | Wired::Controller { .. }) {
                    break;
                }
                let found = Interrupt {
                    pin: pin.name(),
                    trigger: Trigger::of(pin.tag.text("SENSITIVITY"), bit),
                    wired,
                };
                let most = MAX_INTERRUPTS as u64;
                let rule = DesignRule::TooMany { what: "interrupts", most };
                interrupts
                    .push(found)
                    .map_err(|_| DesignError::at(&self.module.text, rule, self.name(), 0))?;
            }
        }
        Ok(interrupts)
    }

    /// Where the output of an AXI interrupt controller goes; [`Wired::Nowhere`] for another core.
    ///
    /// # Errors
    /// [`DesignRule::Tangled`], with the line.
    pub fn controller_goes(&self) -> Result<Wired<'a>, DesignError> {
        if self.ip() != "axi_intc" {
            return Ok(Wired::Nowhere);
        }
        let budget = Budget::of(&self.design.text);
        let output = self.module.pins(Some(&budget)).find(|pin| pin.name() == "irq");
        let wired =
            output.map_or(Wired::Nowhere, |pin| Wires::of(self.design, &budget).goal(&pin, 0));
        budget.check(&self.module.text, self.name())?;
        Ok(wired)
    }
}

impl Trigger {
    /// The file's word for wire `bit`: one word for all, or one for each wire with `:` between.
    fn of(words: &str, bit: u32) -> Self {
        let word = words.split(':').nth(bit as usize).or_else(|| words.split(':').next());
        match word.unwrap_or_default() {
            "EDGE_RISING" => Self::EdgeRising,
            "LEVEL_LOW" | "EDGE_FALLING" => Self::Low,
            _ => Self::LevelHigh,
        }
    }
}

/// The wires of one query, and what is read once for all of them.
struct Wires<'d, 'a> {
    design: &'d Design<'a>,
    budget: &'d Budget,
    /// Whether the processor counts its lines from the last one down.
    reversed: Option<bool>,
    /// The processor's pins for interrupts: the first line of each, and its wires.
    widths: Vec<(u32, Option<u32>), MAX_PINS>,
}

/// A processor has one or two pins for interrupts.
const MAX_PINS: usize = 2;

impl<'d, 'a> Wires<'d, 'a> {
    const fn of(design: &'d Design<'a>, budget: &'d Budget) -> Self {
        Self { design, budget, reversed: None, widths: Vec::new() }
    }

    /// Where wire `bit` of this pin ends: the processor if any of its branches reaches it,
    /// otherwise a controller.
    fn goal(&mut self, pin: &Pin<'a>, bit: u32) -> Wired<'a> {
        let mut looks = MAX_LOOKS;
        self.follow(pin, bit, MAX_STEPS, &mut looks)
    }

    fn follow(&mut self, pin: &Pin<'a>, bit: u32, steps: usize, looks: &mut usize) -> Wired<'a> {
        let mut best = Wired::Nowhere;
        for (to, input) in pin.connections(Some(self.budget)) {
            let Some(left) = looks.checked_sub(1) else { break };
            *looks = left;
            let module = self
                .design
                .index_of(to)
                .and_then(|index| Some((index, self.design.module_at(index)?)));
            let found = match module {
                None => Wired::Elsewhere { instance: to },
                Some((index, module)) => self.passed(index, &module, input, bit, steps, looks),
            };
            if found.rank() > best.rank() {
                best = found;
            }
        }
        best
    }

    /// Where wire `bit` of a signal goes after entering `module` at `input`.
    fn passed(
        &mut self,
        index: usize,
        module: &Module<'a>,
        input: &str,
        bit: u32,
        steps: usize,
        looks: &mut usize,
    ) -> Wired<'a> {
        let elsewhere = Wired::Elsewhere { instance: module.name() };
        if Some(index) == self.design.processor_index() {
            let first = self.design.soc.interrupt_pin(input);
            return first
                .and_then(|first| self.line(module, input, first, bit))
                .map_or(elsewhere, |line| Wired::Processor { line });
        }
        let on = match module.ip() {
            "axi_intc" if input.eq_ignore_ascii_case("intr") => {
                return u8::try_from(bit).map_or(elsewhere, |input| Wired::Controller {
                    instance: module.name(),
                    input,
                });
            }
            "xlconcat" | "ilconcat" => self.concatenated(module, input, bit),
            "xlslice" | "ilslice" => self.sliced(module, bit),
            _ => None,
        };
        match (on, steps.checked_sub(1)) {
            (Some((output, bit)), Some(steps)) => self.follow(&output, bit, steps, looks),
            _ => elsewhere,
        }
    }

    /// The processor's line for wire `bit` of its pin.
    fn line(&mut self, processor: &Module<'a>, pin: &str, first: u32, bit: u32) -> Option<u8> {
        let width = match self.widths.iter().find(|(known, _)| *known == first) {
            Some((_, width)) => *width,
            None => {
                let width = processor
                    .pins(Some(self.budget))
                    .find(|each| each.name() == pin)
                    .and_then(|pin| pin.width());
                // If there is no room, it is read again.
                let _ = self.widths.push((first, width));
                width
            }
        }?;
        // Until 2014 Vivado counted them from the last one down (PG082, "IRQ_F2P_MODE").
        let reversed = match self.reversed {
            Some(reversed) => reversed,
            None => processor
                .parameter("C_IRQ_F2P_MODE", Some(self.budget))
                .is_some_and(|mode| mode == "REVERSE"),
        };
        self.reversed = Some(reversed);
        let line = if reversed {
            16_u32.checked_sub(width)?.checked_add(bit)?
        } else {
            first.checked_add(bit)?
        };
        u8::try_from(line).ok().filter(|line| bit < width && *line < 16)
    }

    /// The output of a concatenation, and the number there of wire `bit` of `input`, after all
    /// wires of earlier inputs.
    fn concatenated(&self, module: &Module<'a>, input: &str, bit: u32) -> Option<(Pin<'a>, u32)> {
        let index: u32 =
            input.strip_prefix("In").or_else(|| input.strip_prefix("in"))?.parse().ok()?;
        let (mut wires, mut output) = (bit, None);
        for pin in module.pins(Some(self.budget)) {
            let place: Option<u32> = pin.name().get(2..).and_then(|digits| digits.parse().ok());
            if pin.tag.get("DIR") == Some("I") && place.is_some_and(|place| place < index) {
                wires = wires.checked_add(pin.width()?)?;
            } else if pin.name() == "dout" {
                output = output.or(Some(pin));
            }
        }
        Some((output?, wires))
    }

    /// The output of a slice, and the number there of wire `bit` of its input.
    fn sliced(&self, module: &Module<'a>, bit: u32) -> Option<(Pin<'a>, u32)> {
        let sides = module.values(["DIN_FROM", "DIN_TO"], Some(self.budget));
        let [from, to] =
            sides.map(|side| side.and_then(number).and_then(|side| u32::try_from(side).ok()));
        let (from, to) = (from?, to?);
        let output = module.pins(Some(self.budget)).find(|pin| pin.name() == "Dout")?;
        (to..=from).contains(&bit).then(|| (output, bit - to))
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
