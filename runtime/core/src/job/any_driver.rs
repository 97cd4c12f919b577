#![allow(
    unsafe_code,
    reason = "a driver of any type becomes a trait object, and passes its promises on"
)]
//! One type for drivers of any type.

use super::{Descriptors, Driver};
use crate::types::Result;
use crate::types::boxed::Boxed;
use crate::types::forward::forward;
use core::fmt;

/// **A driver of any type**, in pages from the kernel: so that C, Python and the tool have one type
/// for all drivers, with no heap.
///
/// ```
/// use contigo::{Driver, Queue, sim::{SimDevice, zdma::ZdmaModel, SimBoard}, job::AnyDriver};
/// let board = SimBoard::new(1);
/// let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
/// let driver = AnyDriver::new(channel.window()?.simple()?)?;
/// assert_eq!((driver.name(), driver.operands().len()), ("zdma", 2));
/// let queue = Queue::new(driver, 4)?;
/// # let _ = queue;
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct AnyDriver {
    driver: Boxed<dyn Driver + Send>,
    descriptors: Option<Descriptors>,
}

impl AnyDriver {
    /// Wraps `driver`, of any size.
    ///
    /// # Errors
    /// [`Error::Os`](crate::Error::Os): the kernel has no memory.
    /// [`Error::Unsupported`](crate::Error::Unsupported): there is no kernel (feature `linux`). The
    /// driver is dropped.
    pub fn new<D: Driver + Send + 'static>(driver: D) -> Result<Self> {
        // SAFETY: the closure only returns the pointer, unsized.
        unsafe { Boxed::<dyn Driver + Send>::unsized_by(driver, |inner| inner) }
            .map(|driver| Self { driver, descriptors: None })
    }

    /// The same driver, which was opened with this memory of its own.
    #[must_use]
    pub fn opened_with(self, descriptors: Option<Descriptors>) -> Self {
        Self { descriptors, ..self }
    }

    /// Which memory of its own it was opened with by its name. `None`: with none, or with memory
    /// of the program's that its row says nothing about ([`Descriptors::SETTING`]).
    #[must_use]
    pub fn descriptors(&self) -> Option<Descriptors> {
        self.descriptors
    }
}

// SAFETY: every method forwards to the driver's own.
unsafe impl Driver for AnyDriver {
    forward!(|this| *this.driver =>
        name, port, simulated, addr_bits, operands, depth, in_order, check, submit,
        submit_more, waits_for_doorbell, doorbell, poll, poll_again, stop, stop_program, arm_irq,
        underruns
    );
}

impl fmt::Debug for AnyDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyDriver").field(&self.name()).finish()
    }
}
