//! What a child of fork is refused.

use super::LIMIT;
pub(super) use super::child::said as said_by;
use super::forks::Inherited;
use super::shaders::scale;
use contigo::{Driver, Result};
use contigo_gpu::Pages;
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};

pub(super) fn answers(child: &mut Inherited<'_>) -> Vec<Result<()>> {
    let (gpu, module) = (child.memory.gpu(), &child.opened.scale);
    let imported = VulkanMemory::import(gpu, Pages::new(1).unwrap());
    assert!(gpu.is_hung());
    // SAFETY: glslangValidator made the shader, and no kernel is made of it.
    unsafe {
        vec![
            VulkanGpu::count().map(drop),
            VulkanGpu::list().map(drop),
            imported.map(drop).map_err(|refused| refused.error),
            VulkanModule::load(gpu, child.code).map(drop),
            VulkanKernel::new(module, c"main", scale(), [64, 1, 1]).map(drop),
            child.busy.check(child.operands, child.words),
            child.busy.poll(LIMIT).map(drop),
        ]
    }
}
