//! The processor's ports that a bus reaches, through instances that forward accesses.

use super::budget::Budget;
use super::cores::passes_on;
use super::{Design, DesignError, DesignRule, MAX_INSTANCES, Tag, next_tag};
use heapless::{Deque, Vec};

/// The most entries of all interconnects together: two for each instance.
const MAX_ENTRIES: usize = 1024;

/// The most processor ports reported for one bus.
const MAX_PORTS: usize = 16;

/// The slave interfaces of the processor and of interconnects, by their nets: where an access
/// continues. Nets are looked up here instead of in the file.
pub(super) struct Nets<'d, 'a> {
    design: &'d Design<'a>,
    processor: usize,
    /// Sorted by the hash of the net.
    entries: Vec<Entry, MAX_ENTRIES>,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    /// The instance.
    index: u16,
    /// Where its `<BUSINTERFACE` is.
    from: u32,
    to: u32,
}

impl<'d, 'a> Nets<'d, 'a> {
    /// The nets of a design with a processor.
    pub(super) fn of(design: &'d Design<'a>, budget: &Budget) -> Result<Self, DesignError> {
        let processor = design.processor_index().unwrap_or(MAX_INSTANCES);
        let mut nets = Self { design, processor, entries: Vec::new() };
        for index in 0..design.modules.len() {
            let Some(module) =
                design.module_at(index).filter(|module| index == processor || passes_on(module))
            else {
                continue;
            };
            let mut from = module.text.at();
            for (tag, inside) in module.each_tag(Some(budget)) {
                let (start, to) = (core::mem::replace(&mut from, inside.at()), inside.at());
                let Some(net) = entry(&tag) else { continue };
                let entry = Entry {
                    hash: hash(net),
                    index: u16::try_from(index).unwrap_or(u16::MAX),
                    from: start,
                    to,
                };
                let rule = DesignRule::TooMany {
                    what: "slave interfaces of interconnects",
                    most: MAX_ENTRIES as u64,
                };
                nets.entries
                    .push(entry)
                    .map_err(|_| DesignError::at(&inside, rule, module.name(), 0))?;
            }
        }
        nets.entries.sort_unstable_by_key(|entry| (entry.hash, entry.from));
        Ok(nets)
    }

    /// The processor's ports that bus `net` leads to, the nearest first.
    pub(super) fn ports_behind(&self, net: &'a str, budget: &Budget) -> Vec<&'a str, MAX_PORTS> {
        let mut ports = Vec::new();
        let mut seen = [false; MAX_INSTANCES];
        // Each instance is in it once.
        let mut ahead = Deque::<u16, MAX_INSTANCES>::new();
        self.enter(net, &mut ports, &mut seen, &mut ahead, budget);
        while let Some(index) = ahead.pop_front() {
            let Some(module) = self.design.module_at(index.into()) else { continue };
            for bus in module.interfaces(Some(budget)).filter(|bus| bus.is_master()) {
                self.enter(bus.net(), &mut ports, &mut seen, &mut ahead, budget);
            }
        }
        ports
    }

    /// Continues from `net` into each instance that it enters.
    fn enter(
        &self,
        net: &str,
        ports: &mut Vec<&'a str, MAX_PORTS>,
        seen: &mut [bool; MAX_INSTANCES],
        ahead: &mut Deque<u16, MAX_INSTANCES>,
        budget: &Budget,
    ) {
        if net.is_empty() || net == "__NOC__" {
            return;
        }
        let hash = hash(net);
        let first = self.entries.partition_point(|entry| entry.hash < hash);
        let alike = self
            .entries
            .get(first..)
            .unwrap_or_default()
            .iter()
            .take_while(|entry| entry.hash == hash);
        for entry in alike {
            // The hash may be another net's.
            let read = entry.to.saturating_sub(entry.from) as usize;
            let mut text = self.design.text.part(entry.from, entry.to);
            let Some(tag) = next_tag(&mut text).ok().flatten().filter(|_| budget.spend(read))
            else {
                return;
            };
            if tag.text("BUSNAME") != net {
                continue;
            }
            if usize::from(entry.index) == self.processor {
                let port = tag.text("NAME");
                if !ports.contains(&port) {
                    // A processor has fewer.
                    let _ = ports.push(port);
                }
                continue;
            }
            match seen.get_mut(usize::from(entry.index)) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let _ = ahead.push_back(entry.index);
        }
    }
}

/// The net of a memory-mapped slave.
fn entry<'a>(tag: &Tag<'a>) -> Option<&'a str> {
    let is_bus = tag.name == "BUSINTERFACE" && !tag.ends && tag.text("VLNV").contains(":aximm:");
    let slave = is_bus && !matches!(tag.text("TYPE"), "MASTER" | "INITIATOR");
    tag.get("BUSNAME").filter(|net| slave && !net.is_empty())
}

/// FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
