//! The matrix engine: the simulated board's, or a GPU's kernel.

use crate::{
    buffer::{Buffer, Inner},
    error::{ContigoError, raised},
    mine::Mine,
    region::Memory,
};
use contigo::{CpuBuf, Engine, Timeout, TypedDriver, names::OpenDevice, sim::SimWindow};
use contigo_gemm8::{Gemm, Gemm8 as Driver, Gemm8Model, Output, SimGemm8};
use pyo3::{exceptions::PyBufferError, prelude::*};
use std::sync::{Mutex, PoisonError};

enum Core {
    Sim(Engine<Driver<SimWindow<'static, Gemm8Model>>, 4>),
    #[cfg(target_pointer_width = "64")]
    Gpu(Engine<contigo_gemm8::cuda::Gemm8Kernel<contigo::cuda::CudaFunction<'static>>, 4>),
}

/// A matrix engine, int8 times int8 (`examples/gemm8/README.md`): of the simulated board, or a
/// kernel on the GPU, bit for bit the same.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Gemm8 {
    memory: &'static Memory,
    engine: Mine<Mutex<Core>>,
}

impl Gemm8 {
    pub(crate) fn new(memory: &'static Memory) -> PyResult<Self> {
        let core = core(memory)?;
        Ok(Self { memory, engine: Mine::new(Mutex::new(core)) })
    }
}

/// The engine of the device that the memory was opened from.
fn core(memory: &'static Memory) -> PyResult<Core> {
    if let Some(board) = memory.device.and_then(OpenDevice::board) {
        let device: &'static SimGemm8<'static> = Box::leak(Box::new(SimGemm8::new(board, board.port())));
        return Ok(Core::Sim(Engine::new(Driver::open_simulated(device.window().map_err(raised)?).map_err(raised)?).map_err(raised)?));
    }
    #[cfg(target_pointer_width = "64")]
    if let Some(gpu) = memory.device.and_then(OpenDevice::gpu) {
        let mut log = contigo::cuda::Log::new();
        let module = memory
            .module(|| contigo_gemm8::cuda::Gemm8Module::load(gpu, &mut log))
            .map_err(|error| ContigoError::new_err(format!("{error}; the driver's compiler says: {}", log.trim_end())))?;
        return Ok(Core::Gpu(Engine::new(module.kernel().map_err(raised)?).map_err(raised)?));
    }
    Err(ContigoError::new_err("a simulated board and a GPU have this engine: open_memory(\"sim\"), open_memory(\"cuda\")"))
}

#[pymethods]
impl Gemm8 {
    /// c = a x b + bias: `a` is m rows of k int8, `b` k rows of n, `bias` n int32, `c` m rows of n
    /// int32, or of int8 where `shift` says by how much the sums are shifted right. All are buffers
    /// of the engine's region that no array looks at. Waits at most `timeout_ms`.
    #[pyo3(signature = (a, b, bias, c, *, m, n, k, shift=None, relu=false, timeout_ms=1000))]
    #[allow(clippy::too_many_arguments, reason = "four operands and what is done with them, most by name")]
    fn run(
        &self,
        py: Python<'_>,
        a: &Buffer,
        b: &Buffer,
        bias: &Buffer,
        c: &Buffer,
        m: u32,
        n: u32,
        k: u32,
        shift: Option<u32>,
        relu: bool,
        timeout_ms: u32,
    ) -> PyResult<()> {
        let engine = self.engine.get()?;
        let output = shift.map_or(Output::Int32 { relu }, |shift| Output::Int8 { relu, shift });
        let args = Gemm { m, n, k, output };
        let buffers = [a, b, bias, c];
        if buffers.iter().any(|buffer| !buffer.is_of(self.memory)) {
            return Err(PyBufferError::new_err("a buffer of another region: an engine works in its own"));
        }
        let inners = buffers.map(|buffer| &**buffer.inner());
        // Other threads of Python go on; the engine's lock is not waited for with Python's held.
        py.detach(|| match &mut *engine.lock().unwrap_or_else(PoisonError::into_inner) {
            Core::Sim(engine) => product(engine, inners, &args, Timeout::ms(timeout_ms)),
            #[cfg(target_pointer_width = "64")]
            Core::Gpu(engine) => product(engine, inners, &args, Timeout::ms(timeout_ms)),
        })
    }
}

/// All four buffers are taken, or none; they come back, but for what a device keeps that does not stop.
fn product<D: TypedDriver<4, Args = Gemm>>(engine: &mut Engine<D, 4>, buffers: [&Inner; 4], args: &Gemm, timeout: Timeout) -> PyResult<()> {
    let len_bytes = args.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let mut taken: Vec<CpuBuf<'static>> = Vec::with_capacity(4);
    for (index, buffer) in buffers.iter().enumerate() {
        match buffer.take() {
            Ok(buf) => taken.push(buf),
            Err(error) => {
                buffers.iter().zip(taken).for_each(|(buffer, buf)| buffer.put(buf));
                let twice = buffers.iter().take(index).any(|other| std::ptr::eq(*other, *buffer));
                return Err(if twice { PyBufferError::new_err("one buffer as two operands: a job takes four") } else { error });
            }
        }
    }
    let Ok([a, b, bias, c]) = <[CpuBuf<'static>; 4]>::try_from(taken) else { unreachable!("four were taken") };
    let [a_bytes, b_bytes, bias_bytes, c_bytes] = len_bytes;
    let operands = [a.to_device(..a_bytes), b.to_device(..b_bytes), bias.to_device(..bias_bytes), c.from_device(..c_bytes)];
    let job = match engine.start(operands, args) {
        Ok(job) => job,
        Err(refused) => {
            for (buffer, operand) in buffers.iter().zip(refused.buffers.into_iter().flatten()) {
                if let Ok(buf) = operand.into_buf() {
                    buffer.put(buf);
                }
            }
            return Err(raised(refused.error));
        }
    };
    match job.wait(timeout) {
        Ok(done) => {
            buffers.iter().zip(done.buffers).for_each(|(buffer, buf)| buffer.put(buf));
            Ok(())
        }
        Err(failed) => {
            for (buffer, back) in buffers.iter().zip(failed.buffers.into_iter().flatten()) {
                if let Ok(buf) = back.into_cpu() {
                    buffer.put(buf);
                }
            }
            Err(raised(failed.error))
        }
    }
}
