#![allow(unsafe_code, reason = "a core borrows from the opening that it is in, which is pinned")]
//! How a device is taken by its drivers: by one alone, or by several, one a channel.

use super::{AnyDevice, Attach, DriverRow, GateAt, OpenDevice, core_gate::OpenGate};
use crate::{
    hw::Device,
    job::{AnyCore, AnyDriver, DriverCount, KeepAlive, Parts, Settings},
    mem::Port,
    types::{Error, Result, lock},
};
use core::{
    marker::PhantomPinned,
    mem::{self, ManuallyDrop},
    pin::Pin,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};
use spin::Mutex;

/// How many drivers one core has at most, with those that were forgotten: 32 channels, and as
/// many threads as open one that is not free. The count never comes round to 0.
const DRIVERS_MAX: u32 = 1 << 16;

/// The part of a device that several drivers share. The first of them makes it, and the last one's
/// end closes it.
pub(super) struct SharedCore {
    /// INVARIANT: while `drivers` is not 0 it is what they borrow from, and changes only inside.
    core: Mutex<Option<OpenedCore>>,
    /// How many drivers the core has: more only under the lock, and `DRIVERS_MAX` at most.
    drivers: AtomicU32,
    /// The core borrows from the opening around this value.
    _pinned: PhantomPinned,
}

/// A core, and how its device was attached.
struct OpenedCore {
    /// The lifetime is that of the opening, which a type in itself cannot name.
    core: ManuallyDrop<AnyCore<'static>>,
    /// Its row's name.
    driver: &'static str,
    port: Option<Port>,
    how: Attach,
}

impl SharedCore {
    pub(super) const fn new() -> Self {
        Self { core: Mutex::new(None), drivers: AtomicU32::new(0), _pinned: PhantomPinned }
    }

    /// Closes a core without drivers, so that a driver may have the device to itself.
    pub(super) fn close_idle(&self) {
        // Where another thread has the lock it opens a driver, or closes the core itself.
        let Ok(mut core) = lock::acquire(&self.core) else { return };
        // Acquire: what the last driver did came before.
        if self.drivers.load(Ordering::Acquire) == 0
            && let Some(opened) = core.take()
        {
            drop(ManuallyDrop::into_inner(opened.core));
        }
    }

    /// Pulls a reset line, of which the drivers hear that share the device.
    pub(super) fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        match &*lock::acquire(&self.core)? {
            Some(opened) => opened.core.get().reset(pull),
            None => pull(),
        }
    }
}

impl DriverCount for SharedCore {
    fn one_less(&self) {
        if self.drivers.fetch_sub(1, Ordering::Release) == 1 {
            self.close_idle();
        }
    }
}

impl Drop for SharedCore {
    /// The core of a driver that was forgotten is never dropped.
    fn drop(&mut self) {
        self.close_idle();
    }
}

/// A device that was taken for one driver, or a channel of it: [`OpenDevice::take`].
#[must_use = "the device is given back when this is dropped"]
pub struct Taken<'o> {
    row: &'static DriverRow,
    device: &'o OpenDevice,
    how: Attach,
    /// Opened before the driver, which may find its core in a reset otherwise.
    gate: Option<OpenGate<'o>>,
    share: Share<'o>,
}

#[allow(clippy::large_enum_variant, reason = "it is used at once")]
enum Share<'o> {
    Whole(AnyDevice<'o>),
    /// The core is let go last.
    Channel(CoreRef<'o>, KeepAlive<'o>),
}

/// The core, which the `KeepAlive` beside it keeps. It is no reference. A reference would count as
/// used until the function ends that takes both, and the last `KeepAlive` closes the core before.
struct CoreRef<'o>(NonNull<AnyCore<'o>>);

// SAFETY: it gives only a shared reference to the core, which is `Sync`.
unsafe impl Send for CoreRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for CoreRef<'_> {}

impl OpenDevice {
    /// Takes the device for the driver of `row`, through `port`; `None`: the kernel or the
    /// simulated board says how it reaches memory.
    ///
    /// With the setting `channel` a device is shared, where its channels can have a driver each
    /// ([`DriverRow::core`]). Each driver has its channel, in whichever thread, and the others go
    /// on where one stops. Without it the driver has the device to itself.
    ///
    /// A driver that shares its device leaves the kernel no program that stops it
    /// ([`Engine::arm`](crate::Engine::arm)).
    ///
    /// ```
    /// use contigo::{Align, Parts, Queue, Region, Settings, names::{Attach, DeviceName, row}};
    /// use core::time::Duration;
    /// let device = std::pin::pin!("sim:pl330".parse::<DeviceName>()?.open()?);
    /// let region = Region::new(device.memory(&"sim".parse()?, 1 << 20)?)?;
    /// let take = || Ok::<_, contigo::Error>(region.carve(4096, Align::LINE)?.into_buf());
    /// let open = |settings| {
    ///     let settings = Settings(settings);
    ///     // SAFETY: the model is a PL330, which nobody else drives.
    ///     unsafe {
    ///         let taken = device.as_ref().take(row("pl330")?, settings, None, Attach::default())?;
    ///         taken.open(Parts { device: (), memory: Some(take()?), settings, map: None })
    ///     }
    /// };
    /// let mut first: Queue<'_, _, 1, 2> = Queue::new(open("channel=0")?)?;
    /// let mut second: Queue<'_, _, 1, 2> = Queue::new(open("channel=1")?)?;
    /// for queue in [&mut first, &mut second] {
    ///     queue.push_words([take()?.to_device(..), take()?.from_device(..)], &[])?;
    /// }
    /// first.stop()?;
    /// assert!(second.next_words(Duration::from_millis(20))?.is_some(), "it goes on");
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::HasDriver`]: a driver has the device, or another row's drivers share it,
    ///   behind another port, or it was attached otherwise.
    /// - [`Error::TooMany`]: 65,536 drivers of it were forgotten.
    /// - [`Error::UnknownSetting`], [`Error::NotANumber`], [`Error::OtherModel`]: told before the device is touched.
    /// - The errors of [`attach`](Self::attach), [`attach_wired`](Self::attach_wired) and the row's
    ///   functions.
    ///
    /// # Safety
    /// The device is the one that the driver is for. Nobody else drives it, except for drivers that
    /// are taken here. As [`attach_wired`](Self::attach_wired), where there is a port.
    pub unsafe fn take<'o>(
        self: Pin<&'o Self>,
        row: &'static DriverRow,
        settings: Settings<'_>,
        port: Option<Port>,
        how: Attach,
    ) -> Result<Taken<'o>> {
        let this = self.get_ref();
        row.settings.map_or(Ok(()), |known| settings.only(known))?;
        this.fits(row, settings, None)?;
        let channel = settings.number("channel", 0, u8::MAX.into())?;
        let Some(open_core) = row.core.filter(|_| channel.is_some()) else {
            let device = match port {
                // SAFETY: the caller's promise.
                Some(port) => unsafe { this.attach_wired(port, how)? },
                None => this.attach(how)?,
            };
            return Ok(Taken { row, device: this, how, gate: None, share: Share::Whole(device) });
        };
        let port = port.map_or_else(|| this.port(), |port| Some(this.seen_through(port)));
        this.shared.close_idle();
        let mut held = lock::acquire(&this.shared.core)?;
        // A core that drivers borrow is never borrowed mutably: only an empty place is written.
        if held.is_none() {
            let device = this.attach_through(port, how)?;
            // SAFETY: the caller's promise.
            let core: AnyCore<'o> = unsafe { open_core(device)? };
            // SAFETY: only the lifetime changes. The core borrows from the opening, which is
            // pinned: it stays where it is until it is dropped, and drops the core before.
            let core = unsafe { mem::transmute::<AnyCore<'o>, AnyCore<'static>>(core) };
            *held = Some(OpenedCore { core: ManuallyDrop::new(core), driver: row.name, port, how });
        }
        let same = |opened: &&OpenedCore| (opened.driver, opened.port, opened.how) == (row.name, port, how);
        let opened = held.as_ref().filter(same).ok_or(Error::HasDriver)?;
        // Where each was forgotten, the device stays theirs.
        if this.shared.drivers.load(Ordering::Relaxed) >= DRIVERS_MAX {
            return Err(Error::TooMany { what: "drivers of one device, with those that were forgotten", most: DRIVERS_MAX.into() });
        }
        // Its lifetime is again the opening's, which it borrows from.
        let core = CoreRef(NonNull::from(&*opened.core).cast::<AnyCore<'o>>());
        this.shared.drivers.fetch_add(1, Ordering::Relaxed);
        drop(held);
        let share = Share::Channel(core, KeepAlive::new(&this.shared));
        Ok(Taken { row, device: this, how, gate: None, share })
    }
}

impl<'o> Taken<'o> {
    /// The same device, whose core has a gate before its master: the driver stops it by the gate,
    /// whatever it does. Where a program that died left the core in its reset, that ends here.
    ///
    /// In the driver's own window the gate is its stop program too. A gate elsewhere leaves the
    /// kernel none.
    ///
    /// # Errors
    /// - [`Error::RegisterWindow`], [`Error::WrongDevice`]: no gate is there.
    /// - [`Error::WillNotStop`]: the core is in its reset, and the interconnect owes an answer.
    /// - [`Error::HasDriver`]: a driver has the gate's own device.
    /// - [`Error::Unsupported`]: the device is shared (`channel`), and the gate would stop all its
    ///   channels; or it is behind an IOMMU, and the gate in its window.
    /// - The errors of [`OpenDevice::attach`].
    ///
    /// # Safety
    /// As [`Gated::new`](crate::drivers::axi_gate::Gated::new), of the driver that is opened. In
    /// the core's window nobody but this gate writes the gate's registers.
    pub unsafe fn behind(self, gate: GateAt<'o>) -> Result<Self> {
        let port = match &self.share {
            Share::Whole(device) => *device.port(),
            Share::Channel(..) => {
                return Err(Error::Unsupported { what: "a gate stops all channels of a core", fix: "open the driver without `channel`" });
            }
        };
        // SAFETY: the caller's promise.
        let gate = unsafe { OpenGate::open(gate, self.device, self.how, port)? };
        Ok(Self { gate: Some(gate), ..self })
    }

    /// Opens the driver. `parts` has no device.
    ///
    /// # Errors
    /// [`Error::HasDriver`]: another driver has the channel. [`Error::OtherModel`]: the map or the
    /// settings are not the simulated core's. [`Error::Unsupported`]: the core opened a channel of another device. The error of the driver's own function.
    ///
    /// # Safety
    /// As [`DriverRow::open`], and with the settings that the device was taken with.
    pub unsafe fn open(self, parts: Parts<'o, '_, ()>) -> Result<AnyDriver<'o>> {
        let Parts { memory, settings, map, .. } = parts;
        self.device.fits(self.row, settings, map)?;
        match self.share {
            Share::Whole(device) => {
                // SAFETY: the caller's promise.
                let driver = unsafe { (self.row.open)(Parts { device, memory, settings, map })? };
                match self.gate {
                    // SAFETY: `behind`'s caller promised it.
                    Some(gate) => unsafe { gate.before(driver) },
                    None => Ok(driver),
                }
            }
            Share::Channel(core, keep) => {
                // SAFETY: 1. The core is in its place, in the pinned opening, as long as it is
                // counted, and `take` counted it under the lock. `Taken`, like the driver, drops
                // the count last. Where they are forgotten the count stays, and with it the core.
                // 2. It is only shared until then.
                let core: &'o AnyCore<'o> = unsafe { core.0.as_ref() };
                // SAFETY: the caller's promise.
                let driver = unsafe { core.get().open(Parts { device: (), memory, settings, map })? };
                driver.keeping(keep)
            }
        }
    }
}

impl core::fmt::Debug for Taken<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let shared = matches!(self.share, Share::Channel(..));
        f.debug_struct("Taken").field("row", self.row).field("shared", &shared).finish()
    }
}
