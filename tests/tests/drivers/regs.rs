//! The drivers' register tables, which are private: the tests read and write registers by them.
#![allow(dead_code, unreachable_pub, reason = "a driver uses what these tests do not")]

#[path = "../../../runtime/drivers/src/axi_cdma/regs.rs"]
pub(crate) mod axi_cdma;
#[path = "../../../runtime/drivers/src/axi_dma/regs.rs"]
pub(crate) mod axi_dma;
#[path = "../../../runtime/drivers/src/axi_dmac/regs.rs"]
pub(crate) mod axi_dmac;
#[path = "../../../runtime/drivers/src/axi_gate/regs.rs"]
pub(crate) mod axi_gate;
#[path = "../../../runtime/drivers/src/axi_mcdma/regs.rs"]
pub(crate) mod axi_mcdma;
#[path = "../../../runtime/drivers/src/axi_vdma/regs.rs"]
pub(crate) mod axi_vdma;
#[path = "../../../runtime/drivers/src/msgdma/regs.rs"]
pub(crate) mod msgdma;
#[path = "../../../runtime/drivers/src/pl330/regs.rs"]
pub(crate) mod pl330;
#[path = "../../../runtime/drivers/src/zdma/regs.rs"]
pub(crate) mod zdma;

/// UG1399, "S_AXILITE Control Register Map". The driver's own table needs its kernel maps.
pub(crate) mod ap_ctrl {
    use contigo::hw::mmio::{ReadClears, Register, WriteOneToggles};

    pub(crate) const CTRL: Register<ReadClears> = Register::at(0x00);
    pub(crate) const ISR: Register<WriteOneToggles> = Register::at(0x0C);
    pub(crate) const AP_START: u32 = 1 << 0;
    pub(crate) const AP_DONE: u32 = 1 << 1;
    pub(crate) const AP_IDLE: u32 = 1 << 2;
    pub(crate) const AP_READY: u32 = 1 << 3;
    pub(crate) const AUTO_RESTART: u32 = 1 << 7;
    pub(crate) const IDLE_MASK: u32 = AP_IDLE | AP_START;

    pub(crate) fn is_idle(ctrl: u32) -> bool {
        ctrl & IDLE_MASK == AP_IDLE
    }
}
