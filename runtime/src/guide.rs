//! Pages for people: how to write a driver, and how a program holds what it opened.
//!
//! Imports: nothing.

#[doc = include_str!("../guide/write-a-driver.md")]
pub mod write_a_driver {}

#[doc = include_str!("../guide/one-struct.md")]
pub mod one_struct {}

#[doc = include_str!("../guide/threads.md")]
pub mod threads {}

#[doc = include_str!("../guide/event-loop.md")]
pub mod event_loop {}
