//! The writes that make wrong fields right.

use super::{
    AccessError, Fact, Field, Known, PortsError, Reading, Registers, Setter, Verdict, read, stuck,
};
use crate::bitstream::Family;
use crate::fpga::users;
use crate::machine::Machine;

/// SLCR_LOCKSTA: with bit 0, writes to the SLCR have no effect (UG585, appendix B, slcr). The
/// kernel unlocks it (Linux, `arch/arm/mach-zynq/slcr.c`), so a lock was set on purpose.
const ZYNQ_LOCKED: u64 = 0xf800_000c;
/// The SLCR's registers.
const ZYNQ_SLCR: std::ops::Range<u64> = 0xf800_0000..0xf800_1000;

/// One write.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The field.
    pub field: &'static Field,
    /// Its current value.
    pub from: u32,
    /// Its new value.
    pub to: u32,
}

/// The writes for all wrong fields that can be set here, in the order of [`super::fields`]. After a
/// register that did not answer there are none.
#[must_use]
pub fn plan(facts: &[Fact]) -> Vec<Step> {
    let step = |fact: &Fact| match (&fact.reading, fact.wanted) {
        (&Reading::Value(from), Some(to))
            if fact.verdict == Verdict::Wrong && fact.field.setter == Setter::Prepare =>
        {
            Some(Step { field: fact.field, from, to })
        }
        _ => None,
    };
    if stuck(facts).is_some() { Vec::new() } else { facts.iter().filter_map(step).collect() }
}

/// Makes the writes, and reads each field back. If one fails, the earlier writes are undone.
///
/// # Errors
/// - [`PortsError::InUse`], [`PortsError::CannotSee`]: a transfer may be under way on a port.
///   Nothing was written.
/// - [`PortsError::Read`], [`PortsError::Locked`]: the SLCR takes no write. Nothing was written.
/// - [`PortsError::Write`], [`PortsError::Kept`]: a write failed or changed nothing. The earlier
///   writes were undone.
/// - [`PortsError::NotUndone`]: a write could not be undone.
/// - [`PortsError::Stuck`]: an access does not end, and nothing was undone.
pub fn apply(
    machine: &Machine,
    family: Family,
    registers: &impl Registers,
    steps: &[Step],
) -> Result<(), PortsError> {
    if steps.is_empty() {
        return Ok(());
    }
    let users = users::of(machine, Some(family)).map_err(Box::new)?;
    if !users.is_empty() {
        return Err(PortsError::InUse(users));
    }
    if steps.iter().any(|step| ZYNQ_SLCR.contains(&step.field.addr) && family == Family::Zynq7000)
        && registers.read(ZYNQ_LOCKED)? & 1 != 0
    {
        return Err(PortsError::Locked);
    }
    for (done, step) in steps.iter().enumerate() {
        let Err(error) = write(registers, step.field, step.to) else { continue };
        // A processor waits there, and undoing the writes would block the next one.
        if let PortsError::Write { field, error: AccessError::NoAnswer { addr } } = error {
            return Err(PortsError::Stuck { field, addr });
        }
        // The failed write is undone, too: half of it may have taken effect.
        return Err(undone(registers, steps.get(..=done).unwrap_or(steps), error));
    }
    Ok(())
}

/// Makes the writes that [`plan`] has for `facts`. If they turned the level shifters on, the ports
/// behind the shifters are then read and set. Returns all writes, and leaves the last facts that
/// were read in `facts`.
///
/// # Errors
/// As [`apply`]. If a write fails, the earlier writes are undone, in both halves.
/// - [`PortsError::Behind`]: the ports behind were not set, and it is not safe to undo the rest.
pub fn prepare(
    machine: &Machine,
    family: Family,
    registers: &impl Registers,
    known: &Known<'_>,
    facts: &mut Vec<Fact>,
) -> Result<Vec<Step>, PortsError> {
    let mut steps = plan(facts);
    apply(machine, family, registers, &steps)?;
    if !steps.is_empty() && facts.iter().any(|fact| matches!(fact.reading, Reading::Closed)) {
        *facts = read(family, registers, known);
        let behind = plan(facts);
        if let Err(error) = apply(machine, family, registers, &behind) {
            // In any other case a processor waits, or a program or a driver may have begun to use
            // the fabric.
            return Err(if matches!(error, PortsError::Write { .. } | PortsError::Kept { .. }) {
                undone(registers, &steps, error)
            } else {
                PortsError::Behind {
                    set: steps.iter().map(|step| step.field.name).collect(),
                    error: Box::new(error),
                }
            });
        }
        steps.extend(behind);
    }
    Ok(steps)
}

/// Undoes steps, the last one first, and returns the error to report.
fn undone(registers: &impl Registers, steps: &[Step], error: PortsError) -> PortsError {
    for step in steps.iter().rev() {
        if write(registers, step.field, step.from).is_err() {
            return PortsError::NotUndone {
                field: step.field.name,
                was: step.field.say(step.from),
                error: Box::new(error),
            };
        }
    }
    error
}

fn write(registers: &impl Registers, field: &'static Field, value: u32) -> Result<(), PortsError> {
    let failed = |error: AccessError| PortsError::Write { field: field.name, error };
    let before = registers.read(field.addr).map_err(failed)?;
    if field.of(before) == value {
        return Ok(());
    }
    registers.write(field.addr, field.with(before, value)).map_err(failed)?;
    let after = field.of(registers.read(field.addr).map_err(failed)?);
    if after == value {
        Ok(())
    } else {
        Err(PortsError::Kept { field: field.name, wrote: field.say(value), has: field.say(after) })
    }
}
