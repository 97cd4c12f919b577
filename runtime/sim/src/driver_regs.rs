//! The drivers' register tables, private parts included: tests compare the models' tables with
//! them.
#![allow(dead_code, unreachable_pub, reason = "a driver uses what these tests do not")]

#[path = "../../drivers/src/ap_ctrl/regs.rs"]
pub(crate) mod ap_ctrl;
#[path = "../../drivers/src/axi_cdma/regs.rs"]
pub(crate) mod axi_cdma;
#[path = "../../drivers/src/axi_dma/regs.rs"]
pub(crate) mod axi_dma;
#[path = "../../drivers/src/axi_dmac/regs.rs"]
pub(crate) mod axi_dmac;
#[path = "../../drivers/src/axi_mcdma/regs.rs"]
pub(crate) mod axi_mcdma;
#[path = "../../drivers/src/axi_vdma/regs.rs"]
pub(crate) mod axi_vdma;
#[path = "../../drivers/src/litepcie/regs.rs"]
pub(crate) mod litepcie;
#[path = "../../drivers/src/msgdma/regs.rs"]
pub(crate) mod msgdma;
#[path = "../../drivers/src/pl330/regs.rs"]
pub(crate) mod pl330;
#[path = "../../drivers/src/zdma/regs.rs"]
pub(crate) mod zdma;

/// Fails for the first pair of numbers, the driver's and the model's, that are not the same.
#[track_caller]
pub(crate) fn agree<T: PartialEq + core::fmt::LowerHex>(pairs: &[(T, T)]) {
    for (index, (driver, model)) in pairs.iter().enumerate() {
        assert!(
            driver == model,
            "pair {index}: {driver:#x} in the driver, {model:#x} in the model"
        );
    }
}
