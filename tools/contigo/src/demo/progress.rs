//! A progress bar for runs of more than a second, on a thread of its own: what it allocates is not
//! the run's.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// A run that is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks at the count.
const STEP: Duration = Duration::from_millis(100);

/// Runs `work` on this thread; where standard error is a terminal, another thread shows how far
/// `done` is on the way to `of`. Threads are started before `work` begins and waited for after it
/// has ended.
pub(crate) fn beside<R>(done: &AtomicUsize, of: usize, work: impl FnOnce() -> R) -> R {
    if !io::stderr().is_terminal() {
        return work();
    }
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let bar = scope.spawn(|| show(done, of, &finished));
        let result = work();
        finished.store(true, Ordering::Release);
        bar.thread().unpark();
        result
    })
}

fn show(done: &AtomicUsize, of: usize, finished: &AtomicBool) {
    let begun = Instant::now();
    let mut bar = None;
    while !finished.load(Ordering::Acquire) {
        if begun.elapsed() >= PATIENCE {
            let bar = bar.get_or_insert_with(|| new_bar(of));
            bar.set_position(done.load(Ordering::Relaxed) as u64);
        }
        thread::park_timeout(STEP);
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn new_bar(of: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(of as u64), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{bar:40} {pos} of {len} images, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
