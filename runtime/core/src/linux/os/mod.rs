//! System calls: files, folders, mappings, caches.

pub(crate) mod cache;
pub mod dir;
pub mod fd;
mod kernel;
pub(crate) mod map;
pub mod pagemap;
pub mod path;
pub(crate) mod pin;
#[cfg(feature = "testkit")]
pub mod seam;
mod spin;
pub mod sysfs;
pub(crate) mod text;

pub use self::spin::Spin;

pub(crate) use kernel::{Argument, Kernel, RUNNING, SystemCalls, arguments, ask};
