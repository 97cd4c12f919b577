//! Events, and the interrupt lines that some events drive.

/// 32 events; each is an interrupt if its bit is set in `enabled`.
#[derive(Clone, Debug)]
pub(super) struct Events {
    /// INTEN.
    pub(super) enabled: u32,
    /// INT_EVENT_RIS.
    pub(super) raised: u32,
    /// When each interrupt line rises: late or, at `u64::MAX`, never.
    rises_at_ns: [u64; 32],
}

impl Events {
    pub(super) const fn new() -> Self {
        Self { enabled: 0, raised: 0, rises_at_ns: [0; 32] }
    }

    /// DMASEV; an interrupt is delivered at `at_ns`.
    pub(super) fn raise(&mut self, event: u8, at_ns: u64) {
        self.raised |= 1 << event;
        if let Some(rises_at_ns) = self.rises_at_ns.get_mut(usize::from(event)) {
            *rises_at_ns = at_ns;
        }
    }

    /// DMAWFE: takes an event that is not an interrupt.
    pub(super) fn take(&mut self, event: u8) -> bool {
        let bit = 1 << event & !self.enabled & self.raised;
        self.raised &= !bit;
        bit != 0
    }

    /// INTCLR.
    pub(super) fn clear(&mut self, bits: u32) {
        self.raised &= !(bits & self.enabled);
    }

    /// INTMIS.
    pub(super) const fn interrupts(&self) -> u32 {
        self.raised & self.enabled
    }

    /// When the first raised interrupt is delivered.
    pub(super) fn delivered_at_ns(&self) -> Option<u64> {
        let lines = (0..)
            .zip(&self.rises_at_ns)
            .filter(|&(event, _): &(u32, _)| self.interrupts() >> event & 1 == 1);
        lines.map(|(_, &at_ns)| at_ns).min().filter(|&at_ns| at_ns != u64::MAX)
    }
}
