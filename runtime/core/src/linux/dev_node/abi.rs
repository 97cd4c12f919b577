//! `kernel-helpers/uapi/contigo.h`, as Rust. A test of the project (`tests/tests/sources/uapi.rs`)
//! compiles the header and compares every constant, size and offset. The fake of the module reads
//! this file too.

/// `CONTIGO_MAX_BUFFERS`.
pub(crate) const MAX_BUFFERS: u32 = 256;
/// `CONTIGO_MAX_STEPS`.
pub(crate) const MAX_STEPS: usize = 32;
/// `CONTIGO_MAX_WINDOWS`.
pub(crate) const MAX_WINDOWS: usize = 6;
/// `CONTIGO_MAX_INTERRUPTS`.
pub(crate) const MAX_INTERRUPTS: usize = 16;

/// `CONTIGO_WINDOW_MMAP`.
pub(crate) const WINDOW_MMAP: u32 = 1;
/// `CONTIGO_WINDOW_STOP`.
pub(crate) const WINDOW_STOP: u32 = 1 << 1;
/// `CONTIGO_INFO_COHERENT` and the others.
pub(crate) const INFO_COHERENT: u32 = 1;
/// See [`INFO_COHERENT`].
pub(crate) const INFO_IOMMU: u32 = 1 << 1;
/// See [`INFO_COHERENT`].
pub(crate) const INFO_TRANSLATED: u32 = 1 << 2;
/// See [`INFO_COHERENT`].
pub(crate) const INFO_RESET: u32 = 1 << 3;
/// See [`INFO_COHERENT`].
pub(crate) const INFO_CONFINED: u32 = 1 << 6;
/// See [`INFO_COHERENT`].
pub(crate) const INFO_ARMED: u32 = 1 << 7;
/// `CONTIGO_ALLOC_COHERENT`.
pub(crate) const ALLOC_COHERENT: u32 = 1;
/// `CONTIGO_SYNC_FOR_CPU`.
pub(crate) const SYNC_FOR_CPU: u32 = 1;
/// `CONTIGO_SYNC_FOR_DEVICE`.
pub(crate) const SYNC_FOR_DEVICE: u32 = 1 << 1;
/// `CONTIGO_STEP_WRITE`, `_POLL`, `_POLL_NOT`, `_ELSE`.
pub(crate) const STEP_WRITE: u32 = 1;
/// See [`STEP_WRITE`].
pub(crate) const STEP_POLL: u32 = 2;
/// See [`STEP_WRITE`].
pub(crate) const STEP_POLL_NOT: u32 = 3;
/// See [`STEP_WRITE`].
pub(crate) const STEP_ELSE: u32 = 4;

/// A structure of the header: plain numbers in the kernel's layout, and no padding.
macro_rules! structure {
    ($(#[$doc:meta])* $name:ident, $size:literal, { $($field:ident: $kind:ty),* $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the header documents the fields")]
        pub struct $name { $(pub $field: $kind),* }
        // On i386 a u64 is aligned to 4 bytes in C; the header's __aligned_u64 and Rust's u64 in
        // these places are not.
        const _: () = assert!(size_of::<$name>() == $size && (0 $(+ size_of::<$kind>())*) == $size);
    };
}

structure!(/** `struct contigo_window`. */ Window, 24, {
    len_bytes: u64, mmap_offset: u64, flags: u32, reserved: u32,
});
structure!(/** `struct contigo_info`. */ Info, 184, {
    argsz: u32, flags: u32, dma_bits: u32, buffers: u32, quarantined: u32,
    interrupts: u32, granule_bytes: u32, reserved: u32,
    quarantined_bytes: u64, window: [Window; MAX_WINDOWS],
});
impl Info {
    /// How long it is.
    pub(crate) const ARGSZ: u32 = 184;
}
const _: () = assert!(Info::ARGSZ as usize == size_of::<Info>());

structure!(/** `struct contigo_dma_bits`. */ DmaBits, 8, { bits: u32, reserved: u32 });
structure!(/** `struct contigo_alloc`. */ Alloc, 32, {
    len_bytes: u64, flags: u32, handle: u32, addr: u64, mmap_offset: u64,
});
structure!(/** `struct contigo_export`. */ Export, 8, { handle: u32, fd: i32 });
structure!(/** `struct contigo_import`. */ Import, 32, {
    fd: i32, flags: u32, handle: u32, segments: u32, addr: u64, len_bytes: u64,
});
structure!(/** `struct contigo_segment`. */ SegmentAt, 16, { addr: u64, len_bytes: u64 });
structure!(/** `struct contigo_segments`. */ Segments, 24, {
    handle: u32, count: u32, offset_bytes: u64, ptr: u64,
});
structure!(/** `struct contigo_release`. */ Release, 8, { handle: u32, reserved: u32 });
structure!(/** `struct contigo_range`. */ SyncRange, 24, {
    handle: u32, flags: u32, offset_bytes: u64, len_bytes: u64,
});
structure!(/** `struct contigo_sync`. */ Sync, 16, { count: u32, reserved: u32, ptr: u64 });
structure!(/** `struct contigo_step`. */ Step, 24, {
    kind: u32, window: u32, offset_bytes: u32, mask: u32, value: u32, timeout_us: u32,
});
structure!(/** `struct contigo_stop_sequence`. */ StopSequence, 16, {
    count: u32, reserved: u32, ptr: u64,
});
structure!(/** `struct contigo_unmask`. */ Unmask, 8, { interrupts: u32, reserved: u32 });
structure!(/** `struct contigo_wait`. */ WaitFor, 8, { interrupts: u32, timeout_us: u32 });
structure!(/** `struct contigo_eventfd`. */ EventFd, 8, { interrupt: u32, fd: i32 });

/// The request codes: `_IO`, `_IOW`, `_IOWR` of `CONTIGO_IOC` (0xC1), as a C program prints them on
/// x86, arm and arm64.
pub(crate) mod code {
    use super::{
        Alloc, DmaBits, EventFd, Export, Import, Release, Segments, StopSequence, Sync, Unmask,
        WaitFor,
    };
    use nix::sys::ioctl::ioctl_num_type;
    use nix::{request_code_none, request_code_readwrite, request_code_write};

    const IOC: u8 = 0xC1;
    pub(crate) const GET_INFO: ioctl_num_type = request_code_none!(IOC, 0x50);
    pub(crate) const SET_DMA_BITS: ioctl_num_type =
        request_code_write!(IOC, 0x51, size_of::<DmaBits>());
    pub(crate) const ALLOC: ioctl_num_type = request_code_readwrite!(IOC, 0x52, size_of::<Alloc>());
    pub(crate) const EXPORT: ioctl_num_type =
        request_code_readwrite!(IOC, 0x53, size_of::<Export>());
    pub(crate) const IMPORT: ioctl_num_type =
        request_code_readwrite!(IOC, 0x54, size_of::<Import>());
    pub(crate) const GET_SEGMENTS: ioctl_num_type =
        request_code_readwrite!(IOC, 0x55, size_of::<Segments>());
    pub(crate) const RELEASE: ioctl_num_type = request_code_write!(IOC, 0x56, size_of::<Release>());
    pub(crate) const SYNC: ioctl_num_type = request_code_write!(IOC, 0x57, size_of::<Sync>());
    pub(crate) const ARM: ioctl_num_type =
        request_code_write!(IOC, 0x58, size_of::<StopSequence>());
    pub(crate) const UNMASK: ioctl_num_type = request_code_write!(IOC, 0x59, size_of::<Unmask>());
    pub(crate) const SET_EVENTFD: ioctl_num_type =
        request_code_write!(IOC, 0x5A, size_of::<EventFd>());
    pub(crate) const RESET: ioctl_num_type = request_code_none!(IOC, 0x5B);
    pub(crate) const WAIT: ioctl_num_type =
        request_code_readwrite!(IOC, 0x5C, size_of::<WaitFor>());

    const _: () = assert!(
        GET_INFO == 0xC150
            && SET_DMA_BITS == 0x4008_C151
            && ALLOC == 0xC020_C152
            && EXPORT == 0xC008_C153
    );
    const _: () = assert!(
        IMPORT == 0xC020_C154
            && GET_SEGMENTS == 0xC018_C155
            && RELEASE == 0x4008_C156
            && SYNC == 0x4010_C157
    );
    const _: () = assert!(
        ARM == 0x4010_C158
            && UNMASK == 0x4008_C159
            && SET_EVENTFD == 0x4008_C15A
            && RESET == 0xC15B
            && WAIT == 0xC008_C15C
    );
}
