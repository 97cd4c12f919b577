//! The simulated board's matrix engine.

use crate::{
    buffer::Buffer,
    error::{ContigoError, raised},
    heap::Memory,
};
use contigo::{
    CpuBuf, Engine, Timeout,
    accel::gemm8::{Gemm, Gemm8 as Driver, Output},
    sim::{Gemm8Model, SimGemm8, SimWindow},
};
use pyo3::{exceptions::PyBufferError, prelude::*};
use std::sync::{Mutex, PoisonError};

type Core = Engine<Driver<SimWindow<'static, Gemm8Model>>, 4>;

/// A matrix engine, int8 times int8, on the simulated board (`boards/gemm8.md`).
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Gemm8 {
    memory: &'static Memory,
    engine: Mutex<Core>,
}

impl Gemm8 {
    pub(crate) fn new(memory: &'static Memory) -> PyResult<Self> {
        let board = memory.board.ok_or_else(|| ContigoError::new_err("only a simulated board has this engine: Heap(\"sim\")"))?;
        let device: &'static SimGemm8<'static> = Box::leak(Box::new(SimGemm8::new(board, board.port())));
        let engine = Engine::new(Driver::open(device.window().map_err(raised)?).map_err(raised)?).map_err(raised)?;
        Ok(Self { memory, engine: Mutex::new(engine) })
    }
}

#[pymethods]
impl Gemm8 {
    /// c = a x b + bias: `a` is m rows of k int8, `b` k rows of n, `bias` n int32, `c` m rows of n int32, or of int8 where `shift` says by how much
    /// the sums are shifted right. All are buffers of this board's heap that no array looks at. Waits at most `timeout_ms`.
    #[pyo3(signature = (a, b, bias, c, *, m, n, k, shift=None, relu=false, timeout_ms=1000))]
    #[allow(clippy::too_many_arguments, reason = "four operands and what is done with them, most by name")]
    fn run(
        &self,
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
        let output = shift.map_or(Output::Int32 { relu }, |shift| Output::Int8 { relu, shift });
        let args = Gemm { m, n, k, output };
        let buffers = [a, b, bias, c];
        if buffers.iter().any(|buffer| !buffer.is_of(self.memory)) {
            return Err(PyBufferError::new_err("a buffer of another heap: this board reaches its own memory only"));
        }
        // All four, or none.
        let mut taken: Vec<CpuBuf<'static>> = Vec::with_capacity(4);
        for (index, buffer) in buffers.iter().enumerate() {
            match buffer.inner().take() {
                Ok(buf) => taken.push(buf),
                Err(error) => {
                    buffers.iter().take(index).zip(taken).for_each(|(buffer, buf)| buffer.inner().put(buf));
                    return Err(error);
                }
            }
        }
        let Ok([a, b, bias, c]) = <[CpuBuf<'static>; 4]>::try_from(taken) else { unreachable!("four were taken") };
        let [a_bytes, b_bytes, bias_bytes, c_bytes] = args.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let operands = [a.to_device(..a_bytes), b.to_device(..b_bytes), bias.to_device(..bias_bytes), c.from_device(..c_bytes)];
        let job = match engine.start(operands, &args) {
            Ok(job) => job,
            Err(refused) => {
                let error = raised(refused.error);
                for (buffer, operand) in buffers.iter().zip(refused.buffers.into_iter().flatten()) {
                    if let Ok(buf) = operand.into_buf() {
                        buffer.inner().put(buf);
                    }
                }
                return Err(error);
            }
        };
        match job.wait(Timeout::ms(timeout_ms)) {
            Ok(back) => {
                buffers.iter().zip(back).for_each(|(buffer, buf)| buffer.inner().put(buf));
                Ok(())
            }
            Err(failed) => {
                let error = raised(failed.error);
                for (buffer, back) in buffers.iter().zip(failed.buffers.into_iter().flatten()) {
                    if let Ok(buf) = back.into_cpu() {
                        buffer.inner().put(buf);
                    }
                }
                Err(error)
            }
        }
    }
}
