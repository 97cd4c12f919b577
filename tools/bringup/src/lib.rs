//! Bring-up of a board, from power-on to the first job: for the tool `contigo`, and for Python.
//!
//! - [`bitstream`] reads a file that configures a fabric, and returns its facts or one typed error.
//!   It knows no machine.
//! - [`known`] finds a machine's board; [`board`] adds what is loaded and running.
//! - [`mod@file`] reads a file that the caller names, whole and bounded.
//! - [`machine`] is a machine's files: of this machine, or of a copy, which is only read.
//! - [`power`] reads the rails that a board measures, and the energy of a piece of work.
//! - [`clocks`] reads the kernel's clocks, compares them with a design, and sets one.
//! - [`resets`] pulses a core's reset line: any pin of embedded-hal's, a GPIO, or a contigo
//!   device's.
//! - [`fpga`] loads a bitstream by the way that the kernel offers, and waits for the end. It
//!   refuses a file for another device and a fabric in use.
//! - [`ports`] reads the registers around the fabric's ports, and sets what is safe to set.
//! - [`doctor`] reads a machine, and reports what keeps DMA from working on it.
//!
//! It needs `std` and Linux. The runtime does not depend on it, and it is never in firmware.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make the files"))]

pub mod bitstream;
pub mod board;
pub mod clocks;
pub mod doctor;
pub mod file;
pub mod fpga;
pub mod known;
pub mod machine;
mod plain;
pub mod ports;
pub mod power;
pub mod resets;
mod tree;

pub use plain::plain;
