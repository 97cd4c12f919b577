//! The model's own registers, transcribed separately from the driver's `regs`: from LitePCIe's
//! kernel driver, `litepcie/software/kernel/config.h`. Each names its macro. A test compares the
//! two.

#[cfg(test)]
pub(super) const WRITER: usize = 0x0000; // PCIE_DMA_WRITER_ENABLE_OFFSET
pub(super) const READER: usize = 0x0020; // PCIE_DMA_READER_ENABLE_OFFSET
pub(super) const LOOPBACK: usize = 0x0040; // PCIE_DMA_LOOPBACK_ENABLE_OFFSET

/// From a lane's first register: `PCIE_DMA_WRITER_TABLE_VALUE_OFFSET`; the address is four bytes
/// further (`main.c`, `litepcie_dma_writer_start`).
pub(super) const VALUE: usize = 0x0004;
pub(super) const WE: usize = 0x000C; // PCIE_DMA_WRITER_TABLE_WE_OFFSET
pub(super) const LOOP_PROG_N: usize = 0x0010; // PCIE_DMA_WRITER_TABLE_LOOP_PROG_N_OFFSET
pub(super) const LOOP_STATUS: usize = 0x0014; // PCIE_DMA_WRITER_TABLE_LOOP_STATUS_OFFSET
pub(super) const LEVEL: usize = 0x0018; // PCIE_DMA_WRITER_TABLE_LEVEL_OFFSET
pub(super) const FLUSH: usize = 0x001C; // PCIE_DMA_WRITER_TABLE_FLUSH_OFFSET

#[cfg(test)]
pub(super) const LAST_DISABLE: u32 = 1 << 25; // DMA_LAST_DISABLE
/// A length has 24 bits; the next bit is `DMA_IRQ_DISABLE`.
pub(super) const LENGTH: u32 = (1 << 24) - 1;

pub(super) const DMA0: usize = 0x6000; // CSR_PCIE_DMA0_BASE of LiteX-M2SDR
pub(super) const MSI: usize = 0x5800; // CSR_PCIE_MSI_BASE of LiteX's SoC for the Acorn

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_regs::litepcie as regs;
    use contigo_core::hw::mmio::Register;
    use contigo_drivers::litepcie::LitepcieConfig;

    #[test]
    fn the_drivers_numbers_are_the_models() {
        fn at<A: Copy>(register: Register<A>) -> usize {
            register.offset()
        }
        let lane = regs::Lane::at(0x100);
        let found = [
            at(lane.enable),
            at(lane.value_high),
            at(lane.value_low),
            at(lane.we),
            at(lane.loop_prog_n),
            at(lane.loop_status),
        ];
        let expected = [0, VALUE, VALUE + 4, WE, LOOP_PROG_N, LOOP_STATUS];
        assert_eq!(found, expected.map(|offset| 0x100 + offset));
        assert_eq!(at(lane.reset), 0x100 + FLUSH);
        assert_eq!((regs::LAST_DISABLE, regs::LENGTH), (LAST_DISABLE, LENGTH));
        let config = LitepcieConfig::default();
        let places = [config.writer_at, config.reader_at, config.loopback_at, config.msi_at]
            .map(|at| at as usize);
        let dma = DMA0;
        assert_eq!(places, [dma + WRITER, dma + READER, dma + LOOPBACK, MSI]);
    }
}
