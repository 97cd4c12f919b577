//! NVIDIA Xavier (T194), of the Jetson AGX Xavier and Xavier NX: up to eight Carmel cores and a GPU
//! of compute capability 7.2.
//!
//! It has no port here: no manual was read for the reach of its masters, and none is invented. Two
//! sources say:
//!
//! - **Memory that CUDA pins** is cached by the CPU, and the GPU's accesses snoop (CUDA for Tegra,
//!   "I/O Coherency"; compute capability from 7.2 on). Linux agrees: `gpu@17000000` is
//!   `dma-coherent` (6.12, `arch/arm64/boot/dts/nvidia/tegra194.dtsi`). `contigo::cuda` makes the
//!   GPU's port at run time.
//! - **PCIe** is `dma-coherent` and behind an Arm MMU-500 (the same file: `pcie@14180000`,
//!   `iommu-map`, `smmu`). A card's memory comes from VFIO, and its port from `contigo::vfio`.
//! - **Addresses**: memory clients have 39 bits, because bit 39 asks for another layout (the same
//!   file, the comment on `dma-ranges` of `memory-controller@2c00000`).

use crate::Soc;

/// Every Xavier (`tegra194.dtsi`). Its own DMA controllers have no driver here.
pub const SOC: Soc = Soc { name: "Xavier", compatible: "nvidia,tegra194", engines: &[] };
