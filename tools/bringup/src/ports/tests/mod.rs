//! The fields of the ports, on registers in memory.

mod facts;
mod prepare;
mod tree;

use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

type Outcome = Result<(), Box<dyn Error>>;

/// Registers in memory. One of them ignores writes, and one does not answer.
#[derive(Default)]
struct Fake {
    stuck: Option<u64>,
    values: RefCell<BTreeMap<u64, u32>>,
    read: RefCell<Vec<u64>>,
    keeps: Option<u64>,
}

impl Registers for Fake {
    fn read(&self, addr: u64) -> Result<u32, AccessError> {
        self.read.borrow_mut().push(addr);
        if self.stuck == Some(addr) {
            return Err(AccessError::NoAnswer { addr });
        }
        self.values.borrow().get(&addr).copied().ok_or(AccessError::Bus { addr })
    }

    fn write(&self, addr: u64, value: u32) -> Result<(), AccessError> {
        if self.keeps != Some(addr) {
            self.values.borrow_mut().insert(addr, value);
        }
        Ok(())
    }
}

impl Fake {
    /// All registers read 0, as after a boot without a bitstream; the SLCR is unlocked.
    fn zeros(family: Family) -> Self {
        let fake = Self::default();
        fake.values.borrow_mut().extend(fields(family).iter().map(|field| (field.addr, 0)));
        fake.values.borrow_mut().extend([(0xf800_000c, 0), (0xfd1a_0100, 0), (0xff5e_023c, 0)]);
        fake
    }

    fn set(&self, addr: u64, value: u32) {
        self.values.borrow_mut().insert(addr, value);
    }

    fn get(&self, addr: u64) -> Option<u32> {
        self.values.borrow().get(&addr).copied()
    }
}

fn named<'a>(facts: &'a [Fact], name: &str) -> Result<&'a Fact, String> {
    facts.iter().find(|fact| fact.field.name == name).ok_or_else(|| format!("no {name}"))
}

/// A bitstream runs, and the tree names no core.
fn running(design: Option<Parameters<'_>>) -> Known<'_> {
    Known { design, running: true, ..Known::default() }
}

/// A design with every HP port of Zynq-7000.
fn every_port(name: &str) -> Option<u64> {
    name.starts_with("PCW_USE_S_AXI_HP").then_some(1)
}

fn no_machine() -> Machine {
    Machine::copy("/nowhere")
}
