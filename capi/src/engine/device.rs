#![allow(unsafe_code, reason = "`unsafe impl Device`, which is another device's in every method")]
//! Every kind of device as one type, so that a driver is one type.

use contigo::{
    Device, Irq, Mmio,
    drivers::{pl330::Pl330Model, zdma::ZdmaModel},
    forward,
    names::AnyDevice,
    sim::SimWindow,
};
use contigo_gemm8::Gemm8Model;

/// Every kind of device. It owns the registers and the interrupt.
pub(crate) enum Dev {
    SimGemm8(SimWindow<'static, Gemm8Model>),
    SimPl330(SimWindow<'static, Pl330Model>),
    SimZdma(SimWindow<'static, ZdmaModel>),
    Named(AnyDevice<'static>),
}

// SAFETY: every method is one window's own, and what is inside is never exchanged.
unsafe impl Mmio for Dev {
    forward!(each Self::SimGemm8 | Self::SimPl330 | Self::SimZdma | Self::Named => len_bytes, read32, write32);
}

impl Irq for Dev {
    forward!(each Self::SimGemm8 | Self::SimPl330 | Self::SimZdma | Self::Named => now_us, wait, looks_before_clock);
}

// SAFETY: the port is the device's own.
unsafe impl Device for Dev {
    forward!(each Self::SimGemm8 | Self::SimPl330 | Self::SimZdma | Self::Named => port);
}
