//! NVIDIA Orin (T234), of the Jetson AGX Orin, Orin NX and Orin Nano: up to twelve Cortex-A78AE and
//! a GPU of compute capability 8.7.
//!
//! It has no port here: no manual was read for the reach of its masters, and none is invented. Two
//! sources say:
//!
//! - **Memory that CUDA pins** is cached by the CPU, and the GPU's accesses snoop (CUDA for Tegra,
//!   "I/O Coherency"; compute capability from 7.2 on). `contigo::cuda` makes the GPU's port at run
//!   time.
//! - **PCIe** is `dma-coherent` and behind an Arm MMU-500 (Linux 6.12,
//!   `arch/arm64/boot/dts/nvidia/tegra234.dtsi`: `pcie@14180000`, `iommu-map`, `smmu_niso0`). A
//!   card's memory comes from VFIO, and its port from `contigo::vfio`.
//! - **Addresses**: memory clients have 39 bits, because bit 39 asks for another layout (the same
//!   file, the comment on `dma-ranges` of `memory-controller@2c00000`).

use crate::Soc;

/// Every Orin (`tegra234.dtsi`). Its own DMA controllers have no driver here.
pub const SOC: Soc = Soc { name: "Orin", compatible: "nvidia,tegra234", engines: &[] };
