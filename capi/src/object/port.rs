#![allow(unsafe_code, reason = "a port's name is for ever, and its table is never emptied")]
//! Ports: a board's own by name, a program's own, a simulated board's, and a GPU's.

use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    limits,
    table::{Object, Table},
};
use contigo::Port;

/// Ports. A port is a handful of numbers: whoever uses one has a copy, so that it can be closed at
/// any time.
pub(crate) static PORTS: Table<Port, { limits::PORTS }> = Table::new();

impl Object for Port {
    const KIND: Kind = Kind::Port;
}

/// Names of ports that a program made, each of them once. They stay: a `Port`'s name is `'static`,
/// and engines, errors and what a thread does at this moment have copies of it that nobody counts.
static NAMES: Table<Name, { limits::PORT_NAMES }> = Table::new();

struct Name {
    bytes: [u8; limits::NAME_BYTES],
    len: usize,
}

impl Object for Name {
    const KIND: Kind = Kind::PortName;
}

impl Name {
    fn new(text: &str) -> Self {
        let mut bytes = [0; limits::NAME_BYTES];
        let len = text.len().min(bytes.len());
        bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        Self { bytes, len }
    }

    fn text(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or("")
    }
}

/// A copy of a handle's port.
pub(crate) fn get(raw: u64) -> Result<Port, Fault> {
    Ok(*PORTS.lease(raw)?)
}

/// `name` for ever: the one that is kept already, or a new one. Of two threads that bring the same
/// one at once both may keep it: neither waits for the other.
pub(crate) fn keep(name: &str) -> Result<&'static str, Fault> {
    let at = |index| NAMES.slot(index).ok_or(Misuse::Stale { kind: Kind::PortName })?.lease_whichever(Kind::PortName);
    let known = (0..limits::PORT_NAMES).filter_map(|index| at(index).ok()).find(|kept| kept.text() == name);
    let kept = match known {
        Some(kept) => kept,
        None => {
            let (index, mut locked) = NAMES.claim()?.parts();
            locked.put(Name::new(name));
            drop(locked);
            at(index)?
        }
    };
    // SAFETY: the entry was full and leased. Only this function uses the table, and it takes no
    // entry alone but a free one, so that this one is never emptied.
    Ok(unsafe { kept.for_ever() }.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let (one, two) = (keep("a-port"), keep(&String::from("a-port")));
        assert_eq!(one.ok().map(str::as_ptr), two.ok().map(str::as_ptr));
    }
}
