#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "a driver's functions, for tests; a test that panics has failed"
)]
//! A hostile driver: it computes nothing, says what a test asks for, and sees what is done to it.
//! Each thread has its own.

use ash::vk;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

/// The driver's answers, and all that it has seen.
#[derive(Default)]
pub(super) struct State {
    /// The objects that there are, by their kind and number.
    pub(super) live: BTreeSet<(&'static str, u64)>,
    made: u64,
    asked: BTreeMap<&'static str, u32>,
    /// This call, counted from 1, has this answer.
    pub(super) failing: Option<(&'static str, u32, vk::Result)>,
    /// The answer of a fence that is in the queue.
    pub(super) fences: vk::Result,
    pub(super) pending: BTreeSet<u64>,
    /// Bytes beyond its own that a buffer needs.
    pub(super) more_bytes: u64,
    /// The dma-bufs that the driver owns, by their memory's number.
    pub(super) fds: BTreeMap<u64, OwnedFd>,
    pub(super) commands: Vec<Command>,
    /// The things that were done and that no program may do.
    pub(super) wrong: Vec<String>,
}

/// A command that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// From these stages to those.
    Barrier([u32; 2], Vec<Range>),
    Push(Vec<u8>),
    Dispatch([u32; 3]),
    Submit,
}

/// A buffer's part in a barrier: accesses, queue families, offset and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) accesses: [u32; 2],
    pub(super) families: (u32, u32),
    pub(super) at: (u64, u64),
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Asks or changes this thread's driver.
pub(super) fn state<T>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(act)
}

/// The kinds of the objects that there are.
pub(super) fn live() -> Vec<&'static str> {
    state(|state| state.live.iter().map(|(kind, _)| *kind).collect())
}

/// Counts a call, and answers as the test asked for.
pub(super) fn asked(call: &'static str) -> vk::Result {
    state(|state| {
        let count = state.asked.entry(call).or_default();
        *count += 1;
        match state.failing {
            Some((failing, at, answer)) if failing == call && at == *count => answer,
            _ => vk::Result::SUCCESS,
        }
    })
}

pub(super) fn made(kind: &'static str) -> u64 {
    state(|state| {
        state.made += 1;
        state.live.insert((kind, state.made));
        state.made
    })
}

pub(super) fn gone(kind: &'static str, raw: u64) {
    state(|state| {
        if raw != 0 && !state.live.remove(&(kind, raw)) {
            state.wrong.push(format!("{kind} {raw} was destroyed, and is none"));
        }
        if !state.pending.is_empty() {
            state.wrong.push(format!("{kind} {raw} was destroyed under a job"));
        }
    });
}
