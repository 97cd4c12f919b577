//! Made from the folders of boards/, and never written by hand: see boards/README.md.

use contigo_cross::targets::{AARCH64, ARMV7, Target};

/// Every board, and every family of boards, by name.
#[rustfmt::skip]
pub(super) const BOARDS: &[(&str, &Target)] = &[
    ("de10-nano", &ARMV7),
    ("jetson", &AARCH64),
    ("jetson-nano", &AARCH64),
    ("jetson-orin", &AARCH64),
    ("jetson-xavier", &AARCH64),
    ("kria", &AARCH64),
    ("kv260", &AARCH64),
    ("pynq-z2", &ARMV7),
    ("zc702", &ARMV7),
    ("zcu102", &AARCH64),
    ("zynq", &ARMV7),
    ("zynqmp", &AARCH64),
];
