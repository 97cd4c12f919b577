#![allow(unsafe_code, reason = "operands lie in an engine that has no lifetime of theirs: `Running` has it")]
//! Where the operands of an engine's job lie.

use crate::mem::Operand;
use core::{
    array,
    mem::{MaybeUninit, transmute},
};

/// The operands of the job under way. They lie here and not in [`Running`](super::Running), so that
/// a job moves them in once and out once, however often the job itself is moved.
///
/// Nothing here is dropped by itself: the operands of a job that was forgotten are leaked. Their
/// lifetime and their thread are those of the `Running` that borrows the engine, and nobody else
/// looks here.
pub(super) struct JobPlace<const OPERANDS: usize>([MaybeUninit<Operand<'static>>; OPERANDS]);

impl<const OPERANDS: usize> JobPlace<OPERANDS> {
    /// Nothing is there.
    pub(super) const fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; OPERANDS])
    }

    /// The operands of the next job. Those of a forgotten one stay leaked.
    #[inline]
    pub(super) fn put<'p, T>(&mut self, operands: [Operand<'p, T>; OPERANDS]) {
        // SAFETY: the place is as large and as aligned as it must be. An operand has one layout for
        // every lifetime and every `T` (`repr(C)`, and the `T` is a marker without bytes).
        unsafe { self.0.as_mut_ptr().cast::<[Operand<'p, T>; OPERANDS]>().write(operands) }
    }

    /// The operands.
    ///
    /// # Safety
    /// `put` put operands of this `'p` and `T` here, and they were not taken.
    #[inline]
    pub(super) const unsafe fn operands<'p, T>(&self) -> &[Operand<'p, T>; OPERANDS] {
        // SAFETY: the caller's promise; the layout as in `put`.
        unsafe { transmute::<&[MaybeUninit<Operand<'static>>; OPERANDS], &[Operand<'p, T>; OPERANDS]>(&self.0) }
    }

    /// The operands, to change them where they lie.
    ///
    /// # Safety
    /// As [`operands`](Self::operands).
    #[inline]
    pub(super) const unsafe fn operands_mut<'p, T>(&mut self) -> &mut [Operand<'p, T>; OPERANDS] {
        // SAFETY: the caller's promise; the layout as in `put`.
        unsafe { transmute::<&mut [MaybeUninit<Operand<'static>>; OPERANDS], &mut [Operand<'p, T>; OPERANDS]>(&mut self.0) }
    }

    /// The values that `each` makes of the operands. They are not here any more.
    ///
    /// # Safety
    /// As [`operands`](Self::operands).
    #[inline]
    pub(super) unsafe fn take<'p, T, B>(&mut self, each: impl Fn(Operand<'p, T>) -> B) -> [B; OPERANDS] {
        let operands = self.0.as_ptr().cast::<Operand<'p, T>>();
        // SAFETY: the caller's promise: each is read once, and `at` is below `OPERANDS`.
        array::from_fn(|at| each(unsafe { operands.add(at).read() }))
    }
}
