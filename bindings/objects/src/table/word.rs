//! The users of an entry: one atomic word, with the entry's life and its state.
//!
//! ```text
//!            claim                 drop                      lease
//!   FREE ────────────► CALL ────────────────► LIVE, 0 users ───────► LIVE, n users
//!    ▲                 ▲  │ value given up        │  ▲                   │ drop
//!    └─────────────────│──┘ ◄─────────────────────┘  └───────────────────┘
//!                      │      lock, hold
//!                      ├──────► JOB               a job has it, until its end is taken
//!                      └──────► KEPT ─────► LIVE   a free slot of a pool: taking it fills it
//! ```
//!
//! Nothing waits here: a call that meets another thread's use is refused, so that no thread is held
//! up by one of lower priority.
//!
//! The word knows no value, so that the model checker can run every interleaving of it.

use crate::atomic::{AtomicU64, Ordering};
use crate::{Kind, Refusal};

/// Bits of the generation, in a handle and in the word. An entry that is reused a million times a
/// second has a new generation each time for 8 years. An entry whose generations are used up is
/// never used again.
pub(crate) const GENERATION_BITS: u32 = 48;
/// The largest generation.
pub const GENERATION_MAX: u64 = (1 << GENERATION_BITS) - 1;

/// The lower bits of the word are the state, the others the generation.
const STATE_BITS: u32 = u64::BITS - GENERATION_BITS;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;

/// Free, and without a value.
pub(crate) const FREE: u64 = 0;
/// One call has it exclusively.
const CALL: u64 = 1;
/// A job has it.
pub(crate) const JOB: u64 = 2;
/// It has no value, and is kept for a pool's slot that is not in use.
pub(crate) const KEPT: u64 = 4;
/// It has a handle. The number of users is added to it: at most [`USERS_MAX`].
pub(crate) const LIVE: u64 = 5;

/// The most users at once.
pub(crate) const USERS_MAX: u64 = STATE_MASK - LIVE;

/// Attempts to change the word while other threads change it. Each failure means that another
/// thread succeeded. After so many failures in a row the call is refused instead of waiting.
const ATTEMPTS: u32 = 1_000;

/// The word. All bits 0 means free and never used.
#[derive(Debug)]
pub(crate) struct Word(pub(crate) AtomicU64);

/// The word of a generation and a state.
pub(crate) const fn bits(generation: u64, state: u64) -> u64 {
    generation << STATE_BITS | state
}

impl Word {
    /// The generation of its life.
    pub(crate) fn generation(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> STATE_BITS
    }

    /// The generation of its next life; `None`: all are used up.
    pub(crate) fn next_generation(&self) -> Option<u64> {
        Some(self.generation() + 1).filter(|next| *next <= GENERATION_MAX)
    }

    /// Goes from free to locked by one call, in a new life, and returns its generation. No handle
    /// that was ever given out has it.
    pub(crate) fn claim(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Relaxed);
        let generation = (word >> STATE_BITS) + 1;
        if word & STATE_MASK != FREE || generation > GENERATION_MAX {
            return None;
        }
        // Acquire: the accesses of the entry's last user are complete.
        let claimed = self.0.compare_exchange(
            word,
            bits(generation, CALL),
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        claimed.ok().map(|_| generation)
    }

    /// Goes from live, with no users, to locked by one call.
    #[inline]
    pub(crate) fn alone(&self, kind: Kind, generation: u64) -> Result<(), Refusal> {
        for _ in 0..ATTEMPTS {
            let word = self.0.load(Ordering::Relaxed);
            match users(word, kind, generation)? {
                0 => {}
                users => return Err(Refusal::StillUsed { kind, users }),
            }
            // Acquire: the accesses of the entry's last user are complete.
            if self
                .0
                .compare_exchange_weak(
                    word,
                    bits(generation, CALL),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
            {
                return Ok(());
            }
        }
        Err(Refusal::InCall { kind })
    }

    /// Goes from locked, a job's, or kept, to `state`.
    #[inline]
    pub(crate) fn leave(&self, generation: u64, state: u64) {
        // Release: the accesses of its user are complete.
        self.0.store(bits(generation, state), Ordering::Release);
    }

    /// Adds a user of a live entry.
    pub(crate) fn lease(&self, kind: Kind, generation: u64) -> Result<(), Refusal> {
        for _ in 0..ATTEMPTS {
            let word = self.0.load(Ordering::Relaxed);
            let users = users(word, kind, generation)?;
            if users == USERS_MAX {
                return Err(Refusal::StillUsed { kind, users });
            }
            // Acquire: the accesses of the entry's last user are complete.
            if self
                .0
                .compare_exchange_weak(word, word + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(());
            }
        }
        Err(Refusal::InCall { kind })
    }

    /// Removes a user.
    pub(crate) fn end_lease(&self) {
        // Release: this user's accesses are complete before another locks the entry.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The number of users of a live entry of this generation, or the refusal for its other state.
#[inline]
const fn users(word: u64, kind: Kind, generation: u64) -> Result<u64, Refusal> {
    if word >> STATE_BITS != generation {
        return Err(Refusal::Stale { kind });
    }
    match word & STATE_MASK {
        FREE | KEPT => Err(Refusal::Stale { kind }),
        CALL => Err(Refusal::InCall { kind }),
        JOB => Err(Refusal::InJob),
        live => Ok(live - LIVE),
    }
}
