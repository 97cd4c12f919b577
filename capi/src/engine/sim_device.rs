#![allow(unsafe_code, reason = "a simulated device borrows from its board for as long as its lease says")]
//! Simulated devices: the board's side of them, which their windows borrow.

use super::{device::Dev, machine::MachineKind};
use crate::{
    fault::Fault,
    handle::Kind,
    limits,
    object::SIMS,
    table::{Lease, Object, Table},
};
use contigo::{
    Port,
    drivers::{pl330::SimPl330, zdma::SimZdma},
    sim::SimBoard,
};
use contigo_gemm8::SimGemm8;

/// Simulated devices: one for each engine at most.
static DEVICES: Table<SimCore, { limits::ENGINES }> = Table::new();

impl Object for SimCore {
    const KIND: Kind = Kind::Engine;
}

/// One simulated device, and its board. The fields are dropped in this order.
pub(crate) struct SimCore {
    core: Core,
    /// INVARIANT: `core` borrows from it.
    _board: Lease<SimBoard>,
}

enum Core {
    Gemm8(SimGemm8<'static>),
    Pl330(SimPl330<'static>),
    Zdma(SimZdma<'static>),
}

/// A simulated device that an engine has.
pub(crate) struct SimDevice {
    raw: u64,
    lease: Option<Lease<SimCore>>,
}

impl SimDevice {
    /// A new device on a simulated board, behind `port`.
    pub(crate) fn new(kind: MachineKind, sim: u64, port: Port) -> Result<Self, Fault> {
        let board = SIMS.lease(sim)?;
        // SAFETY: the core is in the same `SimCore` as the lease, before it, and so dropped before it.
        let place = unsafe { board.for_ever() };
        let core = match kind {
            MachineKind::Gemm8 => Core::Gemm8(SimGemm8::new(place, port)),
            MachineKind::Pl330 => Core::Pl330(SimPl330::new(place, port)),
            MachineKind::Zdma => Core::Zdma(SimZdma::new(place, port)),
        };
        let raw = DEVICES.insert(SimCore { core, _board: board })?;
        Ok(Self { raw, lease: Some(DEVICES.lease(raw)?) })
    }

    /// Its registers and interrupt.
    ///
    /// # Safety
    /// They are gone, or forgotten for ever, before this value is dropped.
    pub(crate) unsafe fn window(&self) -> Result<Dev, Fault> {
        let lease = self.lease.as_ref().ok_or(contigo::Error::Busy)?;
        // SAFETY: the caller's promise.
        Ok(match unsafe { &lease.for_ever().core } {
            Core::Gemm8(device) => Dev::SimGemm8(device.window()?),
            Core::Pl330(device) => Dev::SimPl330(device.window()?),
            Core::Zdma(device) => Dev::SimZdma(device.window()?),
        })
    }

    /// Pulls its reset line.
    pub(crate) fn reset(&self) -> Result<(), Fault> {
        match self.lease.as_ref().map(|lease| &lease.core) {
            Some(Core::Gemm8(device)) => Ok(device.reset()?),
            Some(Core::Pl330(device)) => Ok(device.reset()?),
            Some(Core::Zdma(device)) => Ok(device.reset()?),
            None => Ok(()),
        }
    }
}

impl Drop for SimDevice {
    fn drop(&mut self) {
        self.lease = None;
        // Its handle is nobody else's, so it is free now.
        if let Ok(mut guard) = DEVICES.lock(self.raw) {
            guard.clear();
        }
    }
}
