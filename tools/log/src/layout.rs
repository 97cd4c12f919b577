//! The file: a header of one page, then the ring. All numbers are little-endian.

/// The first bytes of the file. The last one is the version of the layout.
pub(crate) const MAGIC: [u8; 8] = *b"ctg-log\x01";
/// The header's size: a page of every kernel here, so that the ring begins on one.
pub(crate) const HEADER_BYTES: usize = 4096;
/// The most bytes of one frame, as they are in the ring. A longer event is dropped. A thread keeps
/// so many for itself.
pub(crate) const FRAME_BYTES: usize = 512;
/// The most bytes of the program's path that the header holds; Linux's `PATH_MAX` is longer, and
/// such a path is cut.
pub(crate) const PATH_BYTES: usize = 1024;
/// The room of a GNU build ID: 20 bytes, by SHA-1. No linker makes a longer one by default.
pub(crate) const BUILD_ID_BYTES: usize = 20;

/// Each field's place in the header.
pub(crate) mod at {
    /// `u32`: the ring's size.
    pub(crate) const RING_BYTES: usize = 8;
    /// `u32`: the process.
    pub(crate) const PID: usize = 12;
    /// `u64`: nanoseconds of `CLOCK_MONOTONIC` at the start.
    pub(crate) const START_MONOTONIC_NS: usize = 16;
    /// `u64`: nanoseconds of `CLOCK_REALTIME` at the start.
    pub(crate) const START_REAL_NS: usize = 24;
    /// Text of 36 bytes: the kernel's number of this boot.
    pub(crate) const BOOT_ID: usize = 32;
    /// `u64`: how many bytes are whole frames, counted from the start.
    pub(crate) const WRITTEN: usize = 128;
    /// `u64`: how many bytes have been begun. The ring's room below `RESERVED - RING_BYTES` has
    /// been given away.
    pub(crate) const RESERVED: usize = 136;
    /// `u64`: how many events were dropped.
    pub(crate) const DROPPED: usize = 144;
    /// `u32`: the build ID's length.
    pub(crate) const BUILD_ID_LEN: usize = 192;
    /// The build ID.
    pub(crate) const BUILD_ID: usize = 196;
    /// `u32`: the path's length.
    pub(crate) const PATH_LEN: usize = 252;
    /// The path of the program's file.
    pub(crate) const PATH: usize = 256;
}

/// The length of the kernel's boot ID, as text.
pub(crate) const BOOT_ID_BYTES: usize = 36;

const _: () =
    assert!(at::PATH + PATH_BYTES <= HEADER_BYTES && at::BUILD_ID + BUILD_ID_BYTES <= at::PATH_LEN);
