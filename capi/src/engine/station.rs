#![allow(unsafe_code, reason = "an engine borrows its device, and is borrowed by its job, for longer than a call")]
//! A station: one engine, what it stands on, and its job.

use super::{
    device::Dev,
    flight::{End, Flight},
    machine::{MACHINES, Machine, MachineKind, Order},
    sim_device::SimDevice,
};
use crate::{
    fault::{Fault, Misuse},
    handle::{GENERATION_MAX, Handle, Kind},
    limits,
    object::{
        KERNEL_PORTS,
        heap::{HEAPS, Heap, carve},
    },
    table::{Guard, Lease, Lent, Object, Table},
};
use contigo::{
    Align, JobCounts, Port, Uio, UioIrq, Wired,
    accel::{
        gemm8::Gemm8,
        pl330::{PROGRAM_BYTES, Pl330},
        zdma::Zdma,
    },
};
use core::{
    ffi::c_int,
    mem,
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
    /// INVARIANT: the driver's program or descriptors borrow from it.
    _heap: Option<Lease<Heap>>,
    /// A second handle on the interrupt of a real device, which the engine has while a job is under way.
    bell: Option<UioIrq>,
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
}

/// How an engine is reached.
pub(crate) enum Wiring {
    /// A new device on a simulated board.
    Sim { sim: u64 },
    /// `/dev/uioN`; `polled`: without its interrupt.
    Uio { uio: Uio, polled: bool },
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
        // First, so that nothing can fail once the engine is there.
        let (index, mut station) = ENGINES.claim()?.parts();
        let (_, mut machine) = MACHINES.claim()?.parts();
        let heap = heap.map(|heap| HEAPS.lease(heap)).transpose()?;
        // `device` after `sim`, so that it is dropped before it where something below fails.
        let (sim, device, bell) = match wiring {
            Wiring::Sim { sim } => {
                let sim = SimDevice::new(kind, sim, port)?;
                // SAFETY: `close` drops the engine, and the window with it, before the station; where this function fails, the
                // machine is dropped first.
                let device = unsafe { sim.window()? };
                (Some(sim), device, None)
            }
            // SAFETY: the C program says that the device is wired so (contigo.h, `contigo_engine_options.port`).
            Wiring::Uio { uio, polled: true } => (None, Dev::Polled(unsafe { uio.polled(port) }), None),
            Wiring::Uio { uio, polled: false } => {
                let (registers, irq) = uio.into_parts();
                let bell = irq.try_clone()?;
                // SAFETY: as above.
                (None, Dev::Uio(unsafe { Wired::new(registers, irq, port) }), Some(bell))
            }
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
        machine.put(Machine::open(kind, device, memory)?);
        let raw = Handle { index, generation: station.generation() }.raw(Kind::Engine);
        station.put(Self { seat: Seat::Idle(machine), sim, _heap: heap, bell });
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
            None => Err(Misuse::OtherEngine { needs: "a simulated device", is: "a real one" }.into()),
        }
    }

    /// The interrupt, where it is a file: also while the engine has a job.
    fn bell(&mut self) -> Result<&mut UioIrq, Misuse> {
        let is = if self.sim.is_some() { "simulated" } else { "polled" };
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
        let kernel_port = KERNEL_PORTS.lease(kernel_port)?;
        // SAFETY: the caller's promise.
        unsafe { self.idle()?.arm(&kernel_port, window)? };
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
        (Machine::Pl330(engine), Order::Copy(parts)) => Job::Pl330(Flight::start(engine, parts, &())?),
        (Machine::Zdma(engine), Order::Copy(parts)) => Job::Zdma(Flight::start(engine, parts, &())?),
        (machine, order) => return Err(Misuse::OtherEngine { needs: order.needs(), is: machine.name() }.into()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::*;
    use contigo_tests::fake_devices::FakeDevices;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::{
        fs,
        os::{fd::BorrowedFd, unix::fs::FileExt},
        path::PathBuf,
    };

    /// gemm8.md: CTRL with AP_DONE and AP_IDLE, BYTES_OUT, ID.
    const CTRL: (u64, u32) = (0x00, 6);
    const BYTES_OUT: (u64, u32) = (0x78, 64);
    const ID: (u64, u32) = (0x88, 0x474D_3801);

    /// A gemm8 whose registers are a file, and whose interrupt is the same file.
    struct Fake {
        tree: FakeDevices,
        engine: u64,
    }

    /// What a call answers by its last argument.
    fn answer<T: Default>(call: impl FnOnce(*mut T) -> contigo_status) -> T {
        let mut value = T::default();
        assert_eq!(call(&raw mut value), CONTIGO_OK);
        value
    }

    impl Fake {
        fn open(port: contigo_port, polled: bool) -> Self {
            let tree = FakeDevices::new();
            tree.uio(0, Some("gemm8@40000000"), "gemm8");
            let fake = Self { tree, engine: 0 };
            fake.says(&[CTRL, ID]);
            let (port, uio) = (crate::object::port::get(port).unwrap(), fake.tree.find("gemm8").unwrap());
            let opening = Opening { kind: MachineKind::Gemm8, wiring: Wiring::Uio { uio, polled }, port, heap: None };
            Self { engine: Station::open(opening).ok().unwrap(), ..fake }
        }

        /// What the device's registers say.
        fn says(&self, registers: &[(u64, u32)]) {
            let file = fs::File::options().write(true).open(self.file()).unwrap();
            registers.iter().for_each(|(offset, word)| file.write_all_at(&word.to_le_bytes(), *offset).unwrap());
        }

        fn file(&self) -> PathBuf {
            self.tree.path("dev/uio0")
        }
    }

    #[test]
    fn an_event_loop_arms_looks_and_waits() {
        let options = contigo_sim_options { struct_size: size_of::<contigo_sim_options>(), ..contigo_sim_options::default() };
        // SAFETY: the pointers are references.
        let sim = answer(|sim| unsafe { contigo_sim_open(&raw const options, sim) });
        // SAFETY: as above.
        let port = answer(|port| unsafe { contigo_sim_port(sim, 1, port) });
        let memory = contigo_heap_options {
            struct_size: size_of::<contigo_heap_options>(),
            kind: CONTIGO_HEAP_SIM,
            addr_bits: 0,
            len_bytes: 1 << 16,
            align_bytes: 0,
            name: core::ptr::null(),
            sim,
            kernel_port: 0,
        };
        // SAFETY: as above.
        let heap = answer(|heap| unsafe { contigo_heap_open(&raw const memory, heap) });
        let fake = Fake::open(port, false);
        // SAFETY: as above.
        let irq_fd = || answer(|fd| unsafe { contigo_engine_irq_fd(fake.engine, fd) });
        let fd = irq_fd();
        assert_eq!(fs::read_link(format!("/proc/self/fd/{fd}")).unwrap(), fake.file());
        assert_eq!(fake.tree.inherited(), 0, "no program that is started gets it");

        // SAFETY: as above.
        let carve = |len_bytes| answer(|buf| unsafe { contigo_carve(heap, len_bytes, 0, buf) });
        let operands = [64, 1024, 64, 64].map(|len_bytes| contigo_operand { buf: carve(len_bytes), offset_bytes: 0, len_bytes });
        let gemm = contigo_gemm8_args {
            struct_size: size_of::<contigo_gemm8_args>(),
            m: 1,
            n: 16,
            k: 64,
            output: CONTIGO_GEMM8_INT32,
            relu: 0,
            shift: 0,
        };
        // SAFETY: as above; there is no device that could move a byte.
        let job = answer(|job| unsafe { contigo_gemm8_start(fake.engine, &raw const gemm, operands.as_ptr(), job) });
        // SAFETY: as above.
        let look = || answer(|done| unsafe { contigo_job_poll(job, done) });
        assert_eq!(fake.tree.word("dev/uio0", 0), 1, "AP_START");
        // The engine has a job, and its interrupt can be had all the same. Arming reads one word and writes one behind it.
        fake.says(&[(4, 0)]);
        assert_eq!((contigo_engine_irq_arm(fake.engine), look(), irq_fd()), (CONTIGO_OK, 0, fd));
        assert_eq!(fake.tree.word("dev/uio0", 4), 1, "unmasked");
        fake.says(&[CTRL, BYTES_OUT]);
        // SAFETY: it is open until the engine is closed.
        let mut files = [PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN)];
        assert_eq!((poll(&mut files, PollTimeout::from(1_000_u16)), look()), (Ok(1), 1));

        operands.iter().for_each(|operand| assert_eq!(contigo_buf_release(operand.buf), CONTIGO_OK));
        assert_eq!((contigo_engine_close(fake.engine), fake.tree.held()), (CONTIGO_OK, (0, 0)), "nothing of it stays open");
        assert_eq!(contigo_engine_irq_arm(fake.engine), CONTIGO_E_STALE);
        for status in [contigo_heap_close(heap), contigo_port_close(port), contigo_sim_close(sim)] {
            assert_eq!(status, CONTIGO_OK);
        }
    }

    #[test]
    fn a_polled_device_has_none() {
        // SAFETY: the name is a text, the pointer a reference.
        let port = answer(|port| unsafe { contigo_port_find(c"zynq-hp0".as_ptr(), port) });
        let fake = Fake::open(port, true);
        let mut fd = 7;
        // SAFETY: the pointer is a reference.
        let status = unsafe { contigo_engine_irq_fd(fake.engine, &raw mut fd) };
        assert_eq!((status, fd, contigo_engine_irq_arm(fake.engine)), (CONTIGO_E_KIND, -1, CONTIGO_E_KIND));
        let text = crate::last_error::with_text(|text| String::from_utf8_lossy(text).contains("polled"));
        assert_eq!(text, Some(true));
        assert_eq!((contigo_engine_close(fake.engine), contigo_port_close(port)), (CONTIGO_OK, CONTIGO_OK));
    }
}
