//! What handles that own cost, beside the borrowed ones, in one run:
//! `cargo run --release --package contigo --example handles_cost`. Machines are noisy: the figures
//! are medians of batches that take turns, and the ratio is what counts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement stops where something is wrong")]

use contigo::{
    Align, Arena, Pool, Region, own,
    sim::{Sim, SimBoard, SimSpec},
};
use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

const SLOT: usize = 4096;
const BATCHES: usize = 61;
const CALLS: u32 = 50_000;

fn memory(board: &SimBoard) -> Sim {
    board.memory_with(SimSpec { len_bytes: 32 << 20, coherent: Some(true), ..SimSpec::default() }).unwrap()
}

/// Nanoseconds a call.
fn batch(call: &dyn Fn()) -> f64 {
    let began = Instant::now();
    (0..CALLS).for_each(|_| call());
    began.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Both in turn, while `beside` threads do the same.
fn row(name: &str, beside: usize, old: &(dyn Fn() + Sync), new: &(dyn Fn() + Sync)) {
    let measure = |call: &(dyn Fn() + Sync)| {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..beside {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        call();
                    }
                });
            }
            let figure = batch(&call);
            stop.store(true, Ordering::Relaxed);
            figure
        })
    };
    let (olds, news): (Vec<_>, Vec<_>) = (0..BATCHES).map(|_| (measure(old), measure(new))).unzip();
    let (old, new) = (median(olds), median(news));
    println!("| {name} | {old:.1} | {new:.1} | {:.2} |", new / old);
}

fn main() {
    let board = SimBoard::new(1);
    let old = Region::new(memory(&board)).unwrap();
    let new = own::Region::new(memory(&board)).unwrap();
    println!("| ns a call, median of {BATCHES} | borrowed | owning | ratio |\n|---|---|---|---|");

    let narrow = (Pool::<64>::new(old.carve(64 * SLOT, Align::LINE).unwrap(), SLOT).unwrap(), new.pool(64, SLOT).unwrap());
    let take_old = || drop(black_box(narrow.0.take().unwrap()));
    let take_new = || drop(black_box(narrow.1.take().unwrap()));
    row("take + drop of 64 slots, 1 thread", 0, &take_old, &take_new);
    row("take + drop of 64 slots, 2 threads", 1, &take_old, &take_new);

    // One word of a bitmap, where a pool that owns has 63 slots in each.
    let one_word = new.pool(63, SLOT).unwrap();
    let take_one_word = || drop(black_box(one_word.take().unwrap()));
    row("take + drop of 63 slots (borrowed: 64), 1 thread", 0, &take_old, &take_one_word);

    let wide = (Pool::<1024>::new(old.carve(1024 * SLOT, Align::LINE).unwrap(), SLOT).unwrap(), new.pool(1024, SLOT).unwrap());
    let out: (Vec<_>, Vec<_>) = (0..1000).map(|_| (wide.0.take().unwrap(), wide.1.take().unwrap())).unzip();
    let take_old = || drop(black_box(wide.0.take().unwrap()));
    let take_new = || drop(black_box(wide.1.take().unwrap()));
    row("take + drop of 1,024 slots, 1,000 out, 1 thread", 0, &take_old, &take_new);
    row("take + drop of 1,024 slots, 1,000 out, 2 threads", 1, &take_old, &take_new);
    drop(out);

    let clones = || drop(black_box(new.clone()));
    row("a handle: clone + drop (borrowed: a reference)", 0, &|| _ = black_box(&old), &clones);

    let mut buf = narrow.1.take().unwrap();
    let mut borrowed = narrow.0.take().unwrap();
    let (ptr, ptr_old) = (buf.as_mut_ptr().addr(), borrowed.as_mut_ptr().addr());
    let port = board.coherent_port();
    let at = core::ptr::without_provenance::<u8>;
    let of_old = || _ = black_box(old.dev_addr_of(&port, at(black_box(ptr_old)), 64));
    let of_new = || _ = black_box(new.dev_addr_of(&port, at(black_box(ptr)), 64));
    row("address of a pointer", 0, &of_old, &of_new);

    // An arena is for one thread, and has no lock: it is not `Sync`.
    let arena = Arena::<1024>::new(old.carve(8 << 20, Align::PAGE).unwrap()).unwrap();
    let (olds, news): (Vec<_>, Vec<_>) = (0..BATCHES)
        .map(|_| {
            let old = batch(&|| drop(black_box(arena.take(SLOT).unwrap())));
            (old, batch(&|| drop(black_box(new.alloc(SLOT, Align::LINE).unwrap()))))
        })
        .unzip();
    let (olds, news) = (median(olds), median(news));
    println!("| alloc + free of 4 KiB, 1 thread (borrowed: Arena, no lock) | {olds:.1} | {news:.1} | {:.2} |", news / olds);
    let alloc = || drop(black_box(new.alloc(SLOT, Align::LINE).unwrap()));
    row("alloc + free of 4 KiB, 2 threads (borrowed: Pool)", 1, &|| drop(black_box(wide.0.take().unwrap())), &alloc);
}
