//! Bytes, taken as a tensor and imported: what the fuzz target and the tests run.
//!
//! ```text
//!   bytes ──► Case ──► Theirs, a framework's tensor ──► Foreign ──► Imported ──► the deleter: once
//!              │  └──► Lent, one of ours ─────────────────┘             │
//!              └─────► Verdict: what the rules say ◄──── compared ──────┘
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `case.rs` | which byte is which field |
//! | `theirs.rs` | the framework: exact arrays, freed by the deleter, whose calls are counted |
//! | `model.rs` | the rules, in 128 bits, with only names of the runtime |
//! | `rig.rs` | a region, and the import of one case |
//! | `seeds.rs` | the cases that were written by hand, by name |
//!
//! Which of several broken rules a tensor is refused by is the runtime's choice; that it is one of
//! them, with its numbers, is checked.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a check that panics is a check that failed, which is the purpose; bits are read as \
        other numbers"
)]

mod case;
mod model;
mod rig;
mod seeds;
mod theirs;

pub use case::{Case, origin, switch};
pub use rig::{Outcome, Rig};
pub use seeds::{Seed, Want, seeds};
