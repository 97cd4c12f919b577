//! The heap that counts what it is asked for: the proof behind `heap allocations: 0`.

use contigo_testkit::exercise::CountingHeap;
pub(crate) use contigo_testkit::exercise::{is_counting, on_this_thread};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn every_way_to_ask_the_heap_is_counted() {
        assert!(is_counting());
        let before = on_this_thread();
        let mut bytes: Vec<u8> = black_box(Vec::with_capacity(8));
        let zeroed = black_box(vec![0_u8; 64]);
        bytes.extend_from_slice(&zeroed);
        assert_eq!(on_this_thread() - before, 3, "one plain, one zeroed, one grown");
    }

    #[test]
    fn another_thread_has_its_own_count() {
        let before = on_this_thread();
        let there = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let before = on_this_thread();
                drop(black_box(vec![1_u8; 1000]));
                on_this_thread() - before
            });
            worker.join().unwrap_or_default()
        });
        assert_eq!(there, 1);
        let here = on_this_thread();
        drop(black_box(vec![1_u8; 1000]));
        assert_eq!(on_this_thread() - here, 1);
        assert!(here > before, "starting a thread allocates on the thread that starts it");
    }
}
