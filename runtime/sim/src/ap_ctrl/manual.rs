//! The control block's numbers, transcribed separately from the driver's, from the table at the top
//! of the file that HLS writes (`<kernel>_control_s_axi.v`, "Address Info").

pub(super) const AP_CTRL: usize = 0x00; // 0x00 : Control signals
pub(super) const GIE: usize = 0x04; // 0x04 : Global Interrupt Enable Register
pub(super) const IER: usize = 0x08; // 0x08 : IP Interrupt Enable Register
pub(super) const ISR: usize = 0x0C; // 0x0c : IP Interrupt Status Register

pub(super) const START: u32 = 0x01; // bit 0 - ap_start (Read/Write/COH)
/// `bit 1 - ap_done`: `(Read/COR)` of ap_ctrl_hs, `(Read)` of ap_ctrl_chain.
pub(super) const DONE: u32 = 0x02;
pub(super) const IDLE: u32 = 0x04; // bit 2 - ap_idle (Read)
pub(super) const READY: u32 = 0x08; // bit 3 - ap_ready (Read/COR)
pub(super) const CONTINUE: u32 = 0x10; // bit 4 - ap_continue (Read/Write/SC)

pub(super) const AUTO_RESTART: u32 = 0x80; // bit 7 - auto_restart (Read/Write)

pub(super) const CHANNEL_DONE: u32 = 0x1; // bit 0 of IER and ISR: ap_done
pub(super) const CHANNEL_READY: u32 = 0x2; // bit 1 of IER and ISR: ap_ready

#[cfg(test)]
mod tests {
    use crate::driver_regs::ap_ctrl as regs;

    #[test]
    fn the_driver_and_the_model_read_the_same_table() {
        let driver =
            [regs::CTRL.offset(), regs::GIE.offset(), regs::IER.offset(), regs::ISR.offset()];
        assert_eq!(driver, [super::AP_CTRL, super::GIE, super::IER, super::ISR]);
        let driver = [regs::AP_START, regs::AP_DONE, regs::AP_IDLE, regs::AP_CONTINUE];
        assert_eq!(driver, [super::START, super::DONE, super::IDLE, super::CONTINUE]);
        let driver = [regs::INT_DONE, regs::INT_READY];
        assert_eq!(driver, [super::CHANNEL_DONE, super::CHANNEL_READY]);
    }
}
