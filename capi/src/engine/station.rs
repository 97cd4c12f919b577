#![allow(unsafe_code, reason = "an engine borrows its device, and is borrowed by its job, for longer than a call")]
//! A station: one engine, what it stands on, and its job.

use super::{
    device::Dev,
    flight::{End, Flight},
    machine::{MACHINES, Machine, MachineKind, Order},
    sim_device::SimDevice,
};
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
use crate::object::gpu;
use crate::{
    fault::{Fault, Misuse},
    handle::{GENERATION_MAX, Handle, Kind},
    limits,
    object::{
        BoundMaster, KERNEL_PORTS,
        device::Held,
        heap::{HEAPS, Heap, carve},
    },
    table::{Guard, Lease, Lent, Object, Table},
};
use contigo::{
    Align, Bus, JobCounts, Port, UioIrq,
    drivers::{
        pl330::{PROGRAM_BYTES, Pl330},
        zdma::Zdma,
    },
    names::Attach,
};
use contigo_gemm8::Gemm8;
use core::{
    ffi::c_int,
    mem, ptr,
    sync::atomic::{AtomicU64, Ordering},
};
use std::os::fd::{AsFd, AsRawFd};

/// Engines.
pub(crate) static ENGINES: Table<Station, { limits::ENGINES }> = Table::new();

impl Object for Station {
    const KIND: Kind = Kind::Engine;
}

/// The number of the last job, of all engines: each has its own, so that no handle names two.
static JOBS: AtomicU64 = AtomicU64::new(0);

/// What a ZDMA's descriptors get: as many as its driver uses.
const DESCRIPTOR_BYTES: usize = 4096;

/// One engine. The fields are dropped in this order.
pub(crate) struct Station {
    seat: Seat,
    /// INVARIANT: the engine's device borrows from it.
    sim: Option<SimDevice>,
    /// INVARIANT: the same.
    held: Option<Held>,
    /// INVARIANT: the driver's program or descriptors borrow from it.
    _heap: Option<Lease<Heap>>,
    /// A second handle on the interrupt of a real device, which the engine has while a job is under way.
    bell: Option<UioIrq>,
    /// Is it a GPU's kernel?
    on_gpu: bool,
    /// The kernel port that stops the device when it is closed: not while the engine drives it.
    armed: Option<Lease<BoundMaster>>,
}

enum Seat {
    Idle(Guard<Machine>),
    Busy {
        number: u64,
        lent: Lent<Machine>,
        job: Job,
    },
    /// Between two of them, in one call.
    Changing,
}

enum Job {
    Gemm8(Flight<Gemm8<Dev>, 4>),
    Pl330(Flight<Pl330<'static, Dev>, 2>),
    Zdma(Flight<Zdma<'static, Dev>, 2>),
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    Gemm8Cuda(Flight<gpu::Gemm8, 4>),
}

/// How an engine is reached.
pub(crate) enum Wiring {
    /// A new device on a simulated board.
    Sim { sim: u64 },
    /// A device by its name; `port`: its handle, 0 where the kernel says it; `polled`: without its
    /// interrupt.
    Device { held: Held, port: u64, polled: bool },
    /// A kernel on the GPU that the port belongs to.
    Gpu,
}

/// What an engine is opened with.
pub(crate) struct Opening {
    pub(crate) kind: MachineKind,
    pub(crate) wiring: Wiring,
    pub(crate) port: Port,
    /// The heap that the driver's own memory is carved from.
    pub(crate) heap: Option<u64>,
}

impl Station {
    /// Opens a device, its driver and its engine.
    pub(crate) fn open(opening: Opening) -> Result<u64, Fault> {
        let Opening { kind, wiring, port, heap } = opening;
        let on_gpu = matches!(wiring, Wiring::Gpu);
        if matches!(port.bus, Bus::Gpu(_)) && !on_gpu {
            return Err(Misuse::OtherPort { needs: "another port than a GPU's", is: port.name }.into());
        }
        // First, so that nothing can fail once the engine is there.
        let (index, mut station) = ENGINES.claim()?.parts();
        let (_, mut machine) = MACHINES.claim()?.parts();
        let heap = heap.map(|heap| HEAPS.lease(heap)).transpose()?;
        // `device` after `sim` and `held`, so that it is dropped before them where something below
        // fails.
        let (sim, held, device, bell) = match wiring {
            Wiring::Sim { sim } => {
                let sim = SimDevice::new(kind, sim, port)?;
                // SAFETY: `close` drops the engine, and the window with it, before the station; where this function fails, the
                // machine is dropped first.
                let device = unsafe { sim.window()? };
                (Some(sim), None, Some(device), None)
            }
            Wiring::Device { held, port, polled } => {
                // SAFETY: the C program says that the device is wired so (contigo.h,
                // `contigo_engine_options.port`).
                let device = unsafe { held.attach(port, Attach { interrupt: !polled, ..Attach::default() })? };
                let bell = device.uio_irq()?;
                (None, Some(held), Some(Dev::Named(device)), bell)
            }
            Wiring::Gpu => (None, None, None, None),
        };
        let len_bytes = match kind {
            MachineKind::Gemm8 => None,
            MachineKind::Pl330 => Some(PROGRAM_BYTES),
            MachineKind::Zdma => Some(DESCRIPTOR_BYTES),
        };
        let memory = match (&heap, len_bytes) {
            // SAFETY: the driver has it, and is dropped before the lease: see above. What it leaks is forgotten for ever.
            (Some(heap), Some(len_bytes)) => Some(unsafe { carve(heap, len_bytes, Align::PAGE)? }.into_buf()),
            _ => None,
        };
        machine.put(match device {
            // SAFETY: a simulated one was made as that kind; of a real one the C program says it
            // (contigo.h, `contigo_engine_options.kind`).
            Some(device) => unsafe { Machine::open(kind, device, memory)? },
            None => Machine::on_gpu(&port)?,
        });
        let raw = Handle { index, generation: station.generation() }.raw(Kind::Engine);
        station.put(Self { seat: Seat::Idle(machine), sim, held, _heap: heap, bell, on_gpu, armed: None });
        Ok(raw)
    }

    /// Starts a job, and returns its handle's number.
    pub(crate) fn start(raw: u64, order: &Order) -> Result<u64, Fault> {
        let Handle { index, .. } = Handle::of(raw, Kind::Engine)?;
        let mut guard = ENGINES.lock(raw)?;
        let station = guard.value().ok_or(Misuse::Stale { kind: Kind::Engine })?;
        station.idle()?;
        let number = JOBS.fetch_add(1, Ordering::Relaxed) + 1;
        if number > GENERATION_MAX {
            return Err(Misuse::TableFull { kind: Kind::Job, entries: limits::ENGINES }.into());
        }
        let Seat::Idle(machine) = mem::replace(&mut station.seat, Seat::Changing) else { return Err(Misuse::HasJob.into()) };
        let Some((machine, lent)) = machine.lend() else { return Err(Misuse::Stale { kind: Kind::Engine }.into()) };
        match launch(machine, order) {
            Ok(job) => {
                station.seat = Seat::Busy { number, lent, job };
                Ok(Handle { index, generation: number }.raw(Kind::Job))
            }
            Err(fault) => {
                // SAFETY: the engine was lent to `launch`, which gave it to no job.
                station.seat = Seat::Idle(unsafe { lent.back() });
                Err(fault)
            }
        }
    }

    /// Ends a job, or says `false` where it has not ended: only after `End::Poll`.
    pub(crate) fn end(raw: u64, how: End) -> Result<bool, Fault> {
        let Handle { index, generation } = Handle::of(raw, Kind::Job)?;
        let stale = Misuse::Stale { kind: Kind::Job };
        let mut guard = ENGINES.slot(index).ok_or(stale)?.lock_whichever(Kind::Job)?;
        let station = guard.value().ok_or(stale)?;
        match &station.seat {
            Seat::Busy { number, .. } if *number == generation => {}
            _ => return Err(stale.into()),
        }
        let Seat::Busy { number, lent, job } = mem::replace(&mut station.seat, Seat::Changing) else { return Err(stale.into()) };
        let ended = match job {
            Job::Gemm8(flight) => flight.end(how).map(|left| left.map(Job::Gemm8)),
            Job::Pl330(flight) => flight.end(how).map(|left| left.map(Job::Pl330)),
            Job::Zdma(flight) => flight.end(how).map(|left| left.map(Job::Zdma)),
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Job::Gemm8Cuda(flight) => flight.end(how).map(|left| left.map(Job::Gemm8Cuda)),
        };
        if let Ok(Some(job)) = ended {
            station.seat = Seat::Busy { number, lent, job };
            return Ok(false);
        }
        // SAFETY: the job is over: `Flight::end` consumed the only thing that borrowed the engine.
        station.seat = Seat::Idle(unsafe { lent.back() });
        ended.map(|_| true)
    }

    /// The engine, where it has no job.
    fn idle(&mut self) -> Result<&mut Machine, Misuse> {
        match &mut self.seat {
            Seat::Idle(machine) => machine.value().ok_or(Misuse::Stale { kind: Kind::Engine }),
            Seat::Busy { .. } | Seat::Changing => Err(Misuse::HasJob),
        }
    }

    /// Stops the device after it would not, and was reset.
    pub(crate) fn recover(&mut self) -> Result<(), Fault> {
        Ok(self.idle()?.recover()?)
    }

    /// Pulls the reset line of a simulated device; of a real one nobody here has it.
    pub(crate) fn reset(&self) -> Result<(), Fault> {
        match &self.sim {
            Some(sim) => sim.reset(),
            None => {
                let is = if self.on_gpu { "a GPU" } else { "a real one" };
                Err(Misuse::OtherEngine { needs: "a simulated device", is }.into())
            }
        }
    }

    /// The interrupt, where it is a file: also while the engine has a job.
    fn bell(&mut self) -> Result<&mut UioIrq, Misuse> {
        let is = match (&self.sim, self.on_gpu) {
            (Some(_), _) => "simulated",
            (None, true) => "a GPU",
            (None, false) => "polled",
        };
        self.bell.as_mut().ok_or(Misuse::NoInterrupt { is })
    }

    /// The interrupt's descriptor, which stays open until the engine is closed.
    pub(crate) fn irq_fd(&mut self) -> Result<c_int, Fault> {
        Ok(self.bell()?.as_fd().as_raw_fd())
    }

    /// Forgets an interrupt that came before, and unmasks.
    pub(crate) fn irq_arm(&mut self) -> Result<(), Fault> {
        Ok(self.bell()?.arm()?)
    }

    /// How its jobs ended, whether it is busy; not while it has a job.
    pub(crate) fn counts(&mut self) -> Result<(JobCounts, bool), Fault> {
        let machine = self.idle()?;
        Ok((machine.jobs(), machine.is_busy()))
    }

    /// Leaves what stops the device with the kernel.
    ///
    /// # Safety
    /// As `Engine::arm`.
    pub(crate) unsafe fn arm(&mut self, kernel_port: u64, window: u32) -> Result<(), Fault> {
        if self.on_gpu {
            return Err(Misuse::OtherEngine { needs: "a device with registers", is: "a GPU" }.into());
        }
        // SAFETY: it is not used after this call, in which nobody takes the device away.
        if let Some(guard) = self.held.as_ref().filter(|_| kernel_port == 0).and_then(|held| unsafe { held.for_ever() }.guard()) {
            // SAFETY: the caller's promise; `close` drops the engine before what holds the device.
            unsafe { self.idle()?.arm(guard, window)? };
            return Ok(());
        }
        let kernel_port = KERNEL_PORTS.lease(kernel_port)?;
        if self.armed.as_ref().is_some_and(|armed| !ptr::eq(&raw const **armed, &raw const *kernel_port)) {
            return Err(Misuse::OtherPort { needs: "the kernel port that it was armed with", is: "another one" }.into());
        }
        // SAFETY: the caller's promise; `close` drops the engine before this lease.
        unsafe { self.idle()?.arm(&kernel_port, window)? };
        self.armed = Some(kernel_port);
        Ok(())
    }

    /// Closes an engine. Refused while it has a job, and where its device does not stop: it may use what would be given back.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        let mut guard = ENGINES.lock(raw)?;
        let station = guard.value().ok_or(Misuse::Stale { kind: Kind::Engine })?;
        station.recover()?;
        if let Seat::Idle(machine) = &mut station.seat {
            // First what borrows, then what it borrows from.
            machine.clear();
        }
        guard.clear();
        Ok(())
    }
}

fn launch(machine: &'static mut Machine, order: &Order) -> Result<Job, Fault> {
    Ok(match (machine, order) {
        (Machine::Gemm8(engine), Order::Gemm(gemm, parts)) => Job::Gemm8(Flight::start(engine, parts, gemm)?),
        #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
        (Machine::Gemm8Cuda(engine), Order::Gemm(gemm, parts)) => Job::Gemm8Cuda(Flight::start(engine, parts, gemm)?),
        (Machine::Pl330(engine), Order::Copy(parts)) => Job::Pl330(Flight::start(engine, parts, &())?),
        (Machine::Zdma(engine), Order::Copy(parts)) => Job::Zdma(Flight::start(engine, parts, &())?),
        (machine, order) => return Err(Misuse::OtherEngine { needs: order.needs(), is: machine.name() }.into()),
    })
}

#[cfg(test)]
mod tests;
