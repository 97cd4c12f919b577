//! Its registers.

use super::{AxiCdmaModel, RESET_NS, manual};
use crate::SimBus;

impl AxiCdmaModel {
    /// A register.
    pub(super) fn read(&self, offset: usize) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
        let half = |addr: u64| (addr >> (offset % 8 * 8)) as u32;
        let sg = |bit: u32| if self.spec.sg { bit } else { 0 };
        match offset {
            manual::CDMACR => self.control | sg(manual::CR_TAIL_POINTER),
            manual::CDMASR => {
                let idle =
                    if self.is_idle() && self.resets_at_ns.is_none() { manual::SR_IDLE } else { 0 };
                let counts = self.countdown << manual::THRESHOLD_SHIFT;
                self.status | idle | counts | sg(manual::SR_SG_INCLUDED)
            }
            manual::CURDESC | manual::CURDESC_MSB => half(self.current),
            manual::TAILDESC | manual::TAILDESC_MSB => half(self.tail),
            manual::SA | manual::SA_MSB => half(self.from),
            manual::DA | manual::DA_MSB => half(self.to),
            manual::BTT => self.btt,
            _ => 0,
        }
    }

    /// A write of one.
    pub(super) fn write(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        let wide = self.spec.address_bits > 32;
        match offset {
            manual::CDMACR => self.write_control(value, bus),
            manual::CDMASR => {
                self.status &= !(value & manual::IRQ_ALL);
                if self.status & manual::IRQ_ALL == 0 {
                    self.line_at_ns = None;
                }
            }
            manual::TAILDESC | manual::TAILDESC_MSB if self.in_sg_mode() => {
                self.tail = self.half(self.tail, offset, value);
                if (offset == manual::TAILDESC_MSB) == wide {
                    self.doorbell(bus);
                }
            }
            // The others can be written only while it is idle.
            _ if !self.is_idle() => {}
            manual::CURDESC | manual::CURDESC_MSB if self.in_sg_mode() => {
                self.current = self.half(self.current, offset, value)
            }
            manual::SA | manual::SA_MSB => self.from = self.half(self.from, offset, value),
            manual::DA | manual::DA_MSB => self.to = self.half(self.to, offset, value),
            manual::BTT => self.write_btt(value, bus),
            _ => {}
        }
    }

    fn write_control(&mut self, value: u32, bus: &mut SimBus<'_>) {
        if value & manual::CR_RESET != 0 {
            self.control |= manual::CR_RESET;
            if !self.is_stuck() {
                self.resets_at_ns = Some(bus.now_ns() + RESET_NS);
            }
            return;
        }
        let had = self.control;
        let mut has = value & !(manual::CR_RESET | manual::CR_TAIL_POINTER | 1 | 0x8F80);
        if !self.spec.sg {
            has &= !manual::CR_SG_MODE;
        }
        if had & manual::CR_SG_MODE == 0 {
            // Kept only where `SGMode` was set before.
            has &= !manual::IRQ_DELAY;
        }
        self.control = has;
        self.countdown = self.threshold();
        match (had & manual::CR_SG_MODE, has & manual::CR_SG_MODE) {
            (0, 1..) if self.is_idle() => self.reloads = true,
            (1.., 0) if self.is_idle() => (self.current, self.tail) = (0, 0),
            (a, b) if a != b => self.fail(bus.now_ns(), manual::SR_DMA_INT, bus),
            _ => {}
        }
    }

    fn write_btt(&mut self, value: u32, bus: &mut SimBus<'_>) {
        if !self.is_idle() {
            return;
        }
        self.btt = value & self.spec.length_mask();
        if !self.in_sg_mode() && !self.halted && self.resets_at_ns.is_none() {
            self.begin(bus.now_ns(), None, 0, [self.from, self.to], self.btt, bus);
        }
    }

    /// One half of an address.
    fn half(&self, addr: u64, offset: usize, value: u32) -> u64 {
        let halves = if offset.is_multiple_of(8) {
            addr >> 32 << 32 | u64::from(value)
        } else {
            addr & 0xFFFF_FFFF | u64::from(value) << 32
        };
        self.spec.held(halves)
    }
}
