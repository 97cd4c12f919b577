#![allow(unsafe_code, reason = "which device it is, and what stops it after a crash, are the program's word")]
//! Every built-in accelerator's engine as one type.

use super::{device::Dev, flight::Part};
use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    limits,
    object::gpu,
    table::{Object, Table},
};
use contigo::{
    CpuBuf, Engine, Error, JobCounts, KernelPort, Port,
    drivers::{pl330::Pl330, zdma::Zdma},
};
use contigo_gemm8::{Gemm, Gemm8};

/// The engines themselves. A station has one; nobody else has a handle to it.
pub(super) static MACHINES: Table<Machine, { limits::ENGINES }> = Table::new();

impl Object for Machine {
    const KIND: Kind = Kind::Engine;
}

/// Which accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineKind {
    Gemm8,
    Pl330,
    Zdma,
}

/// What a job is to do.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// A matrix product, on a gemm8: A, B, bias, C.
    Gemm(Gemm, [Part; 4]),
    /// A copy, on a PL330 or a ZDMA: from, to.
    Copy([Part; 2]),
}

impl Order {
    /// What can do that, for messages.
    pub(super) const fn needs(&self) -> &'static str {
        match self {
            Self::Gemm(..) => "a gemm8",
            Self::Copy(_) => "a pl330 or a zdma",
        }
    }
}

/// One engine.
pub(super) enum Machine {
    Gemm8(Engine<Gemm8<Dev>, 4>),
    Pl330(Engine<Pl330<'static, Dev>, 2>),
    Zdma(Engine<Zdma<'static, Dev>, 2>),
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    Gemm8Cuda(Engine<gpu::Gemm8, 4>),
}

/// Does one thing with whichever it is.
macro_rules! each {
    ($self:expr, $engine:ident => $act:expr) => {
        match $self {
            Machine::Gemm8($engine) => $act,
            Machine::Pl330($engine) => $act,
            Machine::Zdma($engine) => $act,
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Machine::Gemm8Cuda($engine) => $act,
        }
    };
}

impl Machine {
    /// The driver of `device`, and its engine. `memory` is for the driver's own program or descriptors; a PL330 must have some.
    ///
    /// # Safety
    /// `device` is a `kind`, and nobody else drives it.
    pub(super) unsafe fn open(kind: MachineKind, device: Dev, memory: Option<CpuBuf<'static>>) -> Result<Self, Fault> {
        Ok(match (kind, memory) {
            // SAFETY: the caller's promise.
            (MachineKind::Gemm8, _) => Self::Gemm8(engine(unsafe { Gemm8::open(device)? })?),
            // SAFETY: the caller's promise.
            (MachineKind::Zdma, None) => Self::Zdma(engine(unsafe { Zdma::simple(device)? })?),
            // SAFETY: the caller's promise.
            (MachineKind::Zdma, Some(memory)) => Self::Zdma(engine(unsafe { Zdma::linked(device, memory)? })?),
            // SAFETY: the caller's promise.
            (MachineKind::Pl330, Some(memory)) => Self::Pl330(engine(unsafe { Pl330::open(device, memory)? })?),
            (MachineKind::Pl330, None) => return Err(Misuse::Null { what: "contigo_engine_options.heap, which a pl330 needs," }.into()),
        })
    }

    /// gemm8 on the GPU whose port this is.
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    pub(super) fn on_gpu(port: &Port) -> Result<Self, Fault> {
        Ok(Self::Gemm8Cuda(gpu::gemm8(port)?))
    }

    /// There is none.
    #[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
    pub(super) fn on_gpu(port: &Port) -> Result<Self, Fault> {
        gpu::here()?;
        Err(Misuse::OtherPort { needs: "a GPU's port", is: port.name }.into())
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Gemm8(_) => "a gemm8",
            Self::Pl330(_) => "a pl330",
            Self::Zdma(_) => "a zdma",
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Self::Gemm8Cuda(_) => "a gemm8 on a GPU",
        }
    }

    pub(super) fn recover(&mut self) -> Result<(), Error> {
        each!(self, engine => engine.recover())
    }

    /// Leaves what stops the device with the kernel.
    ///
    /// # Safety
    /// As `Engine::arm`.
    pub(super) unsafe fn arm(&self, kernel_port: &KernelPort, window: u32) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        each!(self, engine => unsafe { engine.arm(kernel_port, window) })
    }

    pub(super) fn jobs(&self) -> JobCounts {
        each!(self, engine => engine.jobs())
    }

    pub(super) fn is_busy(&self) -> bool {
        each!(self, engine => engine.is_busy())
    }
}

fn engine<D: contigo::TypedDriver<N>, const N: usize>(driver: D) -> Result<Engine<D, N>, Fault> {
    Ok(Engine::new(driver)?)
}
