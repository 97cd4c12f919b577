#![allow(unsafe_code, reason = "which core is behind the registers, and how it is wired, is a claim")]
//! gemm8 behind the gate, as a SoC has a core: no IOMMU and no reset keeps it from memory. Only the
//! gate does.

use super::{
    ground::Ground,
    kills,
    product::{SLOTS, carve, long_operands, operands, product, timeouts},
};
use crate::{setup::virt_port, vfio::Seen};
use contigo::{
    Backend, Engine, Region, Result,
    drivers::axi_gate::{AxiGate, Gated, Part, regs},
    names::{AnyDevice, Attach, DeviceName, OpenDevice},
};
use contigo_gemm8::{Gemm, Gemm8, Output};
use fastrand::Rng;
use std::time::Instant;

/// One test: its name, and what it does with the device of that name.
pub(crate) type Test = (&'static str, fn(&DeviceName) -> Result<Seen>);

/// By UIO.
pub(crate) const UIO: &[Test] = &[("uio-products-polled", products), ("uio-timeout-stops", stopped)];
/// By the module contigo.
pub(crate) const GUARD: &[Test] = &[
    ("guard-products-polled", products),
    ("guard-timeout-stops", stopped),
    ("guard-killed-while-it-writes", kills::stopped),
    ("guard-killed-unstopped-is-caught", kills::told_lies),
    ("guard-killed-unarmed-is-kept", kills::kept),
];

const ROUNDS: u64 = 50;
/// Where the gate's registers are.
const GATE: usize = regs::WINDOW_BYTES;
/// As long to write as fits the memory: 100,000 cycles at the least.
pub(super) const LONG: Gemm = Gemm { m: 896, n: 512, k: 16, output: Output::Int32 { relu: false } };

/// The core with its gate, in one window.
pub(super) type Driver<'d, 'o> = Gated<Gemm8<Part<'d, AnyDevice>>, Part<'d, AnyDevice>>;

/// The registers, and no interrupt: `uio_pci_generic` and the module have the line alone, which a
/// function in a program beside QEMU cannot lower.
pub(super) fn attached(opened: &OpenDevice) -> Result<AnyDevice> {
    // SAFETY: `machine.rs` found the lab's function, with no IOMMU before it.
    unsafe { opened.attach_wired(virt_port(opened), Attach { window: 0, interrupt: false }) }
}

/// The driver. It has touched nothing.
pub(super) fn driver<'d, 'o>(device: &'d AnyDevice) -> Result<Driver<'d, 'o>> {
    // SAFETY: nobody else has the device, and each part is made once.
    let part = |from| unsafe { Part::new(device, from, GATE) };
    // SAFETY: the function is gemm8's Verilog, whose only master passes the gate in the same window
    // (`rtl/cores/gemm8/top.v`), which has its reset.
    unsafe {
        let gate = AxiGate::open(part(GATE)?)?;
        Ok(Gated::new(Gemm8::open(part(0)?)?, gate).in_window(GATE))
    }
}

/// The engine. The module gets the program that stops it, where that has the device.
pub(super) fn engine<'d, 'o>(opened: &OpenDevice, device: &'d AnyDevice) -> Result<Engine<Driver<'d, 'o>, 4>> {
    let driver = driver(device)?;
    if let Some(guard) = opened.guard() {
        // SAFETY: window 0 is the core's, and the program shuts its gate.
        unsafe { guard.arm(&contigo::Driver::stop_program(&driver), 0)? };
    }
    // SAFETY: by UIO nothing has started the core; a platform device always masters the bus.
    unsafe { opened.enable_bus_master()? };
    Engine::new(driver).map_err(Into::into)
}

/// Does the work in memory of the device, whatever it is: two blocks of it.
macro_rules! in_memory {
    ($opened:expr, $work:expr) => {
        match (Ground::of($opened)?, Ground::of($opened)?) {
            (Ground::Huge(first), Ground::Huge(second)) => $work($opened, &Region::new(first)?, &Region::new(second)?),
            (Ground::Heap(first), Ground::Heap(second)) => $work($opened, &Region::new(first)?, &Region::new(second)?),
            (Ground::Own(first), Ground::Own(second)) => $work($opened, &Region::new(first)?, &Region::new(second)?),
            _ => Ok(Seen::failed("two blocks of two kinds")),
        }
    };
}

fn products(name: &DeviceName) -> Result<Seen> {
    let opened = name.open()?;
    in_memory!(&opened, products_in)
}

/// A, B and bias are in the first block, with room behind them, and C in the second one.
fn products_in<B: Backend>(opened: &OpenDevice, first: &Region<B>, second: &Region<B>) -> Result<Seen> {
    let device = attached(opened)?;
    let [a, b, bias, c] = SLOTS;
    let mut operands = [carve(first, a)?, carve(first, b)?, carve(first, bias)?, carve(second, c)?];
    let mut core = engine(opened, &device)?;
    let (mut seen, mut rng, begun) = (Seen::default(), Rng::with_seed(1), Instant::now());
    for _ in 0..ROUNDS {
        operands = product(&mut seen, &mut core, operands, &mut rng)?;
    }
    seen.detail = format!("{ROUNDS} random products, {} ms", begun.elapsed().as_millis());
    Ok(seen)
}

fn stopped(name: &DeviceName) -> Result<Seen> {
    let opened = name.open()?;
    in_memory!(&opened, stopped_in)
}

fn stopped_in<B: Backend>(opened: &OpenDevice, first: &Region<B>, second: &Region<B>) -> Result<Seen> {
    let device = attached(opened)?;
    let mut core = engine(opened, &device)?;
    timeouts(&mut core, &LONG, long_operands(first, &LONG)?, operands(second)?)
}
