//! The floor of system calls: files, folders, mappings, caches.

mod asked;
pub(crate) mod cache;
pub(crate) mod dir;
mod exported;
pub(crate) mod fd;
pub(crate) mod map;
pub(crate) mod pagemap;
pub(crate) mod pin;
mod process;
#[cfg(feature = "testkit")]
pub(crate) mod seam;
mod spin;
pub(crate) mod sysfs;
pub(crate) mod text;

pub use self::{exported::ExportedFd, process::same_process, spin::Spin};

pub(crate) use asked::asked;
