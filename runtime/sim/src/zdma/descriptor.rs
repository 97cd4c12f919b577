//! A descriptor as the channel fetches it: from the bus, so that a missing synchronisation shows.

use super::manual as ug1087;
use crate::SimBus;
use contigo_core::types::DevAddr;

/// A source descriptor's word 3, bits 4..3: what the channel does after this descriptor.
pub(super) const COMMAND: u32 = 0b11 << 3;

/// One side's descriptor, as fetched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Descriptor {
    pub(super) addr: u64,
    /// How many of its bytes are still to be moved.
    pub(super) left: u32,
    pub(super) word3: u32,
    pub(super) next: u64,
}

impl Descriptor {
    /// Fetches a descriptor from memory. A misaligned address is an error, as is one without memory
    /// (UG1085, "Buffer Descriptor Summary"). A linear one has 16 bytes; the next follows it.
    pub(super) fn fetch(bus: &mut SimBus<'_>, at: u64) -> Option<Self> {
        const LINEAR_BYTES: u64 = 16;
        let mut raw = [0; ug1087::DESCRIPTOR_BYTES];
        let (head, tail) = raw.split_at_mut(16);
        bus.read(DevAddr(at), head).ok()?;
        let [low, high, size, word3] = words(head);
        let linked = word3 & ug1087::LINKED_LIST != 0;
        let align = if linked { ug1087::DESCRIPTOR_BYTES as u64 } else { LINEAR_BYTES };
        if !at.is_multiple_of(align) {
            return None;
        }
        let mut next = at.wrapping_add(LINEAR_BYTES);
        if linked {
            bus.read(DevAddr(next), tail).ok()?;
            let [next_low, next_high, ..] = words(tail);
            next = address(next_low, next_high);
        }
        Some(Self { addr: address(low, high), left: size & ug1087::SIZE, word3, next })
    }

    /// Returns whether the channel stops or pauses after it.
    pub(super) const fn ends(&self) -> bool {
        matches!(self.word3 & COMMAND, ug1087::CMD_STOP | ug1087::CMD_PAUSE)
    }
}

/// Four little-endian words.
fn words(bytes: &[u8]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, raw) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*raw);
    }
    words
}

/// An address of 44 bits, from two words.
pub(super) const fn address(low: u32, high: u32) -> u64 {
    ((high as u64) << 32 | low as u64) & ug1087::ADDRESS
}
