#![allow(unsafe_code, reason = "`unsafe impl Device`, which is another device's in every method")]
//! Every kind of device as one type, so that a driver is one type.

use contigo::{
    Device, Error, Irq, Mmio, Port,
    drivers::{pl330::Pl330Model, zdma::ZdmaModel},
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

/// Does one thing with whichever it is.
macro_rules! each {
    ($self:expr, $device:ident => $act:expr) => {
        match $self {
            Dev::SimGemm8($device) => $act,
            Dev::SimPl330($device) => $act,
            Dev::SimZdma($device) => $act,
            Dev::Named($device) => $act,
        }
    };
}

// SAFETY: every method is one window's own, and what is inside is never exchanged.
unsafe impl Mmio for Dev {
    fn len_bytes(&self) -> usize {
        each!(self, device => device.len_bytes())
    }
    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        each!(self, device => device.read32(offset))
    }
    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        each!(self, device => unsafe { device.write32(offset, value) })
    }
}

impl Irq for Dev {
    fn now_us(&self) -> u64 {
        each!(self, device => device.now_us())
    }
    fn wait(&mut self, timeout_us: u32) -> Result<(), Error> {
        each!(self, device => device.wait(timeout_us))
    }
    fn looks_before_clock(&self) -> u32 {
        each!(self, device => device.looks_before_clock())
    }
}

// SAFETY: the port is the device's own.
unsafe impl Device for Dev {
    fn port(&self) -> &Port {
        each!(self, device => device.port())
    }
}
