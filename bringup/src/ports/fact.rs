//! A field, its value, and the value that it should have.

use super::{AccessError, Field, Registers, field::Want, fields};
use crate::bitstream::Family;

/// The numbers that a design gives its processor, by parameter: `PCW_S_AXI_HP0_DATA_WIDTH`.
pub type Parameters<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// The outcome of a read.
#[derive(Debug)]
pub enum Reading {
    /// The field's value, shifted down.
    Value(u32),
    /// Its block is held in reset, and was left alone.
    Held,
    /// The read failed.
    Failed(AccessError),
}

/// How a field compares with the value that it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has it.
    Right,
    /// It has another.
    Wrong,
    /// Nobody says which value is right: no design was given, or it does not have the port.
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
    /// The value that it should have, where somebody says it.
    pub wanted: Option<u32>,
    /// The comparison.
    pub verdict: Verdict,
}

/// Reads every field of a family. `design` has the processor's parameters; `running`: a bitstream
/// runs.
///
/// A register whose read fails is a row, not the end: the others are read all the same. After one
/// that does not answer nothing is touched: a processor waits there, and the next may be the last.
pub fn read(family: Family, registers: &impl Registers, design: Option<Parameters<'_>>, running: bool) -> Vec<Fact> {
    let mut stuck = None;
    let one = |field: &'static Field| {
        let reading = stuck.map_or_else(|| value(registers, field), |addr| Reading::Failed(AccessError::After { addr }));
        if let Reading::Failed(AccessError::NoAnswer { addr }) = reading {
            stuck = Some(addr);
        }
        let wanted = wanted(field, design, running);
        let verdict = match (&reading, wanted) {
            (Reading::Value(value), Some(wanted)) if *value == wanted => Verdict::Right,
            (Reading::Value(_), Some(_)) => Verdict::Wrong,
            (Reading::Value(_), None) => Verdict::Unknown,
            _ => Verdict::Unread,
        };
        Fact { field, reading, wanted, verdict }
    };
    fields(family).iter().map(one).collect()
}

/// A field's value, or why there is none. The reset is looked at first: a read of a block that is
/// held may never end.
fn value(registers: &impl Registers, field: &Field) -> Reading {
    let held = field.held.map_or(Ok(false), |(addr, bits)| registers.read(addr).map(|value| value & bits != 0));
    match held {
        Ok(true) => Reading::Held,
        Ok(false) => registers.read(field.addr).map_or_else(Reading::Failed, |value| Reading::Value(field.of(value))),
        Err(error) => Reading::Failed(error),
    }
}

fn wanted(field: &Field, design: Option<Parameters<'_>>, running: bool) -> Option<u32> {
    match field.want {
        Want::Running(value) => running.then_some(value),
        Want::Used { value, by } => (running && by.iter().any(|name| design.and_then(|number| number(name)) == Some(1))).then_some(value),
        Want::Width { parameter, used } => {
            let number = design?;
            // A file that does not say it is none of Vivado's.
            if number(used) != Some(1) {
                return None;
            }
            let words = format!("{} bits", number(parameter)?);
            field.words.iter().find(|&&(_, known)| known == words).map(|&(value, _)| value)
        }
        Want::Unknown => None,
    }
}
