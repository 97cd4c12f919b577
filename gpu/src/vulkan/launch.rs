//! The limits of a device, compared with a kernel and its jobs.

use super::VulkanFacts;
use crate::common::within;
use contigo::job::Launch;
use contigo::mem::DevSlice;
use contigo::{Error, Result};

const GROUPS: [&str; 3] =
    ["workgroups of a launch in x", "workgroups of a launch in y", "workgroups of a launch in z"];
const THREADS: [&str; 3] =
    ["threads of a workgroup in x", "threads of a workgroup in y", "threads of a workgroup in z"];

fn axes(names: [&'static str; 3], values: [u32; 3], least: [u32; 3], most: [u32; 3]) -> Result<()> {
    let bounds = least.into_iter().zip(most);
    names.into_iter().zip(values).zip(bounds).try_for_each(|((name, value), (min, max))| {
        within(name, value.into(), min.into(), max.into())
    })
}

/// Does the device take a kernel of so many threads a workgroup, operands and bytes of argument
/// words?
pub(super) fn kernel(
    facts: &VulkanFacts,
    local: [u32; 3],
    operands: usize,
    push_bytes: u32,
) -> Result<()> {
    axes(THREADS, local, [1; 3], facts.max_threads)?;
    let threads = local.into_iter().fold(1_u32, u32::saturating_mul);
    within("threads of a workgroup", threads.into(), 1, facts.max_invocations.into())?;
    let max = facts.max_push_constant_bytes.into();
    within("bytes of a kernel's argument words", push_bytes.into(), 0, max)?;
    if operands as u64 > facts.max_storage_buffers.into() {
        let most = facts.max_storage_buffers.into();
        return Err(Error::TooMany {
            what: "operands of a kernel on this Vulkan device \
                   (maxPerStageDescriptorStorageBuffers)",
            most,
        });
    }
    Ok(())
}

/// Does a kernel whose workgroup has the threads `local` take this launch?
pub(super) fn launch(facts: &VulkanFacts, local: [u32; 3], launch: &Launch) -> Result<()> {
    axes(THREADS, launch.block, local, local)?;
    axes(GROUPS, launch.grid, [1; 3], facts.max_groups)?;
    let name = "shared bytes of a launch, which a shader declares itself,";
    within(name, launch.shared_bytes.into(), 0, 0)
}

/// Does the device take this operand?
pub(super) fn operand(facts: &VulkanFacts, index: usize, operand: &DevSlice) -> Result<()> {
    let align = facts.min_storage_buffer_offset_alignment;
    // Every block of the device's bus begins at a multiple of 2^40. VUID-VkWriteDescriptorSet-
    // descriptorType-00328.
    if !operand.addr.0.is_multiple_of(align) {
        let align_bytes = usize::try_from(align).unwrap_or(usize::MAX);
        return Err(Error::BufferAlign { index, addr: operand.addr.0, align_bytes });
    }
    // VUID-VkWriteDescriptorSet-descriptorType-00333.
    let (have_bytes, max_bytes) =
        (operand.len_bytes, usize::try_from(facts.max_storage_buffer_range).unwrap_or(usize::MAX));
    if have_bytes > max_bytes {
        return Err(Error::OperandTooLong { index, have_bytes, max_bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::least;
    use super::*;
    use contigo::DevAddr;

    fn refused(name: &'static str, value: u64, min: u64, max: u64) -> Option<Error> {
        Some(Error::Argument { name, value, min, max, multiple_of: 1 })
    }

    #[test]
    fn a_kernel_is_within_the_device() {
        let kernel = |local, operands, push| kernel(&least(), local, operands, push).err();
        assert_eq!(kernel([128, 1, 1], 4, 128), None);
        assert_eq!(kernel([129, 1, 1], 4, 0), refused("threads of a workgroup in x", 129, 1, 128));
        assert_eq!(kernel([1, 0, 1], 4, 0), refused("threads of a workgroup in y", 0, 1, 128));
        assert_eq!(kernel([1, 1, 65], 4, 0), refused("threads of a workgroup in z", 65, 1, 64));
        assert_eq!(kernel([16, 16, 1], 4, 0), refused("threads of a workgroup", 256, 1, 128));
        assert_eq!(
            kernel([1; 3], 4, 132),
            refused("bytes of a kernel's argument words", 132, 0, 128)
        );
        assert!(matches!(kernel([1; 3], 5, 0), Some(Error::TooMany { most: 4, .. })));
    }

    #[test]
    fn launch_fits_shader_and_device_limits() {
        let local = [64, 2, 1];
        let launch = |grid, block, shared_bytes| {
            launch(&least(), local, &Launch { grid, block, shared_bytes }).err()
        };
        assert_eq!(launch([65_535, 1, 1], local, 0), None);
        assert_eq!(
            launch([1, 65_536, 1], local, 0),
            refused("workgroups of a launch in y", 65_536, 1, 65_535)
        );
        assert_eq!(
            launch([1, 1, 0], local, 0),
            refused("workgroups of a launch in z", 0, 1, 65_535)
        );
        assert_eq!(
            launch([1; 3], [32, 2, 1], 0),
            refused("threads of a workgroup in x", 32, 64, 64)
        );
        assert_eq!(
            launch([1; 3], local, 4),
            refused("shared bytes of a launch, which a shader declares itself,", 4, 0, 0)
        );
    }

    #[test]
    fn an_operand_is_aligned_and_not_too_long() {
        let operand = |addr, len_bytes| {
            operand(&least(), 3, &DevSlice { addr: DevAddr(addr), offset_bytes: 0, len_bytes })
                .err()
        };
        assert_eq!(operand(1 << 40, 1 << 27), None);
        assert_eq!(
            operand(1 << 40 | 64, 4),
            Some(Error::BufferAlign { index: 3, addr: 1 << 40 | 64, align_bytes: 256 })
        );
        let (have_bytes, max_bytes) = ((1 << 27) + 4, 1 << 27);
        assert_eq!(
            operand(1 << 40, have_bytes),
            Some(Error::OperandTooLong { index: 3, have_bytes, max_bytes })
        );
    }
}
