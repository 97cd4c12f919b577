#![allow(
    unsafe_code,
    reason = "which core is behind the registers, and how it is wired, is a claim"
)]
//! gemm8 behind the gate, as a SoC has a core: no IOMMU and no reset keeps it from memory. Only the
//! gate does.

use super::{
    ground::ground,
    kills,
    product::{SLOTS, long_operands, operands, product, timeouts},
};
use crate::{setup::virt_port, vfio::Seen};
use contigo::{
    Align, Queue, Result,
    drivers::axi_gate::{AxiGate, Gated, Part, regs},
    names::{AnyDevice, Attach, DeviceName, OpenDevice},
};
use contigo_gemm8::{Gemm, Gemm8, Output};
use fastrand::Rng;
use std::time::Instant;

/// One test: its name, and what it does with the device of that name.
pub(crate) type Test = (&'static str, fn(&DeviceName) -> Result<Seen>);

/// By UIO.
pub(crate) const UIO: &[Test] =
    &[("uio-products-polled", products), ("uio-timeout-stops", stopped)];
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
pub(super) type Driver<'d> = Gated<Gemm8<Part<'d, AnyDevice>>, Part<'d, AnyDevice>>;

/// The registers, and no interrupt: `uio_pci_generic` and the module have the line alone, which a
/// function in a program beside QEMU cannot lower.
pub(super) fn attached(opened: &OpenDevice) -> Result<AnyDevice> {
    // SAFETY: `machine.rs` found the lab's function, with no IOMMU before it.
    unsafe { opened.attach_wired(virt_port(opened), Attach { window: 0, interrupt: false }) }
}

/// The driver. It has touched nothing.
pub(super) fn driver(device: &AnyDevice) -> Result<Driver<'_>> {
    // SAFETY: no other code has the device, and each part is made once.
    let part = |from| unsafe { Part::new(device, from, GATE) };
    // SAFETY: the function is gemm8's Verilog, whose only master passes the gate in the same window
    // (`rtl/cores/gemm8/top.v`), which has its reset.
    unsafe {
        let gate = AxiGate::open(part(GATE)?)?;
        Ok(Gated::new(Gemm8::open(part(0)?)?, gate).in_window(GATE))
    }
}

/// The core's queue. The module gets the program that stops it, where that has the device.
pub(super) fn queue<'d>(opened: &OpenDevice, device: &'d AnyDevice) -> Result<Queue<Driver<'d>>> {
    let driver = driver(device)?;
    if let Some(guard) = opened.guard() {
        // SAFETY: window 0 is the core's, and the program shuts its gate.
        unsafe { guard.arm(&contigo::Driver::stop_program(&driver), 0)? };
    }
    // SAFETY: by UIO nothing has started the core; a platform device always masters the bus.
    unsafe { opened.enable_bus_master()? };
    Ok(Queue::new(driver, 1)?)
}

fn products(name: &DeviceName) -> Result<Seen> {
    let opened = name.open()?;
    // A, B and bias are in the first block, with room behind them, and C in the second one.
    let (first, second) = (ground(&opened)?, ground(&opened)?);
    let device = attached(&opened)?;
    let [a, b, bias, c] = SLOTS;
    let [a, b, bias] = [a, b, bias].map(|len| first.alloc(len, Align::PAGE));
    let mut operands = [a?, b?, bias?, second.alloc(c, Align::PAGE)?];
    let mut core = queue(&opened, &device)?;
    let (mut seen, mut rng, begun) = (Seen::default(), Rng::with_seed(1), Instant::now());
    for _ in 0..ROUNDS {
        operands = product(&mut seen, &mut core, operands, &mut rng)?;
    }
    seen.detail = format!("{ROUNDS} random products, {} ms", begun.elapsed().as_millis());
    Ok(seen)
}

fn stopped(name: &DeviceName) -> Result<Seen> {
    let opened = name.open()?;
    let (first, second) = (ground(&opened)?, ground(&opened)?);
    let device = attached(&opened)?;
    let mut core = queue(&opened, &device)?;
    timeouts(&mut core, &LONG, long_operands(&first, &LONG)?, operands(&second)?)
}
