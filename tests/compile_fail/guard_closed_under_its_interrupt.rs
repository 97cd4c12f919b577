// error: E0505
// A guard cannot go while somebody waits for its interrupt.
use contigo::{Guard, Wait};

fn gone(guard: Guard) {
    let irq = guard.irq(0).unwrap();
    drop(guard);
    let _ = irq.wait_at_most(0);
}

fn main() {}
