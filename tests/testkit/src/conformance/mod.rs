//! The conformance suite: what every backend must do, checked through the runtime's own front door.
//!
//! ```text
//!   Harness ── open() ──► Backend ──► Region ──► CpuBuf ──► Queue::submit ──► wait
//!      │                                                      │
//!      └── device_read(), device_write(): a bus master ◄── Xor, the smallest driver
//! ```
//!
//! A [`Harness`] opens blocks of one kind of memory, and is a bus master that sees them as a device
//! does. One list of checks ([`for_each_check`](crate::for_each_check)) runs on every harness: a
//! test for each (backend, check), so that a failure names both.
//!
//! | file | what it is |
//! |---|---|
//! | `xor.rs`, `rig.rs` | a driver with one, two or three operands; its buffers, filled and compared |
//! | `memory.rs`, `caches.rs`, `jobs.rs` | the checks |
//! | `boards.rs` | harnesses on the simulated board: its own memory, and any other backend's |
//! | `fakes.rs` | harnesses on the fakes of the kernel's interfaces |
//! | `mutant.rs` | backends with one thing wrong: each must be caught, or the suite is worth nothing |
//!
//! A new backend is one more [`Harness`] and one more line in `tests/tests/runtime/conformance.rs`.

pub mod boards;
pub mod caches;
pub mod fakes;
pub mod jobs;
pub mod memory;
pub mod mutant;
pub mod rig;
pub mod xor;

use contigo::sim::BusError;
use contigo::types::{BaseAddr, Refused};
use contigo::{Backend, DevAddr, Error, JobError, Port, Result};
use std::fmt;

/// One kind of memory, and a bus master that reaches it.
pub trait Harness: Sync {
    /// The memory's backend.
    type Backend: Backend + 'static;

    /// A new block of at least `len_bytes`, or [`Failure::Skipped`] where this machine has no such
    /// memory.
    fn open(&self, len_bytes: usize) -> Result<Self::Backend, Failure>;

    /// The master's way to it.
    fn port(&self) -> Port;

    /// The master reads memory, or gets [`BusError`] where none is.
    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError>;

    /// The master writes memory, or gets [`BusError`] where none is.
    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError>;

    /// The bytes that a logic analyser on the bus sees: no access of the master's.
    fn probe(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.device_read(addr, bytes)
    }

    /// How often the master touched bytes that were not handed over to it. `None`: nothing here
    /// counts that, and no check sees it.
    fn unowned_accesses(&self) -> Option<u64> {
        None
    }

    /// Does memory that was freed answer with [`BusError`]? A block that outlives its user
    /// (u-dma-buf's) does not.
    fn sees_freed_memory(&self) -> bool {
        true
    }
}

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It could not run here.
    Skipped(String),
    /// It ran, and the backend or the runtime is wrong.
    Wrong(String),
}

impl Failure {
    /// The same, with more before its words.
    pub fn before(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Wrong(what) => Self::Wrong(format!("{place}: {what}")),
            skipped @ Self::Skipped(_) => skipped,
        }
    }
}

/// The result of a check.
pub type Verdict<T = ()> = Result<T, Failure>;

/// One check, with its name.
pub type Check<H> = (&'static str, fn(&H) -> Verdict);

/// Ends a check with [`Failure::Wrong`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Failure::Wrong(format!($($message)+)));
        }
    };
}

/// Gives the list of all checks to another macro, after its own arguments.
#[macro_export]
macro_rules! for_each_check {
    ($($then:ident)::+ $(, $argument:tt)*) => {
        $($then)::+! {
            $($argument,)*
            [
                memory::the_mapping_is_stable_and_aligned,
                memory::segments_cover_the_block,
                memory::views_are_initialised_and_hold_still,
                memory::buffers_are_aligned_on_both_sides,
                memory::addresses_translate_both_ways,
                memory::what_came_back_is_freed,
                memory::what_was_forgotten_stays,
                caches::the_device_sees_what_the_cpu_wrote,
                caches::the_cpu_sees_what_the_device_wrote,
                caches::in_out_goes_both_ways,
                caches::ranged_reads_touch_no_neighbour,
                caches::ranged_writes_touch_no_neighbour,
                caches::partly_written_lines_keep_the_rest,
                caches::every_cut_through_a_line_keeps_the_rest,
                caches::half_a_line_can_be_read,
                jobs::three_operands,
                jobs::chaining_needs_no_sync,
                jobs::chained_buffers_change_their_part,
                jobs::a_start_that_fails_leaves_no_stale_line,
                jobs::a_thousand_jobs,
                jobs::a_forgotten_job_keeps_its_memory,
                jobs::two_threads_at_once,
            ]
        }
    };
}

/// A list of checks as values, with their names.
#[macro_export]
macro_rules! list_of_checks {
    ([$($file:ident::$check:ident,)*]) => { vec![$((stringify!($check), $crate::conformance::$file::$check::<H>)),*] };
}

/// A module of tests for each harness, and in it a test for each check.
#[macro_export]
macro_rules! conformance {
    ($($backend:ident: $harness:expr;)*) => {$(
        mod $backend {
            use super::*;
            $crate::for_each_check!($crate::one_test_a_check, { $harness });
        }
    )*};
}

/// A test for each check of the list.
#[macro_export]
macro_rules! one_test_a_check {
    ($harness:tt, [$($file:ident::$check:ident,)*]) => {$(
        #[test]
        fn $check() {
            let harness = $harness;
            let verdict = $crate::conformance::owned(&harness, $crate::conformance::$file::$check);
            $crate::conformance::report(module_path!(), stringify!($check), verdict);
        }
    )*};
}

/// All checks for one harness.
pub fn all<H: Harness>() -> Vec<Check<H>> {
    for_each_check!(list_of_checks)
}

/// Makes one check, in which the master touches only what it was handed.
pub fn owned<H: Harness>(harness: &H, check: fn(&H) -> Verdict) -> Verdict {
    check(harness)?;
    let Some(unowned) = harness.unowned_accesses() else { return Ok(()) };
    ensure!(unowned == 0, "{unowned} accesses to bytes that were not handed over");
    // One that is wrong: a count that never changes has seen nothing.
    let block = harness.open(64)?;
    harness.device_read(first_of(harness, block.mapping().base), &mut [0])?;
    let counted = harness.unowned_accesses();
    ensure!(counted == Some(1), "an access to bytes that were not handed over: {counted:?}");
    Ok(())
}

/// Where the harness's master finds the first byte of a block that begins at `base`.
fn first_of<H: Harness>(harness: &H, base: BaseAddr) -> DevAddr {
    match base {
        BaseAddr::Phys(phys) => DevAddr(phys.0.wrapping_add(harness.port().offset)),
        BaseAddr::Dev(addr) => addr,
    }
}

/// Ends a test: fails it by name, or says past the test runner's capture why it was skipped.
#[allow(clippy::panic, reason = "this is how a test fails")]
pub fn report(backend: &str, check: &str, verdict: Verdict) {
    match verdict {
        Ok(()) => {}
        Err(Failure::Skipped(why)) => crate::skipped(&format!("{backend}::{check}"), &why),
        Err(Failure::Wrong(what)) => panic!("{backend}::{check}: {what}"),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Wrong(format!("unexpected error: {error}"))
    }
}

impl<T> From<Refused<T>> for Failure {
    fn from(refused: Refused<T>) -> Self {
        refused.error.into()
    }
}

impl<T> From<JobError<T>> for Failure {
    fn from(failed: JobError<T>) -> Self {
        Self::Wrong(format!("unexpected error: {failed}"))
    }
}

impl From<BusError> for Failure {
    fn from(astray: BusError) -> Self {
        Self::Wrong(format!("no memory answers the device at {}", astray.addr))
    }
}
