#![allow(unsafe_code, reason = "functions that C calls")]
//! Engines: the built-in accelerators.

use super::{
    device::contigo_device,
    heap::contigo_heap,
    port::{contigo_kernel_port, contigo_port, flag},
    raw::{self, Versioned},
    sim::contigo_sim,
};
use crate::{
    engine::{ENGINES, MachineKind, Opening, Station, Wiring},
    fault::{Fault, Misuse},
    handle::Kind,
    last_error::call,
    limits,
    object::{
        device::{DEVICES, Held},
        gpu,
        port::get,
    },
    status::contigo_status,
};
use contigo::{Error, Port, names::DeviceName};
use core::{
    ffi::{c_char, c_int},
    mem,
};

/// An engine: one accelerator behind one port, with at most one job at a time.
pub type contigo_engine = u64;

/// gemm8, an int8 matrix engine: `examples/gemm8/README.md`.
pub const CONTIGO_ENGINE_GEMM8: u32 = 1;
/// Arm's PL330 (DMA-330): copies. Needs `heap`.
pub const CONTIGO_ENGINE_PL330: u32 = 2;
/// ZynqMP's ZDMA: copies. With `heap` it works by lists of descriptors, without by its registers alone.
pub const CONTIGO_ENGINE_ZDMA: u32 = 3;
/// gemm8 as a CUDA kernel on the GPU whose `port` it is (`contigo_port_find("cuda:0")`): the same operands, arguments and jobs, bit for bit, in
/// memory of `CONTIGO_HEAP_CUDA`. Nothing is copied: the kernel reads and writes the pinned memory. It has no interrupt: look with
/// `contigo_job_poll`, or wait. A kernel cannot be stopped: where a job takes too long or is cancelled, its end is waited for, five seconds at
/// most. Starting it and looking at it are calls of NVIDIA's driver, which may use the heap and the kernel as it pleases.
pub const CONTIGO_ENGINE_GEMM8_CUDA: u32 = 4;

/// Which engine, and how it is reached: `sim`, or `uio`; neither for a GPU's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_engine_options {
    /// `sizeof(contigo_engine_options)`.
    pub struct_size: usize,
    /// `CONTIGO_ENGINE_...`. For a real device this is the program's word: the registers are this
    /// accelerator's. Those of another one are not always told apart by what they read as, and
    /// would be given addresses by this one's map.
    pub kind: u32,
    /// 1: wait without the interrupt, by looking again and again. For a real device only.
    pub polled: u32,
    /// The port that the device's bus master is wired to. For a real device this is the program's word: in this bitstream, on this board, the
    /// device reaches memory through this port and no other way, and nobody else drives it. A wrong port writes into other memory. A GPU's is
    /// checked: its engine takes no other, and no other engine takes it.
    pub port: contigo_port,
    /// The simulated board on which a new device of this kind is made; 0: a real one, or a GPU.
    pub sim: contigo_sim,
    /// The UIO device's name: its node in the device tree, with its unit address (`dma-controller@f8003000`) or without, or what its driver
    /// calls it. NULL with `sim`, and for a GPU. It is not kept.
    pub uio: *const c_char,
    /// The heap for what the driver itself needs, carved once; 0: none.
    pub heap: contigo_heap,
    /// A device that was opened by its name (`contigo_device_open`), in the place of `sim` and
    /// `uio`; 0: one of those. Its `port` may be 0 where the kernel says it, or the simulated
    /// board.
    pub device: contigo_device,
}

// SAFETY: integers and a pointer, `struct_size` first.
unsafe impl Versioned for contigo_engine_options {
    const NAME: &'static str = "contigo_engine_options";
    const LEAST: usize = mem::offset_of!(Self, heap);
}

/// How an engine's jobs ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_engine_stats {
    /// `sizeof(contigo_engine_stats)`.
    pub struct_size: usize,
    /// Jobs whose doorbell was rung.
    pub started: u64,
    /// Jobs whose result came back.
    pub completed: u64,
    /// Jobs that timed out, failed, or were cancelled.
    pub stopped: u64,
    /// 1: a device that would not stop keeps the engine busy.
    pub busy: u32,
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_engine_stats {
    const NAME: &'static str = "contigo_engine_stats";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Opens an engine: finds its device, checks that it is one, and stops it, because a program that crashed may have left it running. Close it
/// with `contigo_engine_close`.
///
/// # Safety
/// `options` points to an initialised structure whose `uio` is NULL or NUL-terminated; `engine` is
/// writable. Its words about a real device are true: it is the core that `kind` names, nobody else
/// drives it, and it is behind `port`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_open(options: *const contigo_engine_options, engine: *mut contigo_engine) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(engine, "engine", || {
            let contigo_engine_options { kind, polled, port, sim, uio, heap, device, .. } = raw::read(options)?;
            let on_gpu = kind == CONTIGO_ENGINE_GEMM8_CUDA;
            if on_gpu {
                gpu::here()?;
            }
            let kind = match kind {
                CONTIGO_ENGINE_GEMM8 | CONTIGO_ENGINE_GEMM8_CUDA => MachineKind::Gemm8,
                CONTIGO_ENGINE_PL330 => MachineKind::Pl330,
                CONTIGO_ENGINE_ZDMA => MachineKind::Zdma,
                value => return Err(Fault::from(Misuse::Value { what: "contigo_engine_options.kind", value: value.into() })),
            };
            let wired = port;
            let port = if device != 0 && port == 0 { device_port(device)? } else { get(port)? };
            let wiring = if on_gpu {
                if sim != 0 {
                    return Err(Misuse::Value { what: "contigo_engine_options.sim of a GPU's engine", value: sim }.into());
                }
                if device != 0 {
                    return Err(Misuse::Value { what: "contigo_engine_options.device of a GPU's engine", value: device }.into());
                }
                Wiring::Gpu
            } else if device != 0 {
                if sim != 0 {
                    return Err(Misuse::Value { what: "contigo_engine_options.sim beside .device", value: sim }.into());
                }
                Wiring::Device { held: Held::of(device)?, port: wired, polled: flag(polled, "contigo_engine_options.polled")? }
            } else if sim == 0 {
                let polled = flag(polled, "contigo_engine_options.polled")?;
                let uio = uio_called(raw::text(uio, "contigo_engine_options.uio")?)?;
                Wiring::Device { held: Held::open(uio)?, port: wired, polled }
            } else {
                Wiring::Sim { sim }
            };
            Station::open(Opening { kind, wiring, port, heap: (heap != 0).then_some(heap) })
        })
    }
}

/// How the engine's jobs ended. `CONTIGO_E_HAS_JOB` while it has one.
///
/// # Safety
/// `stats` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_get_stats(engine: contigo_engine, stats: *mut contigo_engine_stats) -> contigo_status {
    call(|| {
        let (jobs, busy) = on(engine, Station::counts)?;
        let (started, completed, stopped) = (jobs.started, jobs.completed, jobs.stopped);
        let value = contigo_engine_stats { struct_size: 0, started, completed, stopped, busy: busy.into(), reserved: 0 };
        // SAFETY: the caller's promise.
        unsafe { raw::fill(stats, &value) }
    })
}

/// Stops the device after a job of which `CONTIGO_E_WILL_NOT_STOP` was said, and after it was reset. The buffers of that job stay leaked.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_engine_recover(engine: contigo_engine) -> contigo_status {
    call(|| on(engine, Station::recover))
}

/// Pulls the reset line of a simulated device: the only thing that stops one that is stuck. `CONTIGO_E_KIND` for a real device, whose reset
/// is the board's business, and for a GPU, whose reset would free all pinned memory under whoever looks at it.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_engine_reset(engine: contigo_engine) -> contigo_status {
    call(|| on(engine, |station| station.reset()))
}

/// The descriptor of the engine's interrupt, for an event loop: poll(2) says that it can be read when the interrupt came. It is the engine's, and
/// open until the engine is closed: the program neither reads, writes nor closes it. -1 where it is refused.
///
/// In an event loop, in this order: `contigo_engine_irq_arm`; `contigo_job_poll`; and only where the job is not done, poll(2), with a limit
/// after which the program cancels the job.
///
/// `CONTIGO_E_KIND`: the device is simulated, a GPU, or was opened with `polled`; a program looks again and again there.
///
/// # Safety
/// `fd` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_irq_fd(engine: contigo_engine, fd: *mut c_int) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer_or(-1, fd, "fd", || on(engine, Station::irq_fd)) }
}

/// Forgets an interrupt that came before, and lets the next one come: the kernel masks each when it comes. Does not wait. What came before this
/// call is seen by the look after it; what comes after this call ends the wait.
///
/// `CONTIGO_E_KIND`: as `contigo_engine_irq_fd`. `CONTIGO_E_UNSUITABLE`: the device's node has no interrupt; open the engine with `polled`.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_engine_irq_arm(engine: contigo_engine) -> contigo_status {
    call(|| on(engine, Station::irq_arm))
}

/// Leaves what stops the device with the kernel, which runs it when this program ends, by whatever
/// end, before the kernel port's memory goes. Do it before the first job. The kernel port, which
/// writes the registers when it is closed, stays open until the engine is closed. `CONTIGO_E_KIND`
/// for a GPU, which NVIDIA's driver stops, and for another kernel port than the one before.
///
/// # Safety
/// The kernel port is this engine's device, and its window number `window` the registers: the
/// program's word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_arm(engine: contigo_engine, kernel_port: contigo_kernel_port, window: u32) -> contigo_status {
    // SAFETY: the caller's promise.
    call(|| on(engine, |station| unsafe { station.arm(kernel_port, window) }))
}

/// Closes an engine. `CONTIGO_E_HAS_JOB` while it has a job; `CONTIGO_E_WILL_NOT_STOP` where its device does not stop: it stays open then.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_engine_close(engine: contigo_engine) -> contigo_status {
    call(|| Station::close(engine))
}

/// The UIO device that is called `name`.
fn uio_called(name: &str) -> Result<DeviceName, Fault> {
    let mut text = heapless::String::<{ limits::NAME_BYTES + 4 }>::new();
    let long = Misuse::Text { what: "contigo_engine_options.uio", max_bytes: limits::NAME_BYTES };
    text.push_str("uio:").and_then(|()| text.push_str(name)).map_err(|_| long)?;
    Ok(text.parse()?)
}

/// What the kernel or the simulated board says of a device's way to memory.
fn device_port(device: contigo_device) -> Result<Port, Fault> {
    const FIX: &str = "no kernel says how it reaches memory: name its port";
    let unknown = Error::Unsuitable { name: "the port of the device", value: 0, fix: FIX };
    Ok(DEVICES.lease(device)?.port().ok_or(unknown)?)
}

fn on<R>(engine: contigo_engine, act: impl FnOnce(&mut Station) -> Result<R, Fault>) -> Result<R, Fault> {
    let mut guard = ENGINES.lock(engine)?;
    act(guard.value().ok_or(Misuse::Stale { kind: Kind::Engine })?)
}
