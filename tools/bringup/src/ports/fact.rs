//! A field, its value, and the value that it should have.

use super::table::Want;
use super::{AccessError, Cores, Field, Registers, fields};
use crate::bitstream::Family;
use std::fmt;

/// A design's numbers for its processor, by parameter: `PCW_S_AXI_HP0_DATA_WIDTH`.
pub type Parameters<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// The facts of a machine other than its registers.
#[derive(Clone, Copy, Default)]
pub struct Known<'a> {
    /// The numbers of the design that runs, or that will run.
    pub design: Option<Parameters<'a>>,
    /// Whether a bitstream runs.
    pub running: bool,
    /// Whether the kernel reports that no clock of the fabric runs.
    pub stopped: bool,
    /// The needs of the device tree's cores.
    pub cores: Cores,
}

/// The register that did not answer, if there is one: a processor waits for it, and no device may
/// be started before the board is restarted.
#[must_use]
pub fn stuck(facts: &[Fact]) -> Option<u64> {
    facts.iter().find_map(|fact| match fact.reading {
        Reading::Failed(AccessError::NoAnswer { addr }) => Some(addr),
        _ => None,
    })
}

impl fmt::Debug for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { design, running, stopped, cores } = self;
        let mut said = f.debug_struct("Known");
        said.field("design", &design.is_some())
            .field("running", running)
            .field("stopped", stopped)
            .field("cores", cores)
            .finish()
    }
}

/// The result of a read.
#[derive(Debug)]
pub enum Reading {
    /// The field's value, shifted down.
    Value(u32),
    /// Not read, because its block is held in reset.
    Held,
    /// Not read, because a port without a clock of the fabric may not answer: no bitstream runs,
    /// the level shifters are off, every clock is off, or no design states that this port is used.
    /// A port that a design does not use has no clock.
    Closed,
    /// The read failed.
    Failed(AccessError),
}

/// The comparison of a field with the value that it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has that value.
    Right,
    /// It has another value.
    Wrong,
    /// The right value is not known: no design was given, or the design does not have the port.
    Unknown,
    /// It was not read.
    Unread,
}

/// A field of a machine.
#[derive(Debug)]
pub struct Fact {
    /// The field.
    pub field: &'static Field,
    /// Its value.
    pub reading: Reading,
    /// The value that it should have, if it is known.
    pub wanted: Option<u32>,
    /// The comparison.
    pub verdict: Verdict,
}

/// Reads every field of a family, and compares it with the known facts.
///
/// A failed read gives a row, and the other registers are still read. After a register that does
/// not answer, nothing is accessed: a processor waits there, and the next may be the last.
pub fn read(family: Family, registers: &impl Registers, known: &Known<'_>) -> Vec<Fact> {
    let mut stuck = None;
    let one = |field: &'static Field| {
        let mut reading = stuck.map_or_else(
            || value(registers, field, known),
            |addr| Reading::Failed(AccessError::After { addr }),
        );
        let mut wanted = wanted(field, known);
        if let (Want::Handoff { addr, asked }, &Reading::Value(value)) = (field.want, &reading)
            && known.running
            && asked(&known.cores)
        {
            // If nothing was left there, the right value is not known: Linux's driver opens none.
            match registers.read(addr).map(|left| field.of(left)) {
                Ok(left) => wanted = (left != 0).then_some(value | left),
                Err(error) => reading = Reading::Failed(error),
            }
        }
        if let Reading::Failed(AccessError::NoAnswer { addr }) = reading {
            stuck = Some(addr);
        }
        let verdict = match (&reading, wanted) {
            // Two values may have the same words: either of them snoops.
            (Reading::Value(value), Some(wanted)) if field.say(*value) == field.say(wanted) => {
                Verdict::Right
            }
            (Reading::Value(_), Some(_)) => Verdict::Wrong,
            (Reading::Value(_), None) => Verdict::Unknown,
            _ => Verdict::Unread,
        };
        Fact { field, reading, wanted, verdict }
    };
    fields(family).iter().map(one).collect()
}

/// A field's value, or the reason why there is none. The reset is checked first: a read of a block
/// that is held in reset may never end, nor may a read of a fabric port that has no clock.
fn value(registers: &impl Registers, field: &Field, known: &Known<'_>) -> Reading {
    let bits = |(addr, bits): (u64, u32)| registers.read(addr).map(|value| (value & bits, bits));
    let held = field.held.map_or(Ok(false), |held| bits(held).map(|(set, _)| set != 0));
    let unused = match field.want {
        Want::Width { used, .. } => known.design.and_then(|number| number(used)) != Some(1),
        _ => false,
    };
    let closed = match field.after {
        Some(_) if !known.running || known.stopped || unused => Ok(true),
        Some(after) => bits(after).map(|(set, all)| set != all),
        None => Ok(false),
    };
    match (held, closed) {
        (Err(error), _) | (_, Err(error)) => Reading::Failed(error),
        (Ok(true), _) => Reading::Held,
        (_, Ok(true)) => Reading::Closed,
        _ => registers
            .read(field.addr)
            .map_or_else(Reading::Failed, |value| Reading::Value(field.of(value))),
    }
}

fn wanted(field: &Field, known: &Known<'_>) -> Option<u32> {
    let &Known { design, running, cores, .. } = known;
    let has = |by: &[&str]| by.iter().any(|name| design.and_then(|number| number(name)) == Some(1));
    match field.want {
        Want::Running(value) => running.then_some(value),
        Want::Used { value, by } => (running && has(by)).then_some(value),
        Want::Width { parameter, used } => {
            let number = design?;
            // A file without this parameter is not Vivado's.
            if number(used) != Some(1) {
                return None;
            }
            let words = format!("{} bits", number(parameter)?);
            field.words.iter().find(|&&(_, known)| known == words).map(|&(value, _)| value)
        }
        Want::Coherent { value, by } => {
            (cores.coherent && (design.is_none() || has(by))).then_some(value)
        }
        Want::Core { value, has } => (running && has(&cores)).then_some(value),
        Want::Handoff { .. } | Want::Unknown => None,
    }
}
