//! The fake's open files, and what closing each does.

use super::{FakeVfio, machine::Event};
use std::os::fd::{AsRawFd, OwnedFd};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/dev/vfio/vfio`.
    Container,
    /// `/dev/vfio/<group>`.
    Group,
    /// The device, from its group.
    DeviceOfGroup,
    /// `/dev/vfio/devices/vfio<number>`.
    Device,
    /// `/dev/iommu`.
    Iommufd,
    /// An eventfd.
    Event,
}

/// An open file.
#[derive(Debug)]
pub(super) struct FakeFile {
    pub(super) fd: OwnedFd,
    pub(super) kind: Kind,
    pub(super) kernel: FakeVfio,
}

impl Drop for FakeFile {
    fn drop(&mut self) {
        let mut state = self.kernel.lock();
        state.open_files -= 1;
        if self.kind != Kind::Event {
            state.log.push(Event::Closed(self.kind));
        }
        state.close(self.kind, self.fd.as_raw_fd());
    }
}
