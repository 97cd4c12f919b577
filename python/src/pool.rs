//! Equal arrays over one piece of a region: the runtime's own pool.

use crate::{buffer::Buffer, dtype::Dtype, error::raised, inner::Home, mine::Mine, region::Memory};
use contigo::{Align, Error, dlpack::Shape};
use pyo3::{prelude::*, types::PyTuple};

/// The most arrays that a pool has: the runtime's limit, by which finding a free one looks at 16
/// words at most.
const MAX_SLOTS: usize = 1024;

type Slots = contigo::Pool<'static, MAX_SLOTS>;

/// Equal arrays, carved once: a frame is taken and comes back with one atomic operation each, and
/// no search.
///
/// An array comes back when the last of its views and handles is gone, or by `freebuffer()`. The
/// memory stays the pool's until the process ends, as that of a region does.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Pool {
    memory: Mine<&'static Memory>,
    slots: &'static Slots,
    count: usize,
    shape: Shape,
    dtype: Dtype,
}

impl Pool {
    pub(crate) fn new(memory: &'static Memory, dims: &[i64], dtype: Dtype, slots: usize, align: usize) -> PyResult<Self> {
        let shape = Shape::new(dims).map_err(raised)?;
        let len_bytes = shape.len_bytes(dtype.dlpack.bytes().map_err(raised)?).map_err(raised)?;
        // Each slot begins where the first does: at a multiple of `align`, and of a line.
        let align = Align::new(align).map_err(raised)?.max(memory.region.line());
        let too_large = Error::Exhausted { need_bytes: usize::MAX, capacity_bytes: memory.region.len_bytes() };
        let slot_bytes = align.round_up(len_bytes.max(1)).ok_or(too_large).map_err(raised)?;
        let all_bytes = slot_bytes.checked_mul(slots.clamp(1, MAX_SLOTS)).ok_or(too_large).map_err(raised)?;
        let carve = memory.region.carve(all_bytes, align).map_err(raised)?;
        let slots_of = Slots::with_slots(carve, slot_bytes, slots).map_err(raised)?;
        Ok(Self { memory: Mine::new(memory), slots: Box::leak(Box::new(slots_of)), count: slots, shape, dtype })
    }
}

#[pymethods]
impl Pool {
    /// A free array. Its elements are what its last owner left. `MemoryError` where all are out.
    fn take(&self) -> PyResult<Buffer> {
        let memory = self.memory.get()?;
        let buf = self.slots.take().map_err(raised)?;
        Buffer::of(memory, buf, Home::Pool, self.shape, self.dtype)
    }

    /// Elements of each dimension of an array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape.dims())
    }

    /// The type of an element: "float32".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name
    }

    /// How many arrays are free now.
    #[getter]
    fn free(&self) -> PyResult<usize> {
        self.memory.get()?;
        Ok(self.count - self.slots.taken())
    }

    /// How many arrays there are.
    fn __len__(&self) -> usize {
        self.count
    }
}
