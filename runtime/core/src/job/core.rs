#![allow(
    unsafe_code,
    reason = "which registers are a channel's is a promise, and a channel is a device"
)]
//! One device whose channels have a driver each, and a channel as a device for its driver.

use crate::{
    hw::{CoreLock, Device, Mmio, Seen, Siblings, Wait},
    mem::Port,
    types::{Error, Result, platform::forward_as_fd, shared::Shared},
};
use core::{fmt, mem::MaybeUninit, ops::Range};

/// **A device whose channels share registers, one interrupt, and a reset.** Each channel has its
/// own driver, in any thread. It is a handle: clones are the same core, and the device lives until
/// the last of them is dropped, and the last channel.
///
/// [`channel`](Self::channel) gives out a [`CoreChannel`]: a [`Device`] for one channel's driver.
/// [`lock`](Self::lock) is for the registers that channels share, and [`reset`](Self::reset) for
/// what ends every channel's jobs. A thread that waits for its channel sleeps in the one interrupt,
/// or is woken by the sibling that does. The thread that takes the interrupt wakes the others, and
/// each looks at its own registers.
///
/// # For drivers of a channel
/// 1. Write a register that a sibling writes too only under [`lock`](Self::lock), and keep the lock
///    from the first write of a sequence to its last. A register in which each bit is one
///    channel's, and where writing 0 to a bit does nothing, needs no lock.
/// 2. Hold the lock for a bounded time, and do not wait for a job under it.
/// 3. Do by [`reset`](Self::reset) whatever ends a sibling's jobs.
/// 4. Keep the device's [`reset_epoch`](Device::reset_epoch) when a channel without jobs gets one.
///    In `poll`, read the channel's registers first and the epoch after them. Where it has changed,
///    a sibling's reset ended the jobs, whatever the registers said: answer
///    [`Error::EndedByReset`].
/// 5. Acknowledge this channel's interrupt only, and only after its end was seen.
/// 6. Stop this channel only, and leave the siblings at work.
/// 7. Where a reset clears this channel's registers, write all registers of a job and its doorbell
///    under one [`lock`](Self::lock). Compare the epoch under it, before the doorbell, and refuse
///    with [`Error::EndedByReset`] where it changed. Otherwise a sibling's reset between the two
///    starts a job with cleared pointers.
///
/// # For callers
/// 1. A channel that ended its job, and is not polled, may keep the interrupt's line up. Then
///    siblings that wait poll again and again until it is.
/// 2. [`Error::EndedByReset`]: the channel's driver was stopped, and the buffers come back. Start
///    the jobs again.
/// 3. An event loop that arms the interrupt ([`Wait::arm_irq`](crate::Wait::arm_irq)) forgets those
///    of every channel. It looks at all channels afterwards, and no other thread sleeps in one's
///    `wait` meanwhile.
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
    /// The core is `device`, which lies in pages from the kernel from now on. No channel of it has
    /// a driver yet.
    ///
    /// # Errors
    /// [`Error::Os`]: the kernel has no memory. [`Error::Unsupported`]: there is no kernel; use
    /// [`in_memory`](Self::in_memory). The device is dropped.
    pub fn new(device: D) -> Result<Self> {
        Ok(Self { shared: Shared::new(Inner { device, siblings: Siblings::new() })? })
    }

    /// As [`new`](Self::new), where there is no kernel: it lies in `memory`, which is given for
    /// ever. 256 bytes more than the device has are enough.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: `memory` is too small. The device is dropped.
    pub fn in_memory(device: D, memory: &'static mut [MaybeUninit<u8>]) -> Result<Self> {
        Ok(Self { shared: Shared::given(Inner { device, siblings: Siblings::new() }, memory)? })
    }

    /// Channel `index` of at most 32, for one driver: the registers at `window`, in bytes from the
    /// beginning of the device's. It is given back when it is dropped.
    ///
    /// # Errors
    /// [`Error::HasDriver`]: another driver has it. [`Error::Argument`]: `index` is 32 or more.
    /// [`Error::RegisterWindow`]: the device's window ends before `window` does.
    ///
    /// # Safety
    /// `window` holds this channel's registers. Other registers in it, of other channels or of all,
    /// are written by every driver of this core as the rules for drivers of a channel say
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

    /// Gives this thread alone the registers that channels share, until the lock is dropped.
    /// [`device`](Self::device) has them, with the whole window.
    ///
    /// # Errors
    /// [`Error::Contended`]: another thread has held it for a second.
    pub fn lock(&self) -> Result<CoreLock<'_>> {
        self.siblings().lock()
    }

    /// Does to the device, under the lock, what ends every channel's jobs: [`Siblings::reset`].
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
/// a handle to the core. The channel is given back when it is dropped; one that is forgotten stays
/// claimed, and keeps the device open.
pub struct CoreChannel<D: Device> {
    core: Core<D>,
    index: usize,
    window: Range<usize>,
    seen: Seen,
}

impl<D: Device> CoreChannel<D> {
    /// `core` has marked `index` as claimed, and found `window` inside the device's.
    fn new(core: Core<D>, index: usize, window: Range<usize>) -> Self {
        let seen = core.siblings().baton.seen();
        Self { core, index, window, seen }
    }

    /// Which channel.
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
// `Core::channel`'s caller promised that drivers of channels write by its rules what they share.
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

    /// In the device's interrupt, or until the sibling that is there takes it.
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.core
            .siblings()
            .baton
            .wait(&self.seen, timeout_us, || self.core.device().wait_at_most(timeout_us))
    }

    /// The device's, and with it every channel's: see [`Core`], "For callers".
    fn arm_irq(&self) -> Result<Option<i32>> {
        let armed = self.core.device().arm_irq();
        self.core.siblings().baton.wake();
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
