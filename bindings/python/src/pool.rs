//! Equal arrays over one piece of a region: the runtime's own pool.

use crate::{buffer::Buffer, dtype::Dtype, error::raised, mine::Mine, region::Memory};
use contigo::{Align, Error, dlpack::Shape};
use pyo3::{prelude::*, types::PyTuple};
use std::sync::Arc;

/// The most arrays that a pool has: finding a free one looks at 17 words at most.
const MAX_SLOTS: usize = 1024;

/// Equal arrays, carved once: a frame is taken and comes back with one atomic operation each, and
/// no search.
///
/// An array comes back when the last of its views and handles is gone, or by `freebuffer()`. The
/// memory is the region's again when the pool and all of its arrays are gone.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Pool {
    memory: Arc<Memory>,
    slots: Mine<contigo::Pool>,
    count: usize,
    /// Where an array begins in its slot, in bytes.
    skip: usize,
    shape: Shape,
    dtype: Dtype,
}

impl Pool {
    pub(crate) fn new(
        memory: &Arc<Memory>,
        dims: &[i64],
        dtype: Dtype,
        slots: usize,
        align: usize,
    ) -> PyResult<Self> {
        let region = memory.region()?;
        let shape = Shape::new(dims).map_err(raised)?;
        let len_bytes = shape.len_bytes(dtype.dlpack.bytes().map_err(raised)?).map_err(raised)?;
        if !(1..=MAX_SLOTS).contains(&slots) {
            let (value, max) = (slots as u64, MAX_SLOTS as u64);
            return Err(raised(Error::Argument {
                name: "slots",
                value,
                min: 1,
                max,
                multiple_of: 1,
            })
            .into());
        }
        // Each slot begins where the first does: at a multiple of `align`, and of a line.
        let align = Align::new(align).map_err(raised)?.max(region.line());
        // The runtime aligns the first one as DLPack wants. Where that is not enough, a slot has
        // room to begin the array later.
        let room = if align > Align::DLPACK { align.bytes() } else { 0 };
        let slot_bytes = len_bytes.max(1).checked_add(room).and_then(|bytes| align.round_up(bytes));
        let slot_bytes = slot_bytes.ok_or_else(|| {
            raised(Error::Exhausted { need_bytes: usize::MAX, capacity_bytes: region.len_bytes() })
        })?;
        let pool = region.pool(slots, slot_bytes).map_err(raised)?;
        let first = pool.take().map(|mut buf| buf.as_mut_ptr().addr()).map_err(raised)?;
        let skip = first.next_multiple_of(align.bytes()) - first;
        if skip > room {
            return Err(raised(Error::Exhausted {
                need_bytes: slot_bytes * slots + skip,
                capacity_bytes: region.len_bytes(),
            })
            .into());
        }
        Ok(Self {
            memory: Arc::clone(memory),
            slots: Mine::new(pool),
            count: slots,
            skip,
            shape,
            dtype,
        })
    }
}

#[pymethods]
impl Pool {
    /// A free array. Its elements are what its last owner left. `MemoryError` where all are out.
    fn take(&self) -> PyResult<Buffer> {
        let buf = self.slots.get()?.take().map_err(raised)?;
        let buf = buf.slice(self.skip..).map_err(raised)?;
        Buffer::of(&self.memory, buf, self.shape, self.dtype)
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
        Ok(self.count - self.slots.get()?.taken())
    }

    fn __repr__(&self) -> String {
        let free = self.free().map_or_else(
            |_| "another process's".into(),
            |free| format!("{free} of {} free", self.count),
        );
        format!("contigo.Pool(shape={:?}, dtype={}, {free})", self.shape.dims(), self.dtype.name)
    }

    /// How many arrays there are.
    fn __len__(&self) -> usize {
        self.count
    }
}
