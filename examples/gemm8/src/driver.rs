#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! `gemm8`, an int8 matrix engine: C = A·B + bias, then optional ReLU and right shift to int8, or
//! raw int32.
//!
//! The hardware's contract (registers, limits, errors) is `examples/gemm8/README.md`. Four
//! operands, in this order:
//!
//! | operand | what | bytes | direction |
//! |---|---|---|---|
//! | A | `m` rows of `k` int8 | `m·k` | to the device |
//! | B | `k` rows of `n` int8 | `k·n` | to the device |
//! | bias | `n` int32, little-endian | `4·n` | to the device |
//! | C | `m` rows of `n` int8 or int32 | `m·n` or `4·m·n` | from the device |

use crate::regs;
use contigo::{
    Align, Completion, Device, Driver, Error, OperandSpec, Result,
    design::kernel::{KernelMap, Protocol},
    drivers::ap_ctrl::ApCtrl,
    job::{StopProgram, StopStep, exactly},
    mem::DevSlice,
};
use core::time::Duration;

/// How long `stop` waits for the bursts under way to end. 16 bursts of 256 bytes take 10 µs at the
/// slowest port here (Zynq HP at 100 MHz, 0.4 GB/s). The limit is a thousand times that, for an
/// interconnect with much other traffic.
const STOP_US: u32 = 10_000;

/// A, B, bias and C, for every driver of a gemm8.
pub(crate) const OPERANDS: [OperandSpec; 4] = [
    OperandSpec::to_device(),
    OperandSpec::to_device(),
    OperandSpec::to_device(),
    OperandSpec::from_device(),
];

/// One matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of A and C: 1 to 4,096.
    pub m: u32,
    /// Columns of B and C: 16 to 4,096, a multiple of 16.
    pub n: u32,
    /// Columns of A, rows of B: 16 to 4,096, a multiple of 16.
    pub k: u32,
    /// The form of the results.
    pub output: Output,
}

/// The form in which the 32-bit sums are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Shifted right by `shift` (0 to 31) with rounding half up, then saturated to -128..=127.
    Int8 {
        /// Negative sums become 0 before the shift.
        relu: bool,
        /// How many bits to shift.
        shift: u32,
    },
    /// The sums without a change.
    Int32 {
        /// Negative sums become 0.
        relu: bool,
    },
}

impl Output {
    /// Returns the size of one element of C, in bytes.
    #[must_use]
    pub const fn element_bytes(self) -> u64 {
        match self {
            Self::Int8 { .. } => 1,
            Self::Int32 { .. } => 4,
        }
    }
}

impl Gemm {
    /// Returns how many bytes A, B, bias and C need; `u64::MAX` if that exceeds 64 bits.
    #[must_use]
    pub const fn operand_bytes(&self) -> [u64; 4] {
        let (m, n, k) = (self.m as u64, self.n as u64, self.k as u64);
        [m * k, k * n, 4 * n, (m * n).saturating_mul(self.output.element_bytes())]
    }

    /// As argument words: m, n, k, and the value of `MODE` (`examples/gemm8/README.md`).
    #[must_use]
    pub const fn words(&self) -> [u32; 4] {
        let mode = match self.output {
            // An invalid shift stays invalid, and does not touch the bits above it.
            Output::Int8 { relu, shift } => {
                (if shift < regs::MODE_RELU { shift } else { regs::MODE_RELU - 1 })
                    | if relu { regs::MODE_RELU } else { 0 }
            }
            Output::Int32 { relu } => regs::MODE_RAW | if relu { regs::MODE_RELU } else { 0 },
        };
        [self.m, self.n, self.k, mode]
    }

    /// Converts argument words back to arguments.
    #[must_use]
    pub const fn from_words(words: &[u32; 4]) -> Self {
        let [m, n, k, mode] = *words;
        let relu = mode & regs::MODE_RELU != 0;
        let output = match mode & regs::MODE_RAW {
            0 => Output::Int8 { relu, shift: mode & !regs::MODE_RELU },
            _ => Output::Int32 { relu },
        };
        Self { m, n, k, output }
    }

    /// Checks the operands against the arguments, and the arguments against the engine's limits
    /// (`examples/gemm8/README.md`, "Operands and limits"). For every driver of a gemm8.
    ///
    /// # Errors
    /// [`Error::Argument`], [`Error::BufferSize`], [`Error::BufferAlign`].
    pub fn check(&self, buffers: &[DevSlice; 4]) -> Result<()> {
        argument("m", self.m, 1, regs::DIM_MAX, 1)?;
        argument("n", self.n, regs::TILE, regs::DIM_MAX, regs::TILE)?;
        argument("k", self.k, regs::TILE, regs::DIM_MAX, regs::TILE)?;
        if let Output::Int8 { shift, .. } = self.output {
            argument("shift", shift, 0, regs::MODE_SHIFT, 1)?;
        }
        for (index, (buffer, need_bytes)) in buffers.iter().zip(self.operand_bytes()).enumerate() {
            if (buffer.len_bytes as u64) < need_bytes {
                return Err(Error::BufferSize { index, need_bytes, have_bytes: buffer.len_bytes });
            }
            if !buffer.addr.0.is_multiple_of(regs::POINTER_ALIGN as u64) {
                return Err(Error::BufferAlign {
                    index,
                    addr: buffer.addr.0,
                    align_bytes: regs::POINTER_ALIGN,
                });
            }
        }
        Ok(())
    }
}

/// Its registers, by `examples/gemm8/README.md`. C has at least `m*n` bytes, and four times as many
/// if `MODE` says raw ([`Gemm::check`]).
pub const MAP: KernelMap = {
    let align = match Align::new(regs::POINTER_ALIGN) {
        Ok(align) => align,
        Err(_) => panic!("64 is a power of two"),
    };
    let [a, b, bias, c] = OPERANDS;
    let map = KernelMap::named("gemm8", Protocol::Hs)
        .window(0x90)
        .interrupt(true)
        .pointer("a", 0x10, a.aligned(align), "m*k")
        .pointer("b", 0x1C, b.aligned(align), "k*n")
        .pointer("bias", 0x28, bias.aligned(align), "4*n")
        .pointer("c", 0x34, c.aligned(align), "m*n")
        .scalar("m", 0x40, 32)
        .scalar("n", 0x48, 32)
        .scalar("k", 0x50, 32)
        .scalar("mode", 0x58, 32)
        .result("status", 0x68, 32)
        .result("bytes_out", 0x78, 32);
    match map.build() {
        Ok(map) => map,
        Err(_) => panic!("the table is wrong"),
    }
};

/// The driver of one engine: an HLS kernel's driver, with this core's additions. The engine can be
/// aborted, and it reports what went wrong.
#[derive(Debug)]
pub struct Gemm8<D> {
    kernel: ApCtrl<D>,
    /// How many bytes the current job must have written when it is done.
    expected_bytes: u64,
    /// The current job was aborted.
    aborted: bool,
}

impl<D: Device> Gemm8<D> {
    /// Opens a driver for `device`.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] if the window is too small; [`Error::WrongDevice`] if its `ID`
    /// register is not gemm8's: the address is wrong, or no bitstream is loaded. A correct `ID` is
    /// a hint, not a proof.
    ///
    /// # Safety
    /// The window is a gemm8's (`examples/gemm8/README.md`), and no other code drives it while this
    /// value lives.
    pub unsafe fn open(device: D) -> Result<Self> {
        if device.len_bytes() < regs::WINDOW_BYTES {
            return Err(Error::RegisterWindow {
                device: "gemm8",
                need_bytes: regs::WINDOW_BYTES,
                have_bytes: device.len_bytes(),
            });
        }
        match regs::ID.read(&device) {
            regs::ID_VALUE => {}
            found => {
                return Err(Error::WrongDevice {
                    device: "gemm8",
                    register: "ID",
                    expected: regs::ID_VALUE,
                    found,
                });
            }
        }
        // SAFETY: 1. `MAP` is the contract's table. 2. and 3. The contract, "What the engine
        // promises"; where `MAP` requires less than C needs, `Gemm::check` requires all. 4. The
        // caller's promise.
        let kernel = unsafe { ApCtrl::open(device, MAP)? };
        let kernel = kernel.named("gemm8").stops_within(Duration::from_micros(STOP_US.into()))?;
        Ok(Self { kernel, expected_bytes: 0, aborted: false })
    }

    fn abort(&self, abort: bool) {
        // SAFETY: ABORT ends transfers and starts none.
        unsafe { regs::ABORT.write(self.kernel.device(), u32::from(abort)) }
    }
}

#[cfg(all(feature = "linux", target_os = "linux"))]
impl<D: std::os::fd::AsFd> std::os::fd::AsFd for Gemm8<D> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.kernel.as_fd()
    }
}

// SAFETY: examples/gemm8/README.md, "What the engine promises": 1. it reads m·k, k·n and 4·n bytes
// from A, B and bias, and writes the bytes of C, which `check` compared with the operands; nothing
// else. 2. AP_DONE and AP_IDLE rise after the last write response has arrived, and ABORT raises
// AP_IDLE only then. 4. to 8. `ApCtrl`; ABORT starts nothing.
unsafe impl<D: Device> Driver for Gemm8<D> {
    contigo::forward!(|this| this.kernel => name, port, simulated, addr_bits, operands, arm_irq);

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        Gemm::from_words(exactly(words)?).check(exactly(operands)?)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let [_, _, _, c_bytes] = Gemm::from_words(exactly(words)?).operand_bytes();
        self.expected_bytes = c_bytes;
        self.aborted = false;
        // SAFETY: the caller's promise; operands that `Gemm::check` accepts satisfy `MAP`'s rules.
        unsafe { self.kernel.submit(slot, operands, words) }
    }

    /// A device's registers are not trusted: they are compared, not used.
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let Some(end) = self.kernel.poll(timeout)? else { return Ok(None) };
        let [status, bytes_out, ..] = end.words;
        let done_bytes = u64::from(bytes_out);
        if status == 0 && done_bytes != self.expected_bytes {
            return Err(Error::ShortTransfer { need_bytes: self.expected_bytes, done_bytes });
        }
        // A job that `stop` aborted does not end.
        let told = !(self.aborted && status & regs::STATUS_ABORTED != 0);
        let failed = (status != 0).then(|| regs::describe(status));
        Ok(told.then_some(Completion { status, failed, ..end }))
    }

    fn stop(&mut self) -> Result<()> {
        self.aborted = true;
        self.abort(true);
        let stopped = self.kernel.stop();
        self.abort(false);
        stopped
    }

    fn stop_program(&self) -> StopProgram {
        const IDLE: StopStep =
            StopStep::poll_until(regs::CTRL.offset(), regs::IDLE_MASK, regs::AP_IDLE, STOP_US);
        const STEPS: [StopStep; 4] = [
            StopStep::write(regs::ABORT.offset(), u32::MAX, 1),
            IDLE,
            StopStep::write(regs::ABORT.offset(), u32::MAX, 0),
            IDLE,
        ];
        StopProgram::new(&STEPS).unwrap_or_default()
    }
}

fn argument(name: &'static str, value: u32, min: u32, max: u32, multiple_of: u32) -> Result<()> {
    if (min..=max).contains(&value) && value.is_multiple_of(multiple_of) {
        return Ok(());
    }
    let [value, min, max, multiple_of] = [value, min, max, multiple_of].map(u64::from);
    Err(Error::Argument { name, value, min, max, multiple_of })
}

/// The result of one 32-bit sum: ReLU, then for int8 shift with rounding half up and saturation
/// (`examples/gemm8/README.md`, "Arithmetic"). For int8 output the result is in int8's range.
///
/// ```
/// use contigo_gemm8::{Output, requantize};
/// assert_eq!(requantize(5, Output::Int8 { relu: false, shift: 1 }), 3); // 2.5, up
/// assert_eq!(requantize(-5, Output::Int8 { relu: false, shift: 1 }), -2); // -2.5, up
/// assert_eq!(requantize(i32::MAX, Output::Int8 { relu: false, shift: 3 }), 127);
/// assert_eq!(requantize(-5, Output::Int32 { relu: true }), 0);
/// ```
#[must_use]
pub fn requantize(sum: i32, output: Output) -> i32 {
    match output {
        Output::Int32 { relu } => rectify(sum, relu),
        Output::Int8 { relu, shift } => {
            // 33 bits hold the sum and the rounding constant; the register has five bits of shift.
            let shift = shift & 31;
            let half = (1_i64 << shift) >> 1;
            let shifted = (i64::from(rectify(sum, relu)) + half) >> shift;
            i32::from(i8::try_from(shifted).unwrap_or(if shifted < 0 { i8::MIN } else { i8::MAX }))
        }
    }
}

const fn rectify(sum: i32, relu: bool) -> i32 {
    if relu && sum < 0 { 0 } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_and_the_registers_are_one_table() {
        let pointers = MAP.pointers().iter().map(|pointer| pointer.offset as usize);
        assert!(pointers.eq(regs::POINTERS.map(|pointer| pointer.offset())));
        let scalars = MAP.scalars().iter().map(|scalar| scalar.offset as usize);
        assert!(
            scalars.eq([regs::M, regs::N, regs::K, regs::MODE].map(|register| register.offset()))
        );
        let results = MAP.results().iter().map(|result| result.offset as usize);
        assert!(results.eq([regs::STATUS, regs::BYTES_OUT].map(|register| register.offset())));
        assert_eq!(MAP.window_bytes(), regs::WINDOW_BYTES);
        assert_eq!(regs::CTRL.offset(), 0, "where `ApCtrl` has it");
    }

    #[test]
    fn sizes_that_are_no_number_are_the_largest_one() {
        let args = |m, n, k| Gemm { m, n, k, output: Output::Int32 { relu: false } };
        assert_eq!(args(2, 16, 32).operand_bytes(), [64, 512, 64, 128]);
        let all = u64::from(u32::MAX);
        assert_eq!(
            args(u32::MAX, u32::MAX, u32::MAX).operand_bytes(),
            [all * all, all * all, 4 * all, u64::MAX]
        );
    }
}
