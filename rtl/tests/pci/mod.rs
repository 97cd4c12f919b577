//! A card and a core behind `contigo-pci`, with this test in QEMU's place: registers, memory, the
//! interrupt, what must not be reached, and what breaks a rule.
#![allow(clippy::cast_possible_truncation, reason = "registers are 32 bits")]

mod card;
mod gates;
mod machine;
mod server;
