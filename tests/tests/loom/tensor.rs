//! Every interleaving of a tensor's slot, by the model checker loom: who lends, and the deleter on
//! another thread. The runtime's own source file is built here, with loom's atomics under it.
//!
//! Loom cells stand for the buffer's bytes and the tensor's fields. They fail when two threads are
//! in them at once. They also fail when one enters without having seen the other's writes, as with
//! a weakened `Acquire` or `Release`.

#[path = "../../../runtime/core/src/dlpack/slot.rs"]
mod slot;

use crate::check;
use crate::types::atomic::AtomicUsize;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use slot::{Deleted, FREE, Slot};

struct Tensor {
    slot: Slot,
    fields: UnsafeCell<u32>,
    bytes: UnsafeCell<u32>,
    /// What a holder that goes leaves to the deleter.
    left: UnsafeCell<u32>,
}

impl Tensor {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slot: Slot(AtomicUsize::new(FREE)),
            fields: UnsafeCell::new(0),
            bytes: UnsafeCell::new(0),
            left: UnsafeCell::new(0),
        })
    }

    /// As `TensorTable::lend` and `Lent::tensor`: which turn it is.
    fn lend(&self) -> usize {
        assert!(self.slot.claim());
        self.give_out()
    }

    fn give_out(&self) -> usize {
        let turn = self.slot.next_turn().unwrap();
        self.write_fields();
        self.slot.give_out(turn);
        assert_eq!(self.slot.next_turn(), None, "it is out");
        turn
    }

    fn write_fields(&self) {
        self.fields.with_mut(|_| ());
    }

    fn write_bytes(&self) {
        self.bytes.with_mut(|_| ());
    }

    /// A loan whose tensor is never given out.
    fn hold(&self) {
        if self.slot.claim() {
            self.write_fields();
            self.slot.free();
        }
    }

    /// As `Lent::drop`: what is left is the deleter's, or the tensor came back just now.
    fn go(&self) {
        if self.slot.is_out() {
            self.left.with_mut(|_| ());
            if self.slot.abandon() {
                return;
            }
            self.left.with_mut(|_| ());
        }
        self.write_bytes();
        self.slot.free();
    }

    /// A consumer: reads the fields, writes the bytes, calls the deleter.
    fn consume(&self, turn: usize) -> Deleted {
        self.fields.with(|_| ());
        self.write_bytes();
        self.delete(turn)
    }

    /// The deleter, as `Entry::deleted`.
    fn delete(&self, turn: usize) -> Deleted {
        let was = self.slot.deleted(turn);
        if was == Deleted::Last {
            self.left.with_mut(|_| ());
            self.slot.free();
            // The bytes are freed here: this deleter is the last user.
            self.write_bytes();
        }
        was
    }
}

/// Does `act` on another thread.
fn beside<T: 'static>(
    tensor: &Arc<Tensor>,
    act: impl FnOnce(&Tensor) -> T + 'static,
) -> thread::JoinHandle<T> {
    let tensor = Arc::clone(tensor);
    thread::spawn(move || act(&tensor))
}

/// The consumer of a loan, on another thread.
fn consumer(tensor: &Arc<Tensor>, turn: usize) -> thread::JoinHandle<()> {
    beside(tensor, move |tensor| assert_ne!(tensor.consume(turn), Deleted::Twice))
}

type Calls = [thread::JoinHandle<Deleted>; 2];

/// Two calls of a deleter, each on a thread.
fn two(tensor: &Arc<Tensor>, delete: fn(&Tensor, usize) -> Deleted, turn: usize) -> Calls {
    [(); 2].map(|()| beside(tensor, move |tensor| delete(tensor, turn)))
}

/// How many of them were not one too many.
fn counted(calls: Calls) -> usize {
    calls.into_iter().map(|call| usize::from(call.join().unwrap() != Deleted::Twice)).sum()
}

#[test]
fn buffer_returns_with_consumers_changes() {
    check(None, || {
        let tensor = Tensor::new();
        tensor.write_bytes();
        let turn = tensor.lend();
        let consumer = consumer(&tensor, turn);
        // As a program that looks now and then, and at last waits.
        let early = !tensor.slot.is_out();
        if early {
            tensor.write_bytes();
        }
        consumer.join().unwrap();
        assert!(!tensor.slot.is_out());
        tensor.write_bytes();
        // Given out anew, without being lent anew.
        let turn = tensor.give_out();
        assert_eq!(tensor.consume(turn), Deleted::Back);
        tensor.slot.free();
        assert!(tensor.slot.claim());
    });
}

#[test]
fn leaving_holder_and_deleter_free_once() {
    check(None, || {
        let tensor = Tensor::new();
        let turn = tensor.lend();
        let consumer = consumer(&tensor, turn);
        tensor.go();
        consumer.join().unwrap();
        assert!(tensor.slot.is_free(), "the last one freed it");
        assert_eq!(tensor.slot.deleted(turn), Deleted::Twice, "no holder and no consumer has it");
    });
}

#[test]
fn freed_slot_and_fields_go_to_next_thread() {
    check(None, || {
        let tensor = Tensor::new();
        let turn = tensor.lend();
        // The holder goes first: then the deleter frees the slot, on its own thread.
        tensor.go();
        let consumer = consumer(&tensor, turn);
        tensor.hold();
        consumer.join().unwrap();
    });
}

#[test]
fn two_calls_of_the_deleter_are_one() {
    check(None, || {
        let tensor = Tensor::new();
        let turn = tensor.lend();
        let calls = two(&tensor, |tensor, turn| tensor.slot.deleted(turn), turn);
        assert_eq!((counted(calls), tensor.slot.is_out()), (1, false));
    });
}

#[test]
fn of_two_deleters_one_frees_what_a_holder_left() {
    check(None, || {
        let tensor = Tensor::new();
        let turn = tensor.lend();
        let calls = two(&tensor, Tensor::delete, turn);
        tensor.go();
        assert_eq!((counted(calls), tensor.slot.is_free()), (1, true));
    });
}

#[test]
fn earlier_deleters_do_not_end_the_next_loan() {
    check(None, || {
        let tensor = Tensor::new();
        let earlier = tensor.lend();
        let calls = two(&tensor, |tensor, turn| tensor.slot.deleted(turn), earlier);
        // As a program that looks once: where it is back, it is lent anew, or given out anew.
        let later = (!tensor.slot.is_out()).then(|| tensor.give_out());
        assert_eq!(counted(calls), 1);
        if let Some(later) = later {
            assert!(tensor.slot.is_out() && tensor.consume(later) == Deleted::Back);
        }
    });
}

#[test]
fn holder_freed_slot_is_the_next_threads() {
    check(None, || {
        let tensor = Tensor::new();
        let other = beside(&tensor, Tensor::hold);
        tensor.hold();
        other.join().unwrap();
    });
}
