//! Methods that a wrapper forwards to the value that it wraps.

/// Forwards methods of [`Backend`](crate::Backend), [`Mmio`](crate::Mmio), [`Wait`](crate::Wait),
/// [`Device`](crate::Device) or [`Driver`](crate::Driver), inside a wrapper's `impl`, to another
/// value: a field, or the content of the current variant. Methods that the call does not name are
/// written as usual.
///
/// ```
/// use contigo::{Error, Mmio, Wait, forward};
/// use core::sync::atomic::{AtomicU32, Ordering};
/// /// A device whose waits are counted.
/// struct Counted<D> {
///     device: D,
///     waits: AtomicU32,
/// }
/// // SAFETY: every access is the device's own, and no other code has it.
/// unsafe impl<D: Mmio> Mmio for Counted<D> {
///     forward!(|this| this.device => len_bytes, read32, write32);
/// }
/// impl<D: Wait> Wait for Counted<D> {
///     forward!(|this| this.device => now_us, looks_before_clock);
///     fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
///         self.waits.fetch_add(1, Ordering::Relaxed);
///         self.device.wait_at_most(timeout_us)
///     }
/// }
/// /// One of two.
/// enum Either<A, B> {
///     A(A),
///     B(B),
/// }
/// impl<A: Wait, B: Wait> Wait for Either<A, B> {
///     forward!(each Self::A | Self::B => now_us, wait_at_most, looks_before_clock);
/// }
/// ```
#[macro_export]
macro_rules! forward {
    (|$this:ident| $place:expr => $($method:ident),+ $(,)?) => {
        $($crate::forward!(@ $method (|$this| $place));)+
    };
    (each $($variant:path)|+ => $($method:ident),+ $(,)?) => {
        $crate::forward!(@ all [$($variant)|+] $($method)+);
    };
    (@ all $to:tt $($method:ident)+) => {
        $($crate::forward!(@ $method $to);)+
    };

    // The value itself, under the name that the call uses; `@@@` if the method takes `&mut self`.
    (@@ $self:ident (|$this:ident| $place:expr) $inner:ident => $call:expr) => {{
        let $this = $self;
        let $inner = &$place;
        $call
    }};
    (@@@ $self:ident (|$this:ident| $place:expr) $inner:ident => $call:expr) => {{
        let $this = $self;
        let $inner = &mut $place;
        $call
    }};
    (@@ $self:ident [$($variant:path)|+] $inner:ident => $call:expr) => {
        match $self {
            $($variant($inner) => $call,)+
        }
    };
    (@@@ $self:ident [$($variant:path)|+] $inner:ident => $call:expr) => {
        $crate::forward!(@@ $self [$($variant)|+] $inner => $call)
    };

    // ---- Backend.
    (@ name $to:tt) => {
        fn name(&self) -> &'static str {
            $crate::forward!(@@ self $to inner => inner.name())
        }
    };
    (@ mapping $to:tt) => {
        fn mapping(&self) -> $crate::mem::Mapping {
            $crate::forward!(@@ self $to inner => inner.mapping())
        }
    };
    (@ segment $to:tt) => {
        fn segment(&self, offset_bytes: usize) -> $crate::Result<$crate::mem::Segment> {
            $crate::forward!(@@ self $to inner => inner.segment(offset_bytes))
        }
    };
    (@ sync_for_device $to:tt) => {
        unsafe fn sync_for_device(
            &self,
            range: ::core::ops::Range<usize>,
            direction: $crate::Direction,
        ) -> $crate::Result<()> {
            // SAFETY: the caller's promise.
            $crate::forward!(@@ self $to inner => unsafe {
                inner.sync_for_device(range, direction)
            })
        }
    };
    (@ sync_for_cpu $to:tt) => {
        unsafe fn sync_for_cpu(
            &self,
            range: ::core::ops::Range<usize>,
            direction: $crate::Direction,
        ) -> $crate::Result<()> {
            // SAFETY: the caller's promise.
            $crate::forward!(@@ self $to inner => unsafe { inner.sync_for_cpu(range, direction) })
        }
    };
    (@ sync_all_for_device $to:tt) => {
        unsafe fn sync_all_for_device(
            &self,
            ranges: &[$crate::mem::SyncRange],
        ) -> $crate::Result<()> {
            // SAFETY: the caller's promise.
            $crate::forward!(@@ self $to inner => unsafe { inner.sync_all_for_device(ranges) })
        }
    };
    (@ sync_all_for_cpu $to:tt) => {
        unsafe fn sync_all_for_cpu(&self, ranges: &[$crate::mem::SyncRange]) -> $crate::Result<()> {
            // SAFETY: the caller's promise.
            $crate::forward!(@@ self $to inner => unsafe { inner.sync_all_for_cpu(ranges) })
        }
    };
    (@ settled $to:tt) => {
        fn settled(&self, range: ::core::ops::Range<usize>) -> $crate::Result<()> {
            $crate::forward!(@@ self $to inner => inner.settled(range))
        }
    };
    (@ handle $to:tt) => {
        fn handle(&self) -> ::core::option::Option<$crate::mem::Handle> {
            $crate::forward!(@@ self $to inner => inner.handle())
        }
    };
    (@ held_by $to:tt) => {
        fn held_by(&self, range: ::core::ops::Range<usize>, holder: $crate::mem::Holder<'_>) {
            $crate::forward!(@@ self $to inner => inner.held_by(range, holder))
        }
    };

    (@ wrong_accesses $to:tt) => {
        fn wrong_accesses(&self) -> $crate::Result<$crate::mem::WrongAccesses> {
            $crate::forward!(@@ self $to inner => inner.wrong_accesses())
        }
    };

    // ---- Mmio.
    (@ len_bytes $to:tt) => {
        fn len_bytes(&self) -> usize {
            $crate::forward!(@@ self $to inner => inner.len_bytes())
        }
    };
    (@ read32 $to:tt) => {
        #[inline]
        fn read32(&self, offset: usize) -> u32 {
            $crate::forward!(@@ self $to inner => inner.read32(offset))
        }
    };
    (@ write32 $to:tt) => {
        #[inline]
        unsafe fn write32(&self, offset: usize, value: u32) {
            // SAFETY: the caller's promise.
            $crate::forward!(@@ self $to inner => unsafe { inner.write32(offset, value) })
        }
    };

    // ---- Wait.
    (@ now_us $to:tt) => {
        fn now_us(&self) -> u64 {
            $crate::forward!(@@ self $to inner => inner.now_us())
        }
    };
    (@ wait_at_most $to:tt) => {
        fn wait_at_most(&self, timeout_us: u32) -> $crate::Result<()> {
            $crate::forward!(@@ self $to inner => inner.wait_at_most(timeout_us))
        }
    };
    (@ looks_before_clock $to:tt) => {
        fn looks_before_clock(&self) -> u32 {
            $crate::forward!(@@ self $to inner => inner.looks_before_clock())
        }
    };

    // ---- Driver.
    (@ addr_bits $to:tt) => {
        fn addr_bits(&self) -> u32 {
            $crate::forward!(@@ self $to inner => inner.addr_bits())
        }
    };
    (@ operands $to:tt) => {
        fn operands(&self) -> &[$crate::OperandSpec] {
            $crate::forward!(@@ self $to inner => inner.operands())
        }
    };
    (@ depth $to:tt) => {
        fn depth(&self) -> usize {
            $crate::forward!(@@ self $to inner => inner.depth())
        }
    };
    (@ in_order $to:tt) => {
        fn in_order(&self) -> bool {
            $crate::forward!(@@ self $to inner => inner.in_order())
        }
    };
    (@ check $to:tt) => {
        fn check(&self, operands: &[$crate::mem::DevSlice], args: &[u32]) -> $crate::Result<()> {
            $crate::forward!(@@ self $to inner => inner.check(operands, args))
        }
    };
    (@ submit $to:tt) => {
        unsafe fn submit(
            &mut self,
            slot: usize,
            operands: &[$crate::mem::DevSlice],
            args: &[u32],
        ) -> $crate::Result<()> {
            // SAFETY: the caller's promise.
            $crate::forward!(@@@ self $to inner => unsafe { inner.submit(slot, operands, args) })
        }
    };
    (@ submit_more $to:tt) => {
        unsafe fn submit_more(
            &mut self,
            slot: usize,
            operands: &[$crate::mem::DevSlice],
            args: &[u32],
        ) -> $crate::Result<()> {
            // SAFETY: the caller's promise.
            $crate::forward!(@@@ self $to inner => unsafe {
                inner.submit_more(slot, operands, args)
            })
        }
    };
    (@ waits_for_doorbell $to:tt) => {
        #[inline]
        fn waits_for_doorbell(&self) -> bool {
            $crate::forward!(@@ self $to inner => inner.waits_for_doorbell())
        }
    };
    (@ poll_again $to:tt) => {
        #[inline]
        fn poll_again(&mut self) -> $crate::Result<Option<$crate::Completion>> {
            $crate::forward!(@@@ self $to inner => inner.poll_again())
        }
    };
    (@ doorbell $to:tt) => {
        fn doorbell(&mut self) -> $crate::Result<()> {
            $crate::forward!(@@@ self $to inner => inner.doorbell())
        }
    };
    (@ poll $to:tt) => {
        fn poll(
            &mut self,
            timeout: ::core::time::Duration,
        ) -> $crate::Result<Option<$crate::Completion>> {
            $crate::forward!(@@@ self $to inner => inner.poll(timeout))
        }
    };
    (@ stop $to:tt) => {
        fn stop(&mut self) -> $crate::Result<()> {
            $crate::forward!(@@@ self $to inner => inner.stop())
        }
    };
    (@ stop_program $to:tt) => {
        fn stop_program(&self) -> $crate::job::StopProgram {
            $crate::forward!(@@ self $to inner => inner.stop_program())
        }
    };
    (@ underruns $to:tt) => {
        fn underruns(&self) -> Option<u64> {
            $crate::forward!(@@ self $to inner => inner.underruns())
        }
    };

    // ---- Driver and Wait.
    (@ arm_irq $to:tt) => {
        fn arm_irq(&self) -> $crate::Result<Option<i32>> {
            $crate::forward!(@@ self $to inner => inner.arm_irq())
        }
    };

    // ---- Device.
    (@ siblings $to:tt) => {
        fn siblings(&self) -> ::core::option::Option<&$crate::hw::Siblings> {
            $crate::forward!(@@ self $to inner => inner.siblings())
        }
    };

    // ---- Device and Driver.
    (@ simulated $to:tt) => {
        fn simulated(&self) -> ::core::option::Option<&dyn $crate::mem::SimulatedDevice> {
            $crate::forward!(@@ self $to inner => inner.simulated())
        }
    };
    (@ port $to:tt) => {
        fn port(&self) -> &$crate::Port {
            $crate::forward!(@@ self $to inner => inner.port())
        }
    };
}
pub(crate) use forward;

/// Implements `AsFd` for a value whose field waits for the interrupt.
#[macro_export]
macro_rules! forward_as_fd {
    ({$($generics:tt)*} $type:ty, $($field:ident).+: $waits:ident) => {
        impl<$($generics)*> $crate::types::platform::AsFd for $type
        where
            $waits: $crate::types::platform::AsFd,
        {
            /// The file descriptor that shows the device's interrupt.
            fn as_fd(&self) -> $crate::types::platform::BorrowedFd<'_> {
                self.$($field).+.as_fd()
            }
        }
    };
}
