#![allow(unsafe_code, reason = "which driver a device has is a program's claim")]
//! How drivers take a device: one driver alone, or several, one for each channel.

use super::any_device::AnyDevice;
use super::attachment::Attach;
use super::core_gate::{GateAt, OpenGate};
use super::open_device::NO_PORT;
use super::opened::OpenDevice;
use super::registry::DriverRow;
use super::shared_core::{DRIVERS_MAX, OpenedCore};
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::job::{AnyDriver, Descriptors, Driver, Parts, Settings};
use contigo_core::mem::{CpuBuf, DriverBuf, Port, Region};
use contigo_core::types::{Align, Error, Result, lock};
use core::sync::atomic::Ordering;

/// One of the drivers of a device's core.
struct Counted(OpenDevice);

impl Counted {
    /// Counts one more driver of `device`'s core. `_opened` shows that the lock is held.
    fn of(device: &OpenDevice, _opened: &OpenedCore) -> Result<Self> {
        let shared = device.core();
        // If all of them were forgotten, the device stays theirs.
        if shared.drivers.load(Ordering::Relaxed) >= DRIVERS_MAX {
            return Err(Error::TooMany {
                what: "drivers of one device, with those that were forgotten",
                most: DRIVERS_MAX.into(),
            });
        }
        shared.drivers.fetch_add(1, Ordering::Relaxed);
        Ok(Self(device.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let core = self.0.core();
        if core.drivers.fetch_sub(1, Ordering::Release) == 1 {
            core.close_idle();
        }
    }
}

/// The driver of a channel, which is counted until it is dropped.
struct OfChannel {
    driver: AnyDriver,
    _counted: Counted,
}

// SAFETY: every method is the driver's own.
unsafe impl Driver for OfChannel {
    forward!(|this| this.driver =>
        name, port, simulated, addr_bits, operands, depth, in_order, check, submit,
        submit_more, waits_for_doorbell, doorbell, poll, poll_again, stop, arm_irq, underruns
    );
    // No stop program: the kernel runs one for each device, and this driver's program leaves the
    // siblings running.
}

/// A device that was taken for one driver, or a channel of it: [`OpenDevice::take`].
#[must_use = "the device is given back when this is dropped"]
pub struct Taken {
    row: &'static DriverRow,
    device: OpenDevice,
    how: Attach,
    port: Port,
    /// Opened before the driver, which may otherwise find its core in reset.
    gate: Option<OpenGate>,
    share: Share,
}

enum Share {
    Whole(AnyDevice),
    Channel(Counted),
}

impl OpenDevice {
    /// Takes the device for the driver of `row`, through `port`; `None`: the kernel or the
    /// simulated board reports the port.
    ///
    /// With the setting `channel`, a device whose channels can have a driver each
    /// ([`DriverRow::core`]) is shared. Each driver has its channel, in any thread, and when one
    /// stops, the others go on. Without the setting, the driver has the device to itself.
    ///
    /// A driver that shares its device loads no stop program into the kernel
    /// ([`Queue::arm`](crate::Queue::arm)).
    ///
    /// ```
    /// use contigo::{Align, Queue, Region, job::{Parts, Settings}};
    /// use contigo::names::{Attach, DeviceName, row};
    /// use core::time::Duration;
    /// let device = "sim:pl330".parse::<DeviceName>()?.open()?;
    /// let region = Region::new(device.memory(&"sim".parse()?, 1 << 20)?)?;
    /// let take = || region.alloc(4096, Align::LINE);
    /// let open = |settings| {
    ///     let settings = Settings(settings);
    ///     // SAFETY: the model is a PL330, which no other code drives.
    ///     unsafe {
    ///         let taken = device.take(row("pl330")?, settings, None, Attach::default())?;
    ///         taken.open(Parts { device: (), memory: Some(take()?), settings, map: None })
    ///     }
    /// };
    /// let mut first = Queue::new(open("channel=0")?, 1)?;
    /// let mut second = Queue::new(open("channel=1")?, 1)?;
    /// for queue in [&mut first, &mut second] {
    ///     queue.submit([take()?.to_device(..), take()?.from_device(..)], &[])?;
    /// }
    /// first.stop()?;
    /// assert!(second.wait::<2>(Duration::from_millis(20))?.is_some(), "it goes on");
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::HasDriver`]: a driver has the device, or it is shared by another row's drivers,
    ///   behind another port, or with another attachment. If a channel did not stop when its driver
    ///   was dropped, that driver stays, and no driver can take the whole device.
    /// - [`Error::TooMany`]: 65,536 drivers of it were forgotten.
    /// - [`Error::UnknownSetting`], [`Error::NotANumber`], [`Error::OtherModel`]: reported before
    ///   the device is touched.
    /// - The errors of [`attach`](Self::attach), [`attach_wired`](Self::attach_wired) and the row's
    ///   functions.
    ///
    /// # Safety
    /// The device is the one that the driver is for. No other code drives it, except for drivers
    /// that are taken here. With a port, as [`attach_wired`](Self::attach_wired).
    pub unsafe fn take(
        &self,
        row: &'static DriverRow,
        settings: Settings<'_>,
        port: Option<Port>,
        how: Attach,
    ) -> Result<Taken> {
        row.settings.map_or(Ok(()), |known| settings.only(known))?;
        self.fits(row, settings, None)?;
        let channel = settings.number("channel", 0, u8::MAX.into())?;
        let Some(open_core) = row.core.filter(|_| channel.is_some()) else {
            let device = match port {
                // SAFETY: the caller's promise.
                Some(port) => unsafe { self.attach_wired(port, how)? },
                None => self.attach(how)?,
            };
            let port = *device.port();
            let (device, share) = (self.clone(), Share::Whole(device));
            return Ok(Taken { row, device, how, port, gate: None, share });
        };
        let port = port.map_or_else(|| self.port(), |port| Some(self.seen_through(port)));
        let port = port.ok_or(NO_PORT)?;
        let shared = self.core();
        shared.close_idle();
        let mut held = lock::acquire(&shared.opened)?;
        if held.is_none() {
            // SAFETY: the caller's promise.
            let core = unsafe { open_core(self.attach_through(Some(port), how)?)? };
            *held = Some(OpenedCore { core, driver: row.name, port, how });
        }
        let same =
            |opened: &OpenedCore| (opened.driver, opened.port, opened.how) == (row.name, port, how);
        let Some(opened) = held.as_ref().filter(|opened| same(opened)) else {
            return Err(Error::HasDriver);
        };
        let share = Share::Channel(Counted::of(self, opened)?);
        drop(held);
        Ok(Taken { row, device: self.clone(), how, port, gate: None, share })
    }
}

/// `memory`, if a driver whose device is on `port` can keep it.
///
/// # Errors
/// As [`DriverBuf::new`].
fn reached(memory: CpuBuf, port: &Port, addr_bits: u32) -> Result<CpuBuf> {
    let memory = DriverBuf::new(memory, port, addr_bits).map_err(|refused| refused.error)?;
    // SAFETY: no device was given its address.
    Ok(unsafe { memory.reclaim() })
}

impl OpenDevice {
    /// The memory that a driver of this device keeps for itself, and how it is shared. `given` is
    /// what the program has for it; the device reaches it through `port`.
    ///
    /// A driver whose row lists [`Descriptors::SETTING`] gets as much memory that is coherent for
    /// the device instead, if the port does not snoop and the kernel module has the device: then no
    /// descriptor is a system call. `given` goes back to its region. If the kernel has no such
    /// memory left, or the device does not reach it, the driver gets `given`. With the setting at 1
    /// it always gets coherent memory, also if nothing is given, and also from a simulated board;
    /// with 0, never. So the setting also selects the mode of a driver that has another one without
    /// memory, such as `axi_cdma`.
    ///
    /// The device reaches what `port` and the setting `address_bits` say, which is 32 if the row
    /// lists it and it is not set. A core that reaches less may still refuse the memory.
    ///
    /// # Errors
    /// [`Error::NotANumber`], [`Error::Argument`]: the setting is neither 0 nor 1. If the setting
    /// is 1, [`Error::Unsupported`]: the device has no such memory; and the errors of
    /// [`DevNode::allocate_coherent`](crate::linux::dev_node::DevNode::allocate_coherent) and
    /// [`DriverBuf::new`]. Without it, those that no other memory would avoid.
    pub fn driver_memory(
        &self,
        row: &DriverRow,
        settings: Settings<'_>,
        port: &Port,
        given: Option<CpuBuf>,
    ) -> Result<(Option<CpuBuf>, Option<Descriptors>)> {
        const NONE: Error = Error::Unsupported {
            what: "this device has no memory that is coherent for it",
            fix: "bind it to the kernel module contigo, or leave out coherent_memory=1",
        };
        let Some(known) = row.settings.filter(|known| known.contains(&Descriptors::SETTING)) else {
            return Ok((given, None));
        };
        let shared = if port.coherent { Descriptors::Snooped } else { Descriptors::Coherent };
        let asked = settings.number(Descriptors::SETTING, 0, 1)?;
        let otherwise = if known.contains(&"address_bits") { 32 } else { u64::BITS };
        let addr_bits = settings.value("address_bits", 0, u32::MAX, otherwise)?;
        let allocated = |len_bytes| {
            let Some(memory) = self.coherent_memory(len_bytes, asked == Some(1))? else {
                return Ok(None);
            };
            let memory = Region::new(memory)?.alloc(len_bytes, Align::PAGE)?;
            Ok(Some(reached(memory, port, addr_bits)))
        };
        let given = match (asked, given) {
            (Some(1), given) => {
                let least = row.memory_bytes.max(Align::PAGE.bytes());
                let len_bytes = given.as_ref().map_or(least, CpuBuf::len_bytes);
                let memory = allocated(len_bytes)?.ok_or(NONE)??;
                return Ok((Some(memory), Some(shared)));
            }
            (_, Some(given)) => given,
            (_, None) => return Ok((None, None)),
        };
        if port.coherent {
            return Ok((Some(given), Some(shared)));
        }
        let refused = match asked.map_or_else(|| allocated(given.len_bytes()), |_| Ok(None)) {
            Ok(Some(Ok(memory))) => return Ok((Some(memory), Some(shared))),
            Ok(None) => None,
            Ok(Some(Err(error)))
            | Err(error @ (Error::NoMemory { .. } | Error::TooMany { .. })) => Some(error),
            Err(error) => return Err(error),
        };
        Ok((Some(given), Some(Descriptors::Synced { refused })))
    }

    /// Pulls a reset line, and tells the drivers that share the device.
    pub(super) fn reset_by(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let held = lock::acquire(&self.core().opened)?;
        // Under the lock, so that a driver that opens meanwhile does not miss the reset.
        let Some(opened) = held.as_ref() else { return pull() };
        // Counted as a driver, so that dropping the last one closes the core after the reset. It is
        // dropped after the handle to the core.
        let (_counted, core) = (Counted::of(self, opened)?, opened.core.clone());
        drop(held);
        core.get().reset(pull)
    }
}

impl Taken {
    /// The same device, with a gate before its core's master, by which the driver stops the core in
    /// any state. If a program that died left the core in its reset, this ends that.
    ///
    /// If the gate is in the driver's own window, it is the driver's stop program too. A gate
    /// elsewhere loads no stop program into the kernel.
    ///
    /// # Errors
    /// - [`Error::RegisterWindow`], [`Error::WrongDevice`]: no gate is there.
    /// - [`Error::WillNotStop`]: the core is in reset, and the interconnect owes an answer.
    /// - [`Error::HasDriver`]: a driver has the gate's own device.
    /// - [`Error::Unsupported`]: the device is shared (`channel`), and the gate would stop all its
    ///   channels; or it is behind an IOMMU, and the gate is in its window.
    /// - The errors of [`OpenDevice::attach`].
    ///
    /// # Safety
    /// As [`Gated::new`](crate::drivers::axi_gate::Gated::new), of the driver that is opened. In
    /// the core's window only this gate writes the gate's registers.
    pub unsafe fn behind(self, gate: GateAt<'_>) -> Result<Self> {
        let port = match &self.share {
            Share::Whole(device) => *device.port(),
            Share::Channel(_) => {
                return Err(Error::Unsupported {
                    what: "a gate stops all channels of a core",
                    fix: "open the driver without `channel`",
                });
            }
        };
        // SAFETY: the caller's promise.
        let gate = unsafe { OpenGate::open(gate, &self.device, self.how, port)? };
        Ok(Self { gate: Some(gate), ..self })
    }

    /// Opens the driver. `parts` has no device. Its memory may be replaced by memory of the device
    /// that needs no sync ([`OpenDevice::driver_memory`]); [`AnyDriver::descriptors`] tells.
    ///
    /// # Errors
    /// The errors of [`OpenDevice::driver_memory`]. [`Error::HasDriver`]: another driver has the
    /// channel. [`Error::OtherModel`]: the map or the settings do not fit the simulated core. The
    /// error of the driver's own function.
    ///
    /// # Safety
    /// As [`DriverRow::open`], and with the settings that the device was taken with.
    pub unsafe fn open(self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let Parts { memory, settings, map, .. } = parts;
        self.device.fits(self.row, settings, map)?;
        let (memory, descriptors) =
            self.device.driver_memory(self.row, settings, &self.port, memory)?;
        let driver = match self.share {
            Share::Whole(device) => {
                // SAFETY: the caller's promise.
                let driver = unsafe { (self.row.open)(Parts { device, memory, settings, map })? };
                match self.gate {
                    // SAFETY: `behind`'s caller promised it.
                    Some(gate) => unsafe { gate.before(driver)? },
                    None => driver,
                }
            }
            Share::Channel(counted) => {
                // It is counted, so there is a core. This takes a handle to it, so that other
                // threads do not wait while this driver opens.
                let core = lock::acquire(&self.device.core().opened)?
                    .as_ref()
                    .map(|opened| opened.core.clone());
                // SAFETY: the caller's promise.
                let driver = unsafe {
                    core.ok_or(Error::HasDriver)?.get().open(Parts {
                        device: (),
                        memory,
                        settings,
                        map,
                    })?
                };
                AnyDriver::new(OfChannel { driver, _counted: counted })?
            }
        };
        Ok(driver.opened_with(descriptors))
    }
}

impl core::fmt::Debug for Taken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let shared = matches!(self.share, Share::Channel(_));
        f.debug_struct("Taken").field("row", self.row).field("shared", &shared).finish()
    }
}
