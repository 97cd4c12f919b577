#![allow(
    unsafe_code,
    reason = "which registers are a channel's is a promise, and a channel is a device"
)]
//! One device whose channels have a driver each, and one channel as its driver's device.

use crate::hw::{CoreLock, Device, Mmio, Seen, Siblings, Wait};
use crate::mem::Port;
use crate::types::platform::forward_as_fd;
use crate::types::shared::Shared;
use crate::types::{Error, Result};
use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Range;

/// **A device whose channels share registers, one interrupt, and a reset.** Each channel has its
/// own driver, in any thread. It is a handle: clones are the same core, and the device lives until
/// the last handle and the last channel are dropped.
///
/// [`channel`](Self::channel) gives out a [`CoreChannel`]: a [`Device`] for one channel's driver.
/// [`lock`](Self::lock) is for the registers that channels share, and [`reset`](Self::reset) for
/// what ends every channel's jobs. A thread that waits for its channel sleeps in the one interrupt,
/// or until the sibling that sleeps there wakes it. The thread that takes the interrupt wakes the
/// others, and each polls its own registers.
///
/// # For drivers of a channel
/// 1. Take [`lock`](Self::lock) to write a register that a sibling writes too, and keep the lock
///    from the first write of a sequence to its last. A register in which each bit is one
///    channel's, and where writing 0 to a bit does nothing, needs no lock.
/// 2. Hold the lock for a bounded time, and do not wait for a job under it.
/// 3. Use [`reset`](Self::reset) for whatever ends a sibling's jobs.
/// 4. Store the device's [`reset_epoch`](Device::reset_epoch) when a channel without jobs gets one.
///    In `poll`, read the channel's registers first and the epoch after them. If it has changed, a
///    sibling's reset ended the jobs, whatever the registers said: return [`Error::EndedByReset`].
/// 5. Acknowledge only this channel's interrupt, and only after the job's end was seen.
/// 6. Stop this channel only, and leave the siblings at work.
/// 7. If a reset clears this channel's registers, write all registers of a job and its doorbell
///    under one [`lock`](Self::lock). Compare the epoch under it, before the doorbell, and return
///    [`Error::EndedByReset`] if it has changed. Otherwise a sibling's reset before the doorbell
///    starts a job with cleared pointers.
///
/// # For callers
/// 1. A channel whose job has ended may keep the interrupt line up until a poll returns the end of
///    its last job, or no end. Until then, siblings that wait poll again and again.
/// 2. [`Error::EndedByReset`]: the channel's driver was stopped, and the buffers come back. Start
///    the jobs again.
/// 3. An event loop that arms the interrupt ([`Wait::arm_irq`](crate::Wait::arm_irq)) discards the
///    interrupts of every channel. It polls all channels afterwards, and no other thread sleeps in
///    a channel's `wait` meanwhile.
///
/// ```
/// use contigo::{Device, Error, Mmio, hw::{mmio::{ReadWrite, Register}, poll_until}, job::Core};
/// use core::time::Duration;
/// # use contigo::sim::{Model, SimBoard, SimBus, SimDevice};
/// # /// Two channels of 0x10 bytes, and a reset at 0x20.
/// # #[derive(Default)]
/// # struct Two { control: [u32; 2] }
/// # // SAFETY: it touches no memory.
/// # unsafe impl Model for Two {
/// #     const WINDOW_BYTES: usize = 0x30;
/// #     fn advance(&mut self, _: &mut SimBus<'_>) {}
/// #     fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 { self.control.get(offset / 0x10).copied().unwrap_or(0) }
/// #     fn write32(&mut self, offset: usize, value: u32, _: &mut SimBus<'_>) {
/// #         match self.control.get_mut(offset / 0x10) { Some(control) => *control = value, None => self.control = [0; 2] }
/// #     }
/// #     fn irq_at_ns(&self) -> Option<u64> { None }
/// #     fn reset(&mut self) { *self = Self::default() }
/// # }
/// # let board = SimBoard::new(1);
/// # let device = SimDevice::with_model(&board, board.port(), Two::default());
/// const CONTROL: Register<ReadWrite> = Register::at(0x00);
/// const RESET: Register<ReadWrite> = Register::at(0x20);
///
/// let core = Core::new(device.window()?)?;
/// // SAFETY: each channel has 16 bytes of registers to itself.
/// let (first, second) = unsafe { (core.channel(0, 0x00..0x10)?, core.channel(1, 0x10..0x20)?) };
/// // SAFETY: no register of this core makes it touch memory.
/// unsafe { CONTROL.write(&second, 7) };
/// assert_eq!((CONTROL.read(&first), CONTROL.read(&second)), (0, 7));
///
/// let before = second.reset_epoch();
/// // SAFETY: as above.
/// core.reset(|whole| Ok(unsafe { RESET.write(whole, 1) }))?;
/// assert_ne!(second.reset_epoch(), before, "its driver answers Error::EndedByReset");
/// # Ok::<(), Error>(())
/// ```
pub struct Core<D> {
    shared: Shared<Inner<D>>,
}

struct Inner<D> {
    device: D,
    siblings: Siblings,
}

impl<D: Device> Core<D> {
    /// Makes a core of `device`, which lies in pages from the kernel from now on. No channel has a
    /// driver yet.
    ///
    /// # Errors
    /// [`Error::Os`]: the kernel has no memory. [`Error::Unsupported`]: there is no kernel; use
    /// [`in_memory`](Self::in_memory). The device is dropped.
    pub fn new(device: D) -> Result<Self> {
        Ok(Self { shared: Shared::new(Inner { device, siblings: Siblings::new() })? })
    }

    /// As [`new`](Self::new), without a kernel: the core lies in `memory`, which is given for ever.
    /// 256 bytes more than the size of the device are enough.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: `memory` is too small. The device is dropped.
    pub fn in_memory(device: D, memory: &'static mut [MaybeUninit<u8>]) -> Result<Self> {
        Ok(Self { shared: Shared::given(Inner { device, siblings: Siblings::new() }, memory)? })
    }

    /// Claims channel `index`, of at most 32, for one driver. `window` has its registers, in bytes
    /// from the beginning of the device's. Dropping the channel gives it back.
    ///
    /// # Errors
    /// [`Error::HasDriver`]: another driver has it. [`Error::Argument`]: `index` is 32 or more.
    /// [`Error::RegisterWindow`]: the device's window ends before `window` does.
    ///
    /// # Safety
    /// `window` holds this channel's registers. If it also holds registers of other channels or of
    /// all, every driver of this core writes those by the rules for drivers of a channel
    /// ([`Core`]).
    pub unsafe fn channel(&self, index: usize, window: Range<usize>) -> Result<CoreChannel<D>> {
        let have_bytes = self.device().len_bytes();
        if window.start > window.end || window.end > have_bytes {
            let need_bytes = window.start.max(window.end);
            return Err(Error::RegisterWindow { device: "the channel", need_bytes, have_bytes });
        }
        self.siblings().claim(index)?;
        Ok(CoreChannel::new(self.clone(), index, window))
    }

    /// Locks the registers that channels share for this thread, until the lock is dropped.
    /// [`device`](Self::device) reaches them, with the whole window.
    ///
    /// # Errors
    /// [`Error::Contended`]: another thread has held it for a second.
    pub fn lock(&self) -> Result<CoreLock<'_>> {
        self.siblings().lock()
    }

    /// Runs `act`, which ends every channel's jobs, under the lock, as
    /// [`reset_all`](crate::hw::reset_all) does.
    ///
    /// # Errors
    /// [`Error::Contended`], or what `act` returns.
    pub fn reset<R>(&self, act: impl FnOnce(&D) -> Result<R>) -> Result<R> {
        self.siblings().reset(|| act(self.device()))
    }
}

impl<D> Core<D> {
    /// The device, with the registers of all channels.
    pub fn device(&self) -> &D {
        &self.shared.device
    }

    fn siblings(&self) -> &Siblings {
        &self.shared.siblings
    }
}

impl<D> Clone for Core<D> {
    /// # Panics
    /// At 2²⁴ handles and channels of one core, most of which must have been forgotten.
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

forward_as_fd!({D} Core<D>, shared.device: D);

impl<D> fmt::Debug for Core<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Core").field(self.siblings()).finish()
    }
}

/// One channel of a [`Core`]: registers, interrupt and port, for one driver, in any thread. It has
/// a handle to the core. Dropping it gives the channel back; a forgotten one stays claimed, and
/// keeps the device open.
pub struct CoreChannel<D: Device> {
    core: Core<D>,
    index: usize,
    window: Range<usize>,
    seen: Seen,
}

impl<D: Device> CoreChannel<D> {
    /// `core` has marked `index` as claimed, and found `window` inside the device's.
    fn new(core: Core<D>, index: usize, window: Range<usize>) -> Self {
        let seen = core.siblings().shared_interrupt.seen();
        Self { core, index, window, seen }
    }

    /// The channel's number.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// The core, for what all its channels share.
    #[must_use]
    pub const fn core(&self) -> &Core<D> {
        &self.core
    }

    /// As [`Core::lock`].
    ///
    /// # Errors
    /// As [`Core::lock`].
    pub fn lock(&self) -> Result<CoreLock<'_>> {
        self.core.lock()
    }
}

impl<D: Device> Drop for CoreChannel<D> {
    fn drop(&mut self) {
        self.core.siblings().give_back(self.index);
    }
}

// SAFETY: 1. The registers belong to the device. 2. `Core` gives each channel to one value, and
// `Core::channel`'s caller guarantees that drivers write shared registers by its rules.
unsafe impl<D: Device> Mmio for CoreChannel<D> {
    fn len_bytes(&self) -> usize {
        self.window.len()
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        match offset.checked_add(4) {
            Some(end) if end <= self.window.len() => {
                self.core.device().read32(self.window.start + offset)
            }
            _ => u32::MAX,
        }
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        if offset.checked_add(4).is_some_and(|end| end <= self.window.len()) {
            // SAFETY: the caller's promise.
            unsafe { self.core.device().write32(self.window.start + offset, value) }
        }
    }
}

impl<D: Device> Wait for CoreChannel<D> {
    fn now_us(&self) -> u64 {
        self.core.device().now_us()
    }

    /// Waits in the device's interrupt, or until the sibling that waits there takes it.
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.core
            .siblings()
            .shared_interrupt
            .wait(&self.seen, timeout_us, || self.core.device().wait_at_most(timeout_us))
    }

    /// Arms the device's interrupt, and so every channel's: see [`Core`], "For callers".
    fn arm_irq(&self) -> Result<Option<i32>> {
        let armed = self.core.device().arm_irq();
        self.core.siblings().shared_interrupt.wake();
        armed
    }

    fn looks_before_clock(&self) -> u32 {
        self.core.device().looks_before_clock()
    }
}

// SAFETY: every channel reaches memory through the device's port.
unsafe impl<D: Device> Device for CoreChannel<D> {
    fn port(&self) -> &Port {
        self.core.device().port()
    }

    fn simulated(&self) -> Option<&dyn crate::mem::SimulatedDevice> {
        self.core.device().simulated()
    }

    fn siblings(&self) -> Option<&Siblings> {
        Some(self.core.siblings())
    }
}

forward_as_fd!({D: Device} CoreChannel<D>, core.shared.device: D);

impl<D: Device> fmt::Debug for CoreChannel<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreChannel")
            .field("index", &self.index)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
