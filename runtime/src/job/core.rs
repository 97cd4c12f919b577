#![allow(unsafe_code, reason = "which registers are a channel's is a promise")]
//! One device whose channels have a driver each.

use super::{baton::Baton, channel::CoreChannel};
use crate::{
    hw::Device,
    types::{Error, Result, barrier, lock, platform::forward_as_fd},
};
use core::{
    fmt,
    ops::{Deref, Range},
    sync::atomic::{AtomicU32, Ordering},
};
use spin::{Mutex, MutexGuard};

/// The most channels of a core.
pub(super) const CHANNELS_MAX: usize = 32;

/// **It owns a device whose channels share registers, one interrupt, and a reset.** Each channel
/// has its own driver, in whichever thread.
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
/// 1. A channel that ended its job, and that nobody asks, may keep the interrupt's line up. Then
///    siblings that wait look again and again until somebody does.
/// 2. [`Error::EndedByReset`]: the channel's driver was stopped, and the buffers come back. Start
///    the jobs again.
/// 3. An event loop that arms the interrupt ([`Wait::arm_irq`](crate::Wait::arm_irq)) forgets those
///    of every channel. It looks at all channels afterwards, and no other thread sleeps in one's
///    `wait` meanwhile.
///
/// ```
/// use contigo::{Core, Device, Error, Mmio, mmio::{ReadWrite, Register}, poll_until};
/// use core::time::Duration;
/// # #[cfg(feature = "sim")] {
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
/// let core = Core::new(device.window()?);
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
/// # }
/// # Ok::<(), Error>(())
/// ```
pub struct Core<D> {
    pub(super) device: D,
    block: Mutex<()>,
    /// Bit N: channel N is claimed.
    claimed: AtomicU32,
    epoch: AtomicU32,
    pub(super) baton: Baton,
}

impl<D: Device> Core<D> {
    /// The core is `device`. Nobody has a channel of it yet.
    #[must_use]
    pub fn new(device: D) -> Self {
        let (claimed, epoch) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { device, block: Mutex::new(()), claimed, epoch, baton: Baton::new() }
    }

    /// Channel `index` of at most 32, for one driver: the registers at `window`, in bytes from the
    /// beginning of the device's. It is given back when it is dropped.
    ///
    /// # Errors
    /// [`Error::HasDriver`]: somebody has it. [`Error::Argument`]: `index` is 32 or more.
    /// [`Error::RegisterWindow`]: the device's window ends before `window` does.
    ///
    /// # Safety
    /// `window` holds this channel's registers. Other registers in it, of other channels or of all,
    /// are written by every driver of this core as the rules for drivers of a channel say
    /// ([`Core`]).
    pub unsafe fn channel(&self, index: usize, window: Range<usize>) -> Result<CoreChannel<'_, D>> {
        let have_bytes = self.device.len_bytes();
        if window.start > window.end || window.end > have_bytes {
            let need_bytes = window.start.max(window.end);
            return Err(Error::RegisterWindow { device: "the channel", need_bytes, have_bytes });
        }
        let (value, max) = (index as u64, CHANNELS_MAX as u64 - 1);
        let bit = Self::bit(index).ok_or(Error::Argument { name: "channel", value, min: 0, max, multiple_of: 1 })?;
        if self.claimed.fetch_or(bit, Ordering::Acquire) & bit != 0 {
            return Err(Error::HasDriver);
        }
        Ok(CoreChannel::new(self, index, window))
    }

    /// The registers that channels share, for this thread alone until the lock is dropped: the
    /// whole window, as [`Mmio`](crate::Mmio).
    ///
    /// # Errors
    /// [`Error::Contended`]: another thread has held it for a second.
    pub fn lock(&self) -> Result<CoreLock<'_, D>> {
        Ok(CoreLock { device: &self.device, _held: lock::acquire(&self.block)? })
    }

    /// Does to the device, under the lock, what ends every channel's jobs. Each channel that has
    /// jobs in flight hears of it by its [`reset_epoch`](Device::reset_epoch), before `act` begins
    /// and also where it fails; and those that sleep are woken.
    ///
    /// # Errors
    /// [`Error::Contended`], or what `act` says.
    pub fn reset<R>(&self, act: impl FnOnce(&D) -> Result<R>) -> Result<R> {
        let locked = self.lock()?;
        // Twice: a job that is looked at while the registers change has been ended, and so has one
        // whose doorbell came before the lock was taken. A driver compares once more under the
        // lock.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        barrier::before_doorbell();
        // Dropped in any case, before the lock: siblings hear of a reset that panicked too.
        let _ends = ResetEnds(self);
        act(locked.device)
    }

    /// The device, to read what its registers say of all channels.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// How often it was reset, read after the registers that were read before.
    pub(super) fn epoch(&self) -> u32 {
        barrier::after_completion();
        self.epoch.load(Ordering::Acquire)
    }
}

impl<D> Core<D> {
    fn bit(index: usize) -> Option<u32> {
        u32::try_from(index).ok().and_then(|index| 1_u32.checked_shl(index))
    }

    pub(super) fn give_back(&self, index: usize) {
        self.claimed.fetch_and(!Self::bit(index).unwrap_or(0), Ordering::Release);
    }

    /// The device, when no channel of it is left.
    pub fn into_device(self) -> D {
        self.device
    }
}

/// The end of a reset.
struct ResetEnds<'c, D>(&'c Core<D>);

impl<D> Drop for ResetEnds<'_, D> {
    fn drop(&mut self) {
        barrier::before_doorbell();
        self.0.epoch.fetch_add(1, Ordering::AcqRel);
        self.0.baton.wake();
    }
}

/// The registers that channels share, and the whole window: [`Core::lock`].
#[derive(Debug)]
#[must_use = "the lock is held as long as this lives"]
pub struct CoreLock<'c, D> {
    device: &'c D,
    _held: MutexGuard<'c, ()>,
}

impl<D> Deref for CoreLock<'_, D> {
    type Target = D;

    fn deref(&self) -> &D {
        self.device
    }
}

forward_as_fd!({D} Core<D>, device: D);

impl<D> fmt::Debug for Core<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("claimed", &self.claimed.load(Ordering::Relaxed))
            .field("epoch", &self.epoch.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
