#![allow(
    unsafe_code,
    reason = "how a device is wired is a fact about the board, which a program can only claim"
)]
//! What an open device gives: its registers, its port, its reset.

use super::DeviceName;
use super::any_device::AnyDevice;
use super::any_module::AnyModule;
use super::attachment::{Attach, Attachment};
use super::opened::{OpenDevice, Opened};
use super::provided::GpuDevice;
use super::registry::DriverRow;
use contigo_core::job::Settings;
use contigo_core::linux::dev_node::DevNode;
use contigo_core::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo_core::mem::Port;
use contigo_core::types::{Error, PhysAddr};
use core::fmt;
use core::sync::atomic::Ordering;

impl OpenDevice {
    /// Pulls the reset line of a simulated device: only this stops a stuck one.
    /// [`reset`](Self::reset) resets a real device.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it is not a simulated device. [`Error::Contended`].
    #[cfg(feature = "sim")]
    pub fn reset_simulated(&self) -> Result<(), Error> {
        match &self.0.opened {
            Opened::Simulated(_, models) => self.reset_by(&mut || super::simulated::reset(models)),
            _ => Err(Error::Unsupported {
                what: "this device is real",
                fix: "reset it with OpenDevice::reset",
            }),
        }
    }

    /// Resets the device from outside, not through its driver, as VFIO, the module `contigo` or the
    /// simulated board can. It is then as after power-on, and accesses no memory. To continue with
    /// the queue of a device that would not stop, call [`Queue::stop`](crate::Queue::stop), before
    /// or right after ([`DevNode::reset`]). A PCI function masters the bus as before.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: the kernel cannot reset it. The errors of [`DevNode::reset`] and
    /// [`Vfio::reset`]. [`Error::Contended`].
    ///
    /// # Safety
    /// As [`DevNode::reset`]: no other thread calls a queue or a stream of it meanwhile. Drivers
    /// that share it (the setting `channel`) may go on, because their core keeps them away.
    pub unsafe fn reset(&self) -> Result<(), Error> {
        const NONE: Error = Error::Unsupported {
            what: "the kernel cannot reset this device",
            fix: "use VFIO's reset, a contigo device's, or the board's",
        };
        match &self.0.opened {
            Opened::ContigoDevice(contigo_device) => {
                // SAFETY: the caller's promise.
                self.reset_by(&mut || unsafe { contigo_device.dev_node.reset() })
            }
            // SAFETY: the caller's promise.
            Opened::Vfio(vfio) => self.reset_by(&mut || unsafe { vfio.reset() }),
            #[cfg(feature = "sim")]
            Opened::Simulated(..) => self.reset_simulated(),
            _ => Err(NONE),
        }
    }

    /// The name by which it was opened.
    #[must_use]
    pub fn name(&self) -> &DeviceName {
        &self.0.name
    }

    /// Its port, if the kernel or the simulated board reports it; `None` for a device whose port
    /// only the board's manual gives.
    #[must_use]
    pub fn port(&self) -> Option<Port> {
        match &self.0.opened {
            Opened::Plain(_) | Opened::ContigoDevice(_) => None,
            Opened::Vfio(vfio) => Some(vfio.port()),
            #[cfg(feature = "sim")]
            Opened::Simulated(board, _) => Some(board.port()),
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Opened::Gpu(gpu) => Some(gpu.port()),
            Opened::Provided(gpu) => Some(gpu.port()),
        }
    }

    /// `port`, as the kernel describes this device: [`DevNode::seen_through`] for a contigo device,
    /// VFIO's own port, or `port` itself, on the board's bus for a simulated device.
    #[must_use]
    pub fn seen_through(&self, port: Port) -> Port {
        match &self.0.opened {
            Opened::ContigoDevice(contigo_device) => contigo_device.dev_node.seen_through(port),
            #[cfg(feature = "sim")]
            Opened::Simulated(board, _) => Port { bus: board.bus(), ..port },
            _ => self.port().unwrap_or(port),
        }
    }

    /// The address of its first register, if the kernel reports it: for a UIO device, and for a
    /// contigo device that is no PCI function.
    #[must_use]
    pub fn addr(&self) -> Option<PhysAddr> {
        match &self.0.opened {
            Opened::Plain(registers) => registers.addr(),
            Opened::ContigoDevice(contigo_device) => contigo_device.addr(),
            _ => None,
        }
    }

    /// Refuses what does not fit a simulated core; for a real one, the program's settings count.
    #[cfg_attr(
        not(feature = "sim"),
        allow(clippy::unused_self, reason = "only a model says what it is")
    )]
    pub(super) fn fits(
        &self,
        row: &DriverRow,
        settings: Settings<'_>,
        map: Option<&[u8]>,
    ) -> Result<(), Error> {
        #[cfg(feature = "sim")]
        if let Opened::Simulated(_, models) = &self.0.opened {
            return super::simulated::fits(
                models,
                row.name,
                row.settings.unwrap_or_default(),
                settings,
                map,
            );
        }
        let _ = (row, settings, map);
        Ok(())
    }

    /// Returns whether `owner` names it.
    pub(super) fn is(&self, owner: &DeviceName) -> bool {
        if owner.kind() != self.0.name.kind() {
            return false;
        }
        match &self.0.opened {
            #[cfg(feature = "sim")]
            Opened::Simulated(board, _) => owner.seed().is_none_or(|seed| seed == board.seed()),
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Opened::Gpu(_) => owner.number().unwrap_or(0) == self.0.name.number().unwrap_or(0),
            Opened::Provided(_) => owner.number().unwrap_or(0) == self.0.name.number().unwrap_or(0),
            Opened::ContigoDevice(contigo_device) => contigo_device.is_called(owner.argument()),
            _ => owner.argument() == self.0.name.argument(),
        }
    }

    /// Its registers and its interrupt, for one driver at a time, if [`port`](Self::port) has its
    /// port. A device behind an IOMMU is reset first, and may then master the bus; a simulated one
    /// begins as after power-on. A PCI function behind the module no longer masters the bus,
    /// until [`enable_bus_master`](Self::enable_bus_master).
    ///
    /// # Errors
    /// - [`Error::HasDriver`]: a driver has it, or was forgotten.
    /// - [`Error::Unsupported`]: no kernel reports its port; use
    ///   [`attach_wired`](Self::attach_wired).
    /// - The errors of [`VfioDevice::open`].
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn attach(&self, how: Attach) -> Result<AnyDevice, Error> {
        self.0.core.close_idle();
        self.attach_through(self.port(), how)
    }

    /// As [`attach`](Self::attach), for a device whose port the program declares; any other device
    /// keeps its own.
    ///
    /// # Errors
    /// - As [`attach`](Self::attach).
    /// - The errors of [`DevNode::registers`] and [`DevNode::irq`], of
    ///   [`Uio::find`](crate::linux::device::Uio::find), or of
    ///   [`PciFunction::open`](crate::linux::device::PciFunction::open) and
    ///   [`PciFunction::bar`](crate::linux::device::PciFunction::bar).
    ///
    /// # Safety
    /// As [`Wired::new`](crate::hw::Wired::new): the device reaches memory through `port`, or,
    /// where the module has it, through [`seen_through`](Self::seen_through) of it, and no other
    /// way.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn attach_wired(&self, port: Port, how: Attach) -> Result<AnyDevice, Error> {
        self.0.core.close_idle();
        self.attach_through(Some(self.seen_through(port)), how)
    }

    /// `port` is true of it: the kernel or the board reports it, or a caller promised it.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn attach_through(
        &self,
        port: Option<Port>,
        how: Attach,
    ) -> Result<AnyDevice, Error> {
        let port = port.ok_or(NO_PORT)?;
        if self.0.attached.swap(true, Ordering::Acquire) {
            return Err(Error::HasDriver);
        }
        let made = self.attachment(port, how);
        let attachment = made.inspect_err(|_| self.let_go())?;
        Ok(AnyDevice::new(attachment, port, self.clone()))
    }

    /// A second handle on the registers, for a gate that is among them: a device that was attached
    /// is not reset, and its driver keeps it.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it is behind an IOMMU, which cuts it off without a gate.
    pub(super) fn second(&self, how: Attach, port: Port) -> Result<AnyDevice, Error> {
        let attachment = match &self.0.opened {
            Opened::Vfio(_) => {
                return Err(Error::Unsupported {
                    what: "a device of VFIO has its registers once",
                    fix: "leave the gate open: the IOMMU cuts the device off",
                });
            }
            #[cfg(feature = "sim")]
            Opened::Simulated(board, models) => {
                Attachment::Simulated(super::simulated::lent(board, models, port)?)
            }
            _ => self.attachment(port, how)?,
        };
        Ok(AnyDevice::second(attachment, port))
    }

    #[cfg_attr(feature = "audit", track_caller)]
    fn attachment(&self, port: Port, how: Attach) -> Result<Attachment, Error> {
        match &self.0.opened {
            Opened::Plain(registers) => registers.attachment(&port, how),
            Opened::ContigoDevice(contigo_device) => contigo_device.attachment(how),
            Opened::Vfio(vfio) => {
                let interrupt = if how.interrupt { Interrupt::Any } else { Interrupt::Polled };
                Ok(Attachment::Vfio(VfioDevice::open(vfio, how.window, interrupt)?))
            }
            #[cfg(feature = "sim")]
            Opened::Simulated(board, models) => {
                Ok(Attachment::Simulated(super::simulated::attach(board, models, port)?))
            }
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Opened::Gpu(_) => Err(NO_REGISTERS),
            Opened::Provided(_) => Err(NO_REGISTERS),
        }
    }

    /// Lets a PCI function reach memory, by its command register; any other device may already. Its
    /// driver has stopped it before ([`Queue::new`](crate::Queue::new) does).
    ///
    /// # Errors
    /// The errors of [`BusMaster::enable`](crate::linux::device::BusMaster::enable).
    ///
    /// # Safety
    /// As [`BusMaster::enable`](crate::linux::device::BusMaster::enable).
    pub unsafe fn enable_bus_master(&self) -> Result<(), Error> {
        match &self.0.opened {
            // SAFETY: the caller's promise.
            Opened::Plain(registers) => unsafe { registers.enable_bus_master() },
            _ => Ok(()),
        }
    }

    /// Its device node, to load a stop program into the kernel ([`Queue::arm`](crate::Queue::arm)).
    #[must_use]
    pub fn dev_node(&self) -> Option<&DevNode> {
        match &self.0.opened {
            Opened::ContigoDevice(contigo_device) => Some(&contigo_device.dev_node),
            _ => None,
        }
    }

    /// Its address space behind the IOMMU, to reset it, or to cut it off from memory.
    #[must_use]
    pub fn vfio(&self) -> Option<&Vfio> {
        match &self.0.opened {
            Opened::Vfio(vfio) => Some(vfio),
            _ => None,
        }
    }

    /// Its simulated board, for other models, and for the faults that struck.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn board(&self) -> Option<&contigo_sim::SimBoard> {
        match &self.0.opened {
            Opened::Simulated(board, _) => Some(board),
            _ => None,
        }
    }

    /// The name that a GPU's driver gives it; `None` for another device. On a machine with drivers
    /// for the CPU, such as Mesa's lavapipe and pocl, the name shows which GPU a number means.
    #[must_use]
    pub fn gpu_name(&self) -> Option<&str> {
        match &self.0.opened {
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Opened::Gpu(gpu) => Some(&gpu.facts().name),
            Opened::Provided(gpu) => Some(gpu.name()),
            _ => None,
        }
    }

    /// Loads code for a GPU: PTX with a NUL at its end, a cubin or a fatbin for `cuda`; SPIR-V for
    /// `vulkan`; OpenCL C text for `opencl`. The GPU's driver compiles and allocates at will, so
    /// load before the first job. Its compiler writes its messages to `log` if it refuses the code.
    ///
    /// # Errors
    /// - [`Error::Unsupported`]: this device is not a GPU.
    /// - [`Error::Cuda`], [`Error::Gpu`]: its driver refuses the code. The error of the interface's
    ///   own function.
    ///
    /// # Safety
    /// A compiler made the code for this kind of GPU, and it is whole; a text is what the program
    /// means to run. With any other bytes a driver may do anything.
    pub unsafe fn load(&self, code: &[u8], log: &mut dyn fmt::Write) -> Result<AnyModule, Error> {
        match &self.0.opened {
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            // SAFETY: the caller's promise.
            Opened::Gpu(gpu) => unsafe { super::gpu::load_cuda(gpu, code, log) },
            // SAFETY: the caller's promise.
            Opened::Provided(gpu) => unsafe { gpu.load(code, log) },
            _ => Err(Error::Unsupported {
                what: "code is loaded for a GPU",
                fix: "open one: cuda:0, vulkan or opencl",
            }),
        }
    }

    /// The GPU, for its memory and its facts.
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    #[must_use]
    pub fn gpu(&self) -> Option<&contigo_core::cuda::Gpu> {
        match &self.0.opened {
            Opened::Gpu(gpu) => Some(gpu),
            _ => None,
        }
    }

    /// The GPU that another crate provided, for its memory.
    pub(super) fn provided(&self) -> Option<&'static dyn GpuDevice> {
        match &self.0.opened {
            Opened::Provided(gpu) => Some(*gpu),
            _ => None,
        }
    }
}

/// The error for a device whose port no kernel reports.
pub const NO_PORT: Error = Error::Unsupported {
    what: "no kernel says how this device reaches memory",
    fix: "name its port",
};

const NO_REGISTERS: Error =
    Error::Unsupported { what: "a GPU has no window of registers", fix: "launch a kernel on it" };
