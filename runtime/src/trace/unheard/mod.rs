#![allow(unsafe_code, reason = "functions that the linker finds by their names")]
//! A logger that says nothing, for a program that has none: it would not be linked.
//!
//! `defmt` calls symbols that a logger defines. The text `libcontigo_unheard.so` beside this file
//! tells the linker to use the functions here where nobody does; `.a` is the same for static
//! programs. `build.rs` adds it.

/// An event begins or ends, or has to be flushed.
#[unsafe(no_mangle)]
fn contigo_unheard_acquire() {}

/// A part of an event.
#[unsafe(no_mangle)]
fn contigo_unheard_write(_part: &[u8]) {}

/// The time of an event: none.
#[unsafe(no_mangle)]
fn contigo_unheard_timestamp(_into: defmt::Formatter<'_>) {}
