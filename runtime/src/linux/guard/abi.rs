//! `kernel-helpers/uapi/contigo.h`, as Rust. The module asserts the same sizes (`static_assert` in
//! `contigo_file.c`), and a test of the project (`tests/tests/uapi.rs`) compiles the header and
//! compares every constant, size and offset.

/// `CONTIGO_ABI`.
pub const ABI: u32 = 1;
/// `CONTIGO_MAX_STEPS`.
pub const MAX_STEPS: usize = 32;
/// `CONTIGO_MAX_WINDOWS`.
pub const MAX_WINDOWS: usize = 6;

/// `CONTIGO_INFO_COHERENT`, `_TRANSLATED`.
pub const INFO_COHERENT: u32 = 1;
/// See [`INFO_COHERENT`].
pub const INFO_TRANSLATED: u32 = 1 << 4;
/// `CONTIGO_SYNC_FOR_CPU`.
pub const SYNC_FOR_CPU: u32 = 1;
/// `CONTIGO_SYNC_FOR_DEVICE`.
pub const SYNC_FOR_DEVICE: u32 = 1 << 1;
/// `CONTIGO_STEP_WRITE`, `_POLL`, `_POLL_NOT`.
pub const STEP_WRITE: u32 = 1;
/// See [`STEP_WRITE`].
pub const STEP_POLL: u32 = 2;
/// See [`STEP_WRITE`].
pub const STEP_POLL_NOT: u32 = 3;

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

structure!(/** `struct contigo_info`. */ Info, 72, {
    abi: u32, flags: u32, dma_bits: u32, imports: u32, dma_limit: u64, window_len_bytes: [u64; MAX_WINDOWS],
});
structure!(/** `struct contigo_dma_bits`. */ DmaBits, 8, { bits: u32, reserved: u32 });
structure!(/** `struct contigo_import`. */ Import, 32, {
    fd: i32, flags: u32, handle: u32, segments: u32, addr: u64, len_bytes: u64,
});
structure!(/** `struct contigo_segment`. */ SegmentAt, 16, { addr: u64, len_bytes: u64 });
structure!(/** `struct contigo_segments`. */ Segments, 24, { handle: u32, first: u32, count: u32, reserved: u32, ptr: u64 });
structure!(/** `struct contigo_release`. */ Release, 8, { handle: u32, reserved: u32 });
structure!(/** `struct contigo_range`. */ SyncRange, 24, { handle: u32, flags: u32, offset_bytes: u64, len_bytes: u64 });
structure!(/** `struct contigo_sync`. */ Sync, 16, { count: u32, reserved: u32, ptr: u64 });
structure!(/** `struct contigo_step`. */ Step, 24, {
    kind: u32, window: u32, offset_bytes: u32, mask: u32, value: u32, timeout_us: u32,
});
structure!(/** `struct contigo_program`. */ Program, 16, { count: u32, reserved: u32, ptr: u64 });
structure!(/** `struct contigo_bus_master`. */ BusMaster, 8, { on: u32, reserved: u32 });

/// The request codes: `_IOR`, `_IOW`, `_IOWR` of `CONTIGO_IOC` (0xC1), as a C program prints them
/// on x86, arm and arm64.
pub mod code {
    #![allow(missing_docs, reason = "the header documents them")]
    use super::{BusMaster, DmaBits, Import, Info, Program, Release, Segments, Sync};
    use nix::{request_code_read, request_code_readwrite, request_code_write, sys::ioctl::ioctl_num_type};

    const IOC: u8 = 0xC1;
    pub const GET_INFO: ioctl_num_type = request_code_read!(IOC, 0x40, size_of::<Info>());
    pub const SET_DMA_BITS: ioctl_num_type = request_code_write!(IOC, 0x41, size_of::<DmaBits>());
    pub const IMPORT: ioctl_num_type = request_code_readwrite!(IOC, 0x42, size_of::<Import>());
    pub const GET_SEGMENTS: ioctl_num_type = request_code_readwrite!(IOC, 0x43, size_of::<Segments>());
    pub const RELEASE: ioctl_num_type = request_code_write!(IOC, 0x44, size_of::<Release>());
    pub const SYNC: ioctl_num_type = request_code_write!(IOC, 0x45, size_of::<Sync>());
    pub const ARM: ioctl_num_type = request_code_write!(IOC, 0x46, size_of::<Program>());
    pub const SET_BUS_MASTER: ioctl_num_type = request_code_write!(IOC, 0x47, size_of::<BusMaster>());

    const _: () = assert!(GET_INFO == 0x8048_C140 && IMPORT == 0xC020_C142 && GET_SEGMENTS == 0xC018_C143);
    const _: () = assert!(SYNC == 0x4010_C145 && ARM == 0x4010_C146 && RELEASE == 0x4008_C144);
    const _: () = assert!(SET_DMA_BITS == 0x4008_C141 && SET_BUS_MASTER == 0x4008_C147);
}
