//! The floor of system calls: files, folders, mappings, caches.

mod asked;
pub(crate) mod cache;
pub(crate) mod dir;
pub(crate) mod fd;
pub(crate) mod map;
pub(crate) mod pagemap;
pub(crate) mod pin;
#[cfg(feature = "testkit")]
pub(crate) mod seam;
mod spin;
pub(crate) mod sysfs;
pub(crate) mod text;

pub use self::spin::Spin;

pub(crate) use asked::asked;
