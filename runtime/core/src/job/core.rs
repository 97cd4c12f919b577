#![allow(unsafe_code, reason = "which registers are a channel's is a promise")]
//! One device whose channels have a driver each.

use super::channel::CoreChannel;
use crate::{
    hw::{CoreLock, Device, Siblings},
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
    pub(super) shared: Shared<Inner<D>>,
}

pub(super) struct Inner<D> {
    pub(super) device: D,
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

    pub(super) fn siblings(&self) -> &Siblings {
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
