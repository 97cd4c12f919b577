#![allow(unsafe_code, reason = "the program promises what its registers, drivers and ports are")]
//! A device, opened by its name: one opening for its registers and its memory.

use crate::computed::Computed;
use crate::engine::Engine;
use crate::error::{Refusal, of_class, raised, raised_as, refused};
use crate::function::{self, ParameterKind, Size};
use crate::local::{Closable, ProcessLocal};
use crate::lock::Plain;
use crate::memory::Wiring;
use crate::names;
use crate::opening::{GateIn, Opening, as_it_is, held, inside, stop_step, word};
use crate::region::Region;
use crate::shared::{Shared, limit, seconds};
use crate::simulation::Simulation;
use contigo::hw::poll_until;
use contigo::job::{Parts, Settings, StopProgram};
use contigo::linux::same_process;
use contigo::names::{AnyDevice, Attach, DeviceName};
use contigo::{Driver, Error, Mmio, Wait};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use std::fmt::Write;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A device, opened once, by its name: "uio:axi_dma@40400000", "contigo:f8003000", "contigo:gemm8",
/// "pci:0000:01:00.0", "vfio:0000:01:00.0", "cuda:0", "vulkan", "opencl:1", "sim:zdma";
/// `inventory()` lists those that this machine has.
///
/// `close()`, the end of a `with`, and the end of its last handle let go of it; memory and a driver
/// of it have a handle each. A GPU stays open once it has memory or a kernel.
///
/// `port` is how it reaches memory, where the kernel does not report it: a board's by its name
/// ("zynq-hp0"), or (name, offset, address bits, coherent). The program that names it promises it.
/// `window` is which registers: a PCI function's BAR, or an entry of a contigo device's node's
/// `reg`. With `interrupt` the program's own waits and event loops use the device's interrupt; a
/// driver always does, unless it is opened with `interrupt=False`.
#[pyclass(frozen, subclass, module = "contigo")]
pub(crate) struct Device {
    name: DeviceName,
    how: Attach,
    port: Option<Wiring>,
    opening: Closable<Opening>,
    /// What computes the jobs of a simulated kernel.
    computed: Option<Arc<Computed>>,
    /// Present once a register was used, and while no driver has them.
    registers: ProcessLocal<Shared<Option<AnyDevice>>>,
}

impl Device {
    /// Its opening and its window, for a driver that has the registers from now on.
    fn given(&self, py: Python<'_>) -> Result<(Arc<Opening>, u8), Refusal> {
        self.registers.get()?.with(py, |registers| *registers = None);
        Ok((self.opening.get()?, self.how.window))
    }

    /// Lets `act` use the registers. The first use takes them as a driver does.
    fn with<R: Plain + Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut AnyDevice) -> Result<R, Refusal> + Send,
    ) -> Result<R, Refusal> {
        let opening = self.opening.get()?;
        self.registers.get()?.with(py, |registers| act(self.taken(&opening, registers)?))
    }

    fn taken<'r>(
        &self,
        opening: &Opening,
        registers: &'r mut Option<AnyDevice>,
    ) -> Result<&'r mut AnyDevice, Refusal> {
        match registers {
            Some(device) => Ok(device),
            none => Ok(none.insert(opening.attached(self.port, self.how).map_err(held)?)),
        }
    }
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (name, *, port=None, window=0, interrupt=false, _simulation=None))]
    fn new(
        name: &str,
        port: Option<Wiring>,
        window: u8,
        interrupt: bool,
        _simulation: Option<&Simulation>,
    ) -> PyResult<Self> {
        same_process().map_err(raised)?;
        let name = names::device(name)?;
        let how = Attach { window, interrupt };
        let (opening, computed) = match _simulation {
            None => (Opening::of(&name)?, None),
            Some(simulation) => {
                let (device, computed) = simulation.open()?;
                (Opening::new(device), Some(computed))
            }
        };
        let registers = Shared::stalling(None, opening.device.dev_node().is_some());
        Ok(Self {
            opening: Closable::new(Arc::new(opening), "device"),
            how,
            port,
            computed,
            registers: ProcessLocal::new(registers),
            name,
        })
    }

    /// Memory for this device: its own ("contigo", "vfio:0000:01:00.0"), a dma-heap's block,
    /// through its device node where that is what was opened, or memory that belongs to no device.
    /// `bytes` and `port` as `open_memory` has them; without `port` it is the device's. Where the
    /// kernel knows the device's way to memory, that goes before both.
    #[pyo3(signature = (name, bytes=None, *, port=None))]
    fn memory(&self, name: &str, bytes: Option<usize>, port: Option<Wiring>) -> PyResult<Region> {
        let opening = self.opening.get()?;
        Region::open(name, Some(&opening), bytes, port.or(self.port))
    }

    /// Opens the driver called `name` for this device, with settings of its own as keywords. Some
    /// drivers need memory for descriptors or microcode: `memory` is a region of it, and
    /// `memory_bytes` how much, where more than the driver's least is wanted. `map` is a kernel's
    /// description, as its tool wrote it. With the setting `channel`, drivers share a device whose
    /// channels can have one each (a "pl330"): all from the same `Device`, in any thread.
    ///
    /// Where the kernel module has the device ("contigo:…"), the driver leaves its stop with the
    /// kernel, if it has one (`Device.dev_node["armed"]`): however the process ends, the kernel
    /// stops the device before its memory goes. Drivers that share a device have none: `leave_stop`
    /// is theirs, and stays when they are opened.
    ///
    /// `gate` is the gate before the core (docs/stopping.md): where its registers begin in the
    /// core's window, or the `Device` that it is. Then `stop()`, a time limit and the drop of a job
    /// stop the core whatever it does, also a kernel of HLS. Without `channel`.
    ///
    /// The program promises that the device is the one that this driver is for, and that only
    /// drivers that are opened here drive it. No register can prove that. All that the core
    /// does to memory passes its gate, which has the core's reset.
    #[allow(clippy::too_many_arguments, reason = "most are keywords of Python's")]
    #[pyo3(signature = (
        name, *, memory=None, memory_bytes=0, map=None, interrupt=true, gate=None, **settings
    ))]
    fn driver(
        &self,
        py: Python<'_>,
        name: &str,
        memory: Option<&Region>,
        memory_bytes: usize,
        map: Option<&[u8]>,
        interrupt: bool,
        gate: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Engine> {
        let (row, opening) = (names::driver(name)?, self.opening.get()?);
        let opened = &opening.device;
        if self.port.is_none() && opened.port().is_none() {
            let text = format!(
                "no kernel says how {} reaches memory: open the device with {}",
                self.name,
                Wiring::FORM
            );
            return Err(refused(text).into());
        }
        let mut text = String::new();
        for (key, value) in settings.into_iter().flatten() {
            let (key, value): (String, u64) = (key.extract()?, value.extract()?);
            let _ = write!(text, "{key}={value},");
        }
        let memory_bytes = memory_bytes.max(row.memory_bytes).max(1);
        let memory = memory.map(|region| region.driver_memory(memory_bytes)).transpose()?;
        self.given(py)?;
        let (settings, how) = (Settings(&text), Attach { interrupt, ..self.how });
        let port = self.port.map(|Wiring(port)| port);
        let failed = |error| match error {
            Error::HasDriver => held(error),
            Error::UnknownSetting { place, .. } => {
                raised_as(error, format!("{name}: `{}`: {error}", Settings(&text).name(place)))
            }
            _ => raised_as(error, format!("{name}: {error}")),
        };
        // SAFETY: the program promises that the device is this driver's (above), and how it is
        // wired.
        let mut taken = unsafe { opened.take(row, settings, port, how) }.map_err(failed)?;
        if let Some(gate) = gate {
            let gate = gate_in(gate)?;
            // SAFETY: the program promises how the gate is wired (above).
            taken = unsafe { taken.behind(gate.at(self.how.window)) }.map_err(failed)?;
        }
        let parts = Parts { device: (), memory, settings, map };
        // SAFETY: as above.
        let driver = py.detach(|| unsafe { taken.open(parts) }).map_err(failed)?;
        // SAFETY: the driver has stopped the device, or the kernel does so by `program`; it gets no
        // memory but of jobs.
        let enable = || py.detach(|| unsafe { opened.enable_bus_master() }).map_err(raised);
        let program = driver.stop_program();
        let Some(dev_node) = opened.dev_node() else {
            let engine = py.detach(|| Engine::new(row.name, driver, self.computed.clone()))?;
            enable()?;
            return Ok(engine);
        };
        // SAFETY: the program only stops the device (`Driver`, 7), which is the contigo device's,
        // by the window that the driver has.
        unsafe { opening.arm(py, dev_node, &program, self.how.window.into(), true)? };
        // The kernel may run the program here, which shuts a gate; the engine opens it.
        enable()?;
        Ok(py.detach(|| Engine::new(row.name, driver, None))?)
    }

    /// The kernel called `entry` of a GPU: contigo/device.py has its documentation.
    fn _function(
        &self,
        py: Python<'_>,
        entry: &str,
        image: &[u8],
        parameters: Vec<ParameterKind>,
        sizes: Vec<Size>,
    ) -> PyResult<Engine> {
        let gpu = self.opening.get()?;
        // SAFETY: the program promises it, where that documentation asks for it.
        let driver = unsafe { function::driver(py, &gpu, image, entry, &parameters, &sizes)? };
        Ok(py.detach(|| Engine::new(entry.to_owned(), driver, None))?)
    }

    /// The register at `offset`, a multiple of 4 in bytes. The first use takes the device as a
    /// driver does: what is behind an IOMMU is reset, and a simulated one begins as after power-on.
    /// A device that the kernel cannot reset is read as it is, and may not master the bus.
    fn read32(&self, py: Python<'_>, offset: usize) -> Result<u32, Refusal> {
        let opening = self.opening.get()?;
        if let Some(vfio) = opening.device.vfio().filter(|vfio| !vfio.can_reset()) {
            return self.registers.get()?.with(py, |_| as_it_is(vfio, self.how.window, offset));
        }
        self.with(py, |device| word(device, offset))
    }

    /// Writes the register at `offset`, a multiple of 4 in bytes.
    ///
    /// Nothing can check it: a value can start a device that writes anywhere it reaches. The
    /// program promises that the device touches only bytes that were handed to it
    /// (`buf.give()`), and that it has stopped before they are taken back.
    ///
    /// A PCI function that the kernel module has reaches no memory without a driver.
    fn write32(&self, py: Python<'_>, offset: usize, value: u32) -> Result<(), Refusal> {
        self.with(py, |device| {
            inside(device, offset)?;
            // SAFETY: the program's promise, above.
            unsafe { device.write32(offset, value) };
            Ok(())
        })
    }

    /// Waits until the register at `offset`, of which the bits of `mask` count, is `value`: at most
    /// `timeout` seconds. It looks when the interrupt comes (`Device(name, interrupt=True)`), or
    /// again and again. Returns the whole register; `TimeoutError` says what it was at the end.
    #[pyo3(signature = (offset, value, mask=0xFFFF_FFFF, *, timeout=1.0))]
    fn wait32(
        &self,
        py: Python<'_>,
        offset: usize,
        value: u32,
        mask: u32,
        #[pyo3(from_py_with = seconds)] timeout: f64,
    ) -> PyResult<u32> {
        let (opening, mut last) = (self.opening.get()?, 0);
        let found = self.registers.get()?.wait(py, limit(timeout)?, |registers, slice| {
            let device = self.taken(&opening, registers)?;
            inside(device, offset)?;
            let met = poll_until(device, slice, |device| {
                last = device.read32(offset);
                last & mask == value
            });
            Ok(met.map_err(raised)?.then_some(()))
        })?;
        match found {
            Some(()) => Ok(last),
            None => {
                let text = format!(
                    "the register at {offset:#x} is {last:#010x} after {timeout} s, and not \
                     {value:#x} in the bits of {mask:#x}"
                );
                Err(of_class("Timeout", text).into())
            }
        }
    }

    /// Forgets an interrupt that came before and lets the next one come: the file descriptor that
    /// poll(2) finds readable then, for an event loop. None: the device has no interrupt here, or
    /// was opened without (`interrupt=True`).
    fn arm(&self, py: Python<'_>) -> Result<Option<i32>, Refusal> {
        self.with(py, |device| device.arm_irq().map_err(raised))
    }

    /// The interrupt's file descriptor, for `select` and event loops: `arm()` first.
    fn fileno(&self, py: Python<'_>) -> Result<i32, Refusal> {
        let fd = self.with(py, |device| Ok(device.interrupt().map(|fd| fd.as_raw_fd())))?;
        fd.ok_or_else(|| {
            refused(format!(
                "{} has no interrupt here: Device(name, interrupt=True), where it has one",
                self.name
            ))
        })
    }

    /// Resets the device from outside, also while a driver has it: one behind the module by its
    /// reset lines, one behind an IOMMU, or a simulated one. Nothing else stops one that is stuck.
    /// Then `stop()` of its engines, and they go on. `UnsupportedError`, or an `OSError` with
    /// `EOPNOTSUPP`: the kernel has no way to.
    ///
    /// The program promises that no other thread calls an engine, a queue or a stream of it
    /// meanwhile: to start a job, to look, or to wait. Engines that share it (`channel=`) may.
    fn reset(&self, py: Python<'_>) -> Result<(), Refusal> {
        let opening = self.opening.get()?;
        // SAFETY: the program's promise, above.
        py.detach(|| unsafe { opening.device.reset() }).map_err(raised)
    }

    /// Leaves with the kernel what stops a contigo device that this program drives by its
    /// registers. The kernel runs it when the process ends, before the memory goes, and gives
    /// memory back only where it found the device stopped. `steps` are tuples, 32 at most; none
    /// disarm. A driver (`driver`) leaves its own.
    ///
    /// - ("write", offset, value) or ("write", offset, value, mask);
    /// - ("until", offset, value, mask, seconds): looks until the bits of `mask` are `value`;
    /// - ("while", offset, value, mask, seconds): looks while they are;
    /// - ("else",): the steps above have stopped it. Where one of their polls was not met, it goes
    ///   on here.
    ///
    /// All polls together take a second at most.
    ///
    /// The program promises that the steps only stop the device, and that it touches no memory once
    /// their polls are met. `UnsupportedError`: it is no "contigo:…".
    fn leave_stop(&self, py: Python<'_>, steps: Vec<Bound<'_, PyTuple>>) -> PyResult<()> {
        let steps = steps.iter().map(stop_step).collect::<PyResult<Vec<_>>>()?;
        let program = StopProgram::new(&steps).map_err(raised)?;
        let opening = self.opening.get()?;
        let not_contigo = Error::Unsupported {
            what: "the kernel stops only what the module contigo has",
            fix: "bind the device to the kernel module contigo, and open it as contigo:NAME",
        };
        let dev_node = opening.device.dev_node().ok_or_else(|| raised(not_contigo))?;
        // SAFETY: the program's promise, above.
        unsafe { opening.arm(py, dev_node, &program, self.how.window.into(), false)? };
        Ok(())
    }

    /// The kernel's facts about a contigo device, as a dict. `confined`: it reaches what was
    /// imported for it, and nothing else. `can_reset`; `armed`: the kernel has a program that stops
    /// it. `buffers`: blocks that this process has allocated or imported. `quarantined` and
    /// `quarantined_bytes`: those in quarantine, because nothing has stopped it. None: it is no
    /// "contigo:…".
    #[getter]
    fn dev_node<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let opening = self.opening.get()?;
        let Some(dev_node) = opening.device.dev_node() else { return Ok(None) };
        let info = py.detach(|| dev_node.info()).map_err(raised)?;
        let facts = [
            ("coherent", info.coherent),
            ("translated", info.translated),
            ("iommu", info.iommu),
            ("confined", info.confined),
            ("can_reset", info.can_reset),
            ("armed", info.armed),
        ];
        let dict = facts.into_py_dict(py)?;
        for (name, count) in [
            ("interrupts", info.interrupts.into()),
            ("buffers", info.buffers.into()),
            ("quarantined", info.quarantined.into()),
            ("quarantined_bytes", info.quarantined_bytes),
        ] {
            dict.set_item(name, count)?;
        }
        Ok(Some(dict))
    }

    /// The counts of its simulated board, for all its devices, as a dict: `stray_accesses` where no
    /// memory is, `unowned_accesses` to bytes that were not handed over, `bytes_read` and
    /// `bytes_written`. `evictions` and `lost_writes` are missing syncs. None: the device is real.
    #[getter]
    fn simulated<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let opening = self.opening.get()?;
        let Some(board) = opening.device.board() else { return Ok(None) };
        let counts = board.counts();
        let counts = [
            ("stray_accesses", counts.stray_accesses),
            ("unowned_accesses", counts.unowned_accesses),
            ("evictions", counts.evictions),
            ("lost_writes", counts.lost_writes),
            ("bytes_read", counts.bytes_read),
            ("bytes_written", counts.bytes_written),
        ];
        Ok(Some(counts.into_py_dict(py)?))
    }

    /// Lets jobs of its simulated board end well whose device touches bytes that were not handed
    /// over to it, or no memory at all: for a test that provokes that and looks at `simulated`.
    /// Such a job raises a `DeviceError` otherwise, and its device has been stopped.
    /// `UnsupportedError`: the device is real.
    #[pyo3(signature = (allow=true))]
    fn allow_wrong_accesses(&self, allow: bool) -> Result<(), Refusal> {
        let opening = self.opening.get()?;
        let real = Error::Unsupported {
            what: "the device is real",
            fix: "open one of a simulated board, as sim:zdma",
        };
        let board = opening.device.board().ok_or_else(|| raised(real))?;
        board.allow_wrong_accesses(allow).map_err(raised)
    }

    /// How many bytes its registers have.
    #[getter]
    fn window_bytes(&self, py: Python<'_>) -> Result<usize, Refusal> {
        self.with(py, |device| Ok(device.len_bytes()))
    }

    /// The name that the GPU's driver gives it, such as "llvmpipe (LLVM 15.0.6, 256 bits)"; None
    /// where it is no GPU.
    #[getter]
    fn gpu(&self) -> PyResult<Option<String>> {
        Ok(self.opening.get()?.device.gpu_name().map(str::to_owned))
    }

    /// Its name, as it was opened.
    #[getter]
    fn name(&self) -> String {
        self.name.to_string()
    }

    /// Where its first register is; None where the kernel does not say it.
    #[getter]
    fn address(&self) -> PyResult<Option<u64>> {
        Ok(self.opening.get()?.device.addr().map(|address| address.0))
    }

    /// Lets go of it: of its registers and its interrupt. A driver and memory of it keep the device
    /// open until they are closed.
    fn close(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.registers.get()?.with(py, |registers| *registers = None);
        self.opening.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __repr__(&self) -> String {
        let state = self.opening.state();
        match self.gpu() {
            Ok(Some(gpu)) => format!("contigo.Device('{}', gpu='{gpu}'{state})", self.name),
            _ => format!("contigo.Device('{}'{state})", self.name),
        }
    }
}

/// A gate, as the program gives it. A device of its own is the driver's from now on.
fn gate_in(gate: &Bound<'_, PyAny>) -> PyResult<GateIn> {
    if let Ok(device) = gate.cast::<Device>() {
        let (opening, window) = device.get().given(gate.py())?;
        return Ok(GateIn::Own(opening, window));
    }
    let wrong = |_| {
        PyTypeError::new_err(format!(
            "gate is {gate}: the offset of its registers in bytes, or a contigo.Device"
        ))
    };
    gate.extract().map(GateIn::Window).map_err(wrong)
}
