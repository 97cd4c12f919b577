//! NVIDIA Tegra X1 (T210), of the Jetson Nano: four Cortex-A57 and a GPU of compute capability 5.3.
//!
//! It has no port here: no manual was read for the reach of its masters, and none is invented. Two
//! sources say:
//!
//! - **Memory that CUDA pins** is uncached for the CPU, because nothing snoops for the GPU (CUDA
//!   for Tegra, "Memory Management"; compute capability below 7.2). `contigo::cuda` makes the GPU's
//!   port at run time.
//! - **Other masters**: the memory controller takes 34 address bits and translates for some of them
//!   (Linux 6.12, `drivers/memory/tegra/tegra210.c`: `num_address_bits`, `tegra210_smmu_soc`). In
//!   `arch/arm64/boot/dts/nvidia/tegra210.dtsi` the GPU, the displays, host1x and VIC have
//!   `iommus`; PCIe has none, and no node is `dma-coherent`.

use crate::Soc;

/// Every Tegra X1 (`tegra210.dtsi`). Its own DMA controllers have no driver here.
pub const SOC: Soc = Soc { name: "Tegra X1", compatible: "nvidia,tegra210", engines: &[] };
