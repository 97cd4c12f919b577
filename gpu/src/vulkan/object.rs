//! A block of a device's memory, and an operand in it: where the device finds it, and its part in
//! barriers.

use ash::vk;
use contigo::Direction;

/// A block of a GPU's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// All of it, from its first byte on.
    pub(super) buffer: vk::Buffer,
    /// The queue family that has it between two jobs: `VK_QUEUE_FAMILY_IGNORED` where no other
    /// one can have it.
    pub(super) owner: u32,
}

/// An operand, where the device finds it.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub(super) object: Object,
    pub(super) offset: u64,
    pub(super) len_bytes: u64,
    pub(super) direction: Direction,
}

impl Bound {
    /// Stands in an array before the real ones are known.
    pub(super) const NONE: Self = Self {
        object: Object { buffer: vk::Buffer::null(), owner: vk::QUEUE_FAMILY_IGNORED },
        offset: 0,
        len_bytes: 0,
        direction: Direction::Bidirectional,
    };

    /// The shader's accesses.
    pub(super) fn accesses(&self) -> vk::AccessFlags {
        match self.direction {
            Direction::ToDevice => vk::AccessFlags::SHADER_READ,
            Direction::FromDevice => vk::AccessFlags::SHADER_WRITE,
            Direction::Bidirectional => {
                vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE
            }
        }
    }

    /// The families that it is acquired from and by: `IGNORED` where no other one can have it.
    pub(super) const fn families(&self, ours: u32) -> (u32, u32) {
        match self.object.owner {
            vk::QUEUE_FAMILY_IGNORED => (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED),
            owner => (owner, ours),
        }
    }

    /// A barrier over its bytes.
    pub(super) fn barrier(
        &self,
        from: vk::AccessFlags,
        to: vk::AccessFlags,
        from_family: u32,
        to_family: u32,
    ) -> vk::BufferMemoryBarrier<'static> {
        vk::BufferMemoryBarrier::default()
            .src_access_mask(from)
            .dst_access_mask(to)
            .src_queue_family_index(from_family)
            .dst_queue_family_index(to_family)
            .buffer(self.object.buffer)
            .offset(self.offset)
            .size(self.len_bytes)
    }
}
