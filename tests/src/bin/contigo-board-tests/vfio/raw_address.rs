#![allow(
    unsafe_code,
    reason = "a backend that lies about its address, which is what the test is about"
)]
//! Memory that says to lie at an address of the test's choice, on a bus of its choice: how a raw
//! address gets into a device.

use contigo::{
    Backend, Bus, Direction, Error, Result,
    mem::{Mapping, SyncScope},
    types::BaseAddr,
};
use std::{ops::Range, ptr::NonNull};

/// One page of this process's, which the device does not reach at all.
#[derive(Debug)]
pub(super) struct RawAddress {
    page: NonNull<u8>,
    base: BaseAddr,
    bus: Bus,
}

/// Its size.
pub(super) const BYTES: usize = 8192;

impl RawAddress {
    /// A page for this process; for devices on `bus`, whatever lies at `base`. It is never freed.
    ///
    /// # Safety
    /// Behind this address on that bus is no memory that a device may reach: its accesses are
    /// refused.
    pub(super) unsafe fn new(base: BaseAddr, bus: Bus) -> Self {
        #[repr(align(4096))]
        struct Page([u8; BYTES]);
        let page = Box::leak(Box::new(Page([0; BYTES])));
        Self { page: NonNull::from(&mut page.0).cast(), base, bus }
    }
}

// SAFETY: the page is leaked and named nowhere else.
unsafe impl Send for RawAddress {}
// SAFETY: as for `Send`.
unsafe impl Sync for RawAddress {}

// SAFETY: 1. to 3. One leaked page, and no sync. 4. does not hold, and that is the point: `new`'s
// caller knows that no access to that address gets anywhere. 5. Nothing is ever out of step with
// what no device reaches.
unsafe impl Backend for RawAddress {
    fn name(&self) -> &'static str {
        "raw address"
    }
    fn mapping(&self) -> Mapping {
        let (cpu, base, bus) = (self.page, self.base, self.bus);
        Mapping {
            cpu,
            len_bytes: BYTES,
            base,
            bus,
            scope: SyncScope::Coherent,
            coherent: Some(true),
        }
    }
    unsafe fn sync_for_device(
        &self,
        _range: Range<usize>,
        _direction: Direction,
    ) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn sync_for_cpu(
        &self,
        _range: Range<usize>,
        _direction: Direction,
    ) -> Result<(), Error> {
        Ok(())
    }
}
