//! A part of a buffer for a job, and what the device does with it.

use crate::{buffer::Buffer, handover::word, jobs::Given, lock::Kept};
use contigo::{Direction, OperandSpec};
use pyo3::{exceptions::PyTypeError, prelude::*};
use std::ops::Range;

/// A part of a buffer for a job: `buf.reads()`, `buf.writes()` and `buf.updates()` make one. A job
/// takes a whole buffer as it is, too: what the device does with it is the driver's to say.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Operand {
    pub(crate) buffer: Py<Buffer>,
    pub(crate) bytes: Range<usize>,
    pub(crate) direction: Direction,
}

#[pymethods]
impl Operand {
    /// The buffer.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> Py<Buffer> {
        self.buffer.clone_ref(py)
    }

    /// Where it begins in the buffer, in bytes.
    #[getter]
    fn offset(&self) -> usize {
        self.bytes.start
    }

    /// How many bytes it has.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    /// "reads", "writes", "both": what the device does.
    #[getter]
    fn direction(&self) -> &'static str {
        word(self.direction)
    }

    fn __repr__(&self) -> String {
        format!(
            "contigo.Operand(nbytes={}, offset={}, direction={:?})",
            self.bytes.len(),
            self.bytes.start,
            self.direction()
        )
    }
}

/// Reads the operand number `index` of `specs` that a job is given: a buffer, or a part of one.
pub(crate) fn given(
    object: &Bound<'_, PyAny>,
    index: usize,
    specs: &[OperandSpec],
) -> PyResult<Given> {
    if let Ok(buffer) = object.cast::<Buffer>() {
        // One operand too many is refused with all of them.
        let direction = specs.get(index).map_or(Direction::Bidirectional, |spec| spec.direction);
        return Ok((Kept::new(buffer.clone().unbind()), 0..buffer.get().len_bytes(), direction));
    }
    let operand = object.cast::<Operand>().map_err(|_| {
        let kind = object.get_type().name().map_or_else(|_| "it".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "operand {index}: {kind} is no buffer of DMA memory: region.allocate(shape, dtype) makes one, and buf.reads(), buf.writes() name a \
             part of one"
        ))
    })?;
    let Operand { buffer, bytes, direction } = operand.get();
    Ok((Kept::new(buffer.clone_ref(object.py())), bytes.clone(), *direction))
}
