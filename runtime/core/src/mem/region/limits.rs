//! The limits of a region, and where the parts of a control block lie. Arithmetic only: no memory
//! is touched here, and all of it can be done by the compiler.

use super::{
    control::Control,
    memory::wherever,
    pool_state::PoolState,
    slots::{WORD_SLOTS, words_for},
};
use crate::{
    mem::{
        region::bitmap::WORD_BITS,
        region::tlsf::{MAX_BLOCKS, Node, Tlsf},
    },
    types::{Error, Result, atomic::AtomicUsize},
};
use core::alloc::Layout;

/// `?`, which the compiler itself cannot run yet.
macro_rules! tri {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}

/// A cache line: what every control block is aligned to, and each part of one that is written
/// often.
pub(super) const LINE: usize = 64;
/// Pages have at least this many bytes. A backend that wants more has no place in them.
const PAGE: usize = 4096;
/// The most slots of one pool. More than any program's; and few enough that a token fits into 32
/// bits, and that no count of slots comes near [`usize::MAX`] on a processor of 32 bits.
const MAX_SLOTS: usize = 1 << 20;

/// How much a region keeps account of. You set it once, when the region is opened, because it
/// decides how large the region's control block is. A refusal names the limit that was reached
/// ([`Error::TooMany`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Limits {
    /// How many buffers of [`Region::alloc`](super::Region::alloc) and pools there can be at once,
    /// together: 1 to 16,384. Each is 17 bytes of the control block.
    pub allocations: usize,
}

impl Default for Limits {
    /// 1,024 allocations: about 20 KiB.
    fn default() -> Self {
        Self { allocations: 1024 }
    }
}

impl Limits {
    /// How many bytes [`Region::with_memory`](super::Region::with_memory) needs for a backend of
    /// the type `B`, wherever they begin. The compiler can work it out, for a static.
    ///
    /// ```
    /// use contigo::{Limits, sim::Sim};
    /// use core::mem::MaybeUninit;
    ///
    /// const LIMITS: Limits = Limits { allocations: 16 };
    /// const BYTES: usize = match LIMITS.control_bytes::<Sim>() {
    ///     Ok(bytes) => bytes,
    ///     Err(_) => panic!("a limit is out of range"),
    /// };
    /// static mut MEMORY: [MaybeUninit<u8>; BYTES] = [MaybeUninit::uninit(); BYTES];
    /// assert!(BYTES < Limits::default().control_bytes::<Sim>()?);
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`]: the limit is 0, or more than there can be; or `B` is aligned to more
    /// than 4,096 bytes.
    pub const fn control_bytes<B>(&self) -> Result<usize> {
        Ok(wherever(tri!(Plan::new::<B>(*self)).layout))
    }
}

/// Where each part of a region's control block begins, in bytes from the beginning of it.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) limits: Limits,
    pub(super) table: usize,
    pub(super) returned: usize,
    pub(super) parts: usize,
    pub(super) backend: usize,
    pub(super) layout: Layout,
}

impl Plan {
    pub(super) const fn new<B>(limits: Limits) -> Result<Self> {
        tri!(within("allocations", limits.allocations, MAX_BLOCKS));
        tri!(within("the alignment of the backend", align_of::<B>(), PAGE));
        // No sum overflows: a type has at most `isize::MAX` bytes, and all others are bounded.
        let align = if align_of::<B>() > LINE { align_of::<B>() } else { LINE };
        let mut end = size_of::<Control>();
        let table = put(
            &mut end,
            LINE,
            size_of::<Tlsf<[Node; 0]>>() + limits.allocations * size_of::<Node>(),
        );
        let returned =
            put(&mut end, LINE, limits.allocations.div_ceil(WORD_BITS) * size_of::<AtomicUsize>());
        let parts = put(&mut end, LINE, limits.allocations);
        let backend = put(&mut end, align, size_of::<B>());
        Ok(Self { limits, table, returned, parts, backend, layout: tri!(layout(end, align)) })
    }
}

/// Where each part of a pool's control block begins, in bytes from the beginning of it.
#[derive(Clone, Copy)]
pub(super) struct PoolPlan {
    pub(super) slots: usize,
    pub(super) words: usize,
    pub(super) parts: usize,
    pub(super) layout: Layout,
}

impl PoolPlan {
    pub(super) const fn new(slots: usize) -> Result<Self> {
        tri!(within("slots", slots, MAX_SLOTS));
        let mut end = size_of::<PoolState>();
        let words = put(&mut end, LINE, words_for(slots) * size_of::<AtomicUsize>());
        let parts = put(&mut end, LINE, words_for(slots) * WORD_BITS);
        Ok(Self { slots, words, parts, layout: tri!(layout(end, LINE)) })
    }
}

/// As [`Limits::control_bytes`], of a pool.
pub(super) const fn pool_control_bytes(slots: usize) -> Result<usize> {
    Ok(wherever(tri!(PoolPlan::new(slots)).layout))
}

const fn within(name: &'static str, value: usize, max: usize) -> Result<()> {
    if value == 0 || value > max {
        return Err(Error::Argument {
            name,
            value: value as u64,
            min: 1,
            max: max as u64,
            multiple_of: 1,
        });
    }
    Ok(())
}

/// Puts a part behind what is laid out already, up to `end`. Returns where the part begins.
const fn put(end: &mut usize, align: usize, size_bytes: usize) -> usize {
    let start = end.next_multiple_of(align);
    *end = start + size_bytes;
    start
}

const fn layout(size_bytes: usize, align: usize) -> Result<Layout> {
    match Layout::from_size_align(size_bytes, align) {
        Ok(layout) => Ok(layout),
        Err(_) => {
            Err(Error::Exhausted { need_bytes: size_bytes, capacity_bytes: isize::MAX as usize })
        }
    }
}

const _: () = assert!(
    align_of::<Control>() == LINE
        && align_of::<PoolState>() == LINE
        && align_of::<Tlsf<[Node; 0]>>() <= LINE
);
// A token is the number of a bit: of these, one in each word stands for no slot.
const _: () = assert!(MAX_SLOTS.div_ceil(WORD_SLOTS) * WORD_BITS < u32::MAX as usize);
