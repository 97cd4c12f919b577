#![allow(unsafe_code, reason = "a model of any type lies in a fixed place, and is found by what its type left behind")]
//! A model of any type as one type.

use super::{Model, SimBus};
use core::{
    cell::UnsafeCell,
    fmt,
    mem::{self, MaybeUninit},
    ptr,
};

type Bytes = [MaybeUninit<u8>; AnyModel::MAX_BYTES];

/// Where the model lies. A model may have cells, which change through a shared reference: so the
/// place is one.
#[repr(C, align(16))]
struct Place(UnsafeCell<Bytes>);

/// The methods of a [`Model`] that can be called without its type.
trait Untyped: Send {
    fn advance(&mut self, bus: &mut SimBus<'_>);
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32;
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>);
    fn irq_at_ns(&self) -> Option<u64>;
    fn reset(&mut self);
}

impl<M: Model> Untyped for M {
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        Model::advance(self, bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        Model::read32(self, offset, bus)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        Model::write32(self, offset, value, bus);
    }
    fn irq_at_ns(&self) -> Option<u64> {
        Model::irq_at_ns(self)
    }
    fn reset(&mut self) {
        Model::reset(self);
    }
}

/// **A model of any type, which it owns**, in a place of fixed size: what stands behind
/// `sim:NAME`.
pub struct AnyModel {
    place: Place,
    find: unsafe fn(*mut Bytes) -> *mut (dyn Untyped + 'static),
    window_bytes: usize,
}

impl AnyModel {
    /// The largest model: a PL330's, with eight channels that each hold data on its way.
    pub const MAX_BYTES: usize = 48 * 1024;

    /// `model`, in a fixed place. A model that is too large, or aligned to more than 16 bytes, is
    /// refused by the compiler.
    #[must_use]
    pub fn new<M: Model + 'static>(model: M) -> Self {
        const { assert!(mem::size_of::<M>() <= Self::MAX_BYTES, "AnyModel::MAX_BYTES is the largest model") };
        const { assert!(mem::align_of::<M>() <= mem::align_of::<Place>(), "16 is the largest alignment") };
        let place = Place(UnsafeCell::new([MaybeUninit::uninit(); Self::MAX_BYTES]));
        // SAFETY: the place is large enough and aligned for an `M`, and holds nothing yet.
        unsafe { place.0.get().cast::<M>().write(model) };
        Self { place, find: find::<M>, window_bytes: M::WINDOW_BYTES }
    }

    fn model(&self) -> &dyn Untyped {
        // SAFETY: `new` put a model there, `find` is of its type, and it moves with its place.
        unsafe { &*(self.find)(self.place.0.get()) }
    }

    fn model_mut(&mut self) -> &mut dyn Untyped {
        // SAFETY: as in `model`.
        unsafe { &mut *(self.find)(self.place.0.get()) }
    }
}

/// # Safety
/// `place` holds an `M`. (It is called for nothing else, and only makes a pointer.)
unsafe fn find<M: Model + 'static>(place: *mut Bytes) -> *mut (dyn Untyped + 'static) {
    place.cast::<M>()
}

impl Drop for AnyModel {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and the model is not used after it.
        unsafe { ptr::drop_in_place((self.find)(self.place.0.get())) }
    }
}

// SAFETY: what is in the place is `Send` (`Model`), and nothing else is here.
unsafe impl Send for AnyModel {}

// SAFETY: every method is the model's own.
unsafe impl Model for AnyModel {
    /// No model has more; [`window_bytes`](Model::window_bytes) has this one's.
    const WINDOW_BYTES: usize = usize::MAX;

    fn window_bytes(&self) -> usize {
        self.window_bytes
    }
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.model_mut().advance(bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.model_mut().read32(offset, bus)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        self.model_mut().write32(offset, value, bus);
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.model().irq_at_ns()
    }
    fn reset(&mut self) {
        self.model_mut().reset();
    }
}

impl fmt::Debug for AnyModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyModel").field("window_bytes", &self.window_bytes).finish_non_exhaustive()
    }
}
