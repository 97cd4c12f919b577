#![allow(
    unsafe_code,
    reason = "the program promises a kernel's parameters, where the documentation asks for it"
)]
//! Kernels of a GPU, from an image: PTX, a cubin or a fatbin; SPIR-V; a text of OpenCL C.

use crate::error::{Refusal, raised_as};
use crate::memory::direction;
use crate::opening::Opening;
use contigo::job::{AnyDriver, Parameter, Signature};
use contigo::names::{AnyModule, OpenDevice};
use contigo::{Direction, OperandSpec};
use contigo_objects::keep;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::{CStr, CString};

/// A pointer's direction, or the words of a number.
#[derive(FromPyObject)]
pub(crate) enum ParameterKind {
    #[pyo3(transparent)]
    Words(usize),
    #[pyo3(transparent)]
    Direction(String),
}

/// Operand number, bytes of an element, and the numbers whose product counts the elements.
pub(crate) type Size = (usize, u64, Vec<usize>);

/// The kernel called `entry` in `image`.
///
/// # Safety
/// As [`OpenDevice::load`] and [`AnyModule::kernel`].
pub(crate) unsafe fn driver(
    py: Python<'_>,
    gpu: &Opening,
    image: &[u8],
    entry: &str,
    parameters: &[ParameterKind],
    sizes: &[Size],
) -> PyResult<AnyDriver> {
    let parameter = |kind: &ParameterKind| {
        Ok(match kind {
            ParameterKind::Words(words) => Parameter::Words(*words),
            ParameterKind::Direction(word) => Parameter::Operand(match direction(word)? {
                Direction::ToDevice => OperandSpec::to_device(),
                Direction::FromDevice => OperandSpec::from_device(),
                Direction::Bidirectional => OperandSpec::in_out(),
            }),
        })
    };
    let failed = |error| raised_as(error, format!("{entry}: {error}"));
    let parameters = parameters.iter().map(parameter).collect::<PyResult<Vec<_>>>()?;
    // For messages: a long one is cut.
    let signature =
        Signature::new(keep(entry).map_err(Refusal::from)?, &parameters).map_err(failed)?;
    let sized = |signature: Signature, (operand, element_bytes, counts): &Size| {
        signature.sized(*operand, *element_bytes, counts)
    };
    let signature = sizes.iter().try_fold(signature, sized).map_err(failed)?;
    let name =
        CString::new(entry).map_err(|_| PyValueError::new_err("a kernel's name has no NUL"))?;
    // The driver's compiler takes a while: other threads of Python go on.
    // SAFETY: the caller's promise.
    let module =
        py.detach(|| gpu.module(image, || unsafe { compiled(&gpu.device, image, entry) }))?;
    // SAFETY: as above.
    Ok(unsafe { module.kernel(&name, signature) }.map_err(failed)?)
}

/// The image on the GPU. `entry` is for messages.
///
/// # Safety
/// As [`OpenDevice::load`].
unsafe fn compiled(gpu: &OpenDevice, image: &[u8], entry: &str) -> Result<AnyModule, Refusal> {
    // ELF's magic number is a cubin's, and the other a fatbin's (CUDA's fatbinary_section.h). A
    // text of PTX has a NUL at its end.
    let is_binary =
        image.starts_with(b"\x7fELF") || image.starts_with(&0xBA55_ED50_u32.to_le_bytes());
    let text = match gpu.name().kind() {
        "cuda" if !is_binary => Some(
            CString::new(image.strip_suffix(b"\0").unwrap_or(image))
                .map_err(|_| Refusal::Value("this is no PTX, no cubin and no fatbin".into()))?,
        ),
        _ => None,
    };
    let mut log = String::new();
    // SAFETY: the caller's promise.
    let module =
        unsafe { gpu.load(text.as_deref().map_or(image, CStr::to_bytes_with_nul), &mut log) };
    module.map_err(|error| match log.trim_end() {
        "" => raised_as(error, format!("{entry}: {error}")),
        said => raised_as(error, format!("{entry}: {error}; the driver's compiler says: {said}")),
    })
}
