//! The floor of system calls: files, folders, mappings, caches.

pub(crate) mod cache;
pub(crate) mod dir;
pub(crate) mod fd;
pub(crate) mod map;
pub(crate) mod pagemap;
pub(crate) mod pin;
pub(crate) mod process;
pub(crate) mod sysfs;
