//! What the compiler alone cannot see: documents, layers, sources without `std`, programs that
//! must not compile, C headers, and Miri.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed, which is its purpose"
)]

mod compile_fail;
mod docs;
mod layers;
mod miri;
mod std_free;
mod uapi;

use std::path::Path;

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
