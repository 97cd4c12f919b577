//! Every interleaving of the lock-free parts, by the model checker loom. The source files of the
//! runtime and of `bindings/objects` are built here, with loom's atomics under them.
#![cfg(target_pointer_width = "64")] // loom itself builds nowhere else
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::undocumented_unsafe_blocks,
    reason = "a test that panics has failed, which is its purpose; the model checker says whether \
        an access is allowed"
)]

mod interrupt;
mod objects;
mod own;
mod tensor;

use contigo_objects::{Kind, Refusal};
use contigo_testkit::{emulated, rounds};
use loom::model::Builder;

/// Three threads with no bound on preemptions take minutes; almost every known race needs two
/// (Musuvathi and Qadeer, PLDI 2007). All rounds have one more.
fn preemptions() -> usize {
    if rounds(10) == 10 { 3 } else { 2 }
}

fn check(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    if emulated::finds_no_more("a model has every processor's interleavings") {
        return;
    }
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// In the place of the processor's, for `bindings/objects`.
mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

/// In the place of the runtime's `mem`.
mod mem {
    pub(crate) mod region {
        pub(crate) use crate::own::{bitmap, parts};
    }
}

/// In the place of the runtime's `types`.
mod types {
    pub(crate) use contigo::{Error, Result};
    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::{
            AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering,
        };
    }
    /// futex(2): to a thread that wakes others, the comparison and the sleep are one step.
    pub(crate) mod platform {
        use super::atomic::{AtomicU32, Ordering};
        use loom::sync::{Condvar, Mutex};

        loom::lazy_static! {
            static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
        }

        pub(crate) fn sleep_while(word: &AtomicU32, is: u32, _timeout_us: u32) {
            let asleep = SLEEPERS.0.lock().unwrap();
            if word.load(Ordering::Acquire) == is {
                drop(SLEEPERS.1.wait(asleep).unwrap());
            }
        }

        pub(crate) fn wake_all(_word: &AtomicU32) {
            let _asleep = SLEEPERS.0.lock().unwrap();
            SLEEPERS.1.notify_all();
        }
    }
}
