//! The dispatcher: its registers, the FIFO of descriptors, and the FIFO of responses.

use super::{JOBS_MAX, MsgdmaModel, manual as m};
use crate::faults::Fate;
use heapless::Deque;

/// From the go bit to BUSY: two clocks of 100 MHz.
pub(super) const BUSY_AFTER_NS: u64 = 20;
/// From STOP to the end of the access under way.
const STOP_NS: u64 = 150;
/// How long a reset takes with accesses in flight.
const RESET_NS: u64 = 300;

/// A descriptor in the FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Descriptor {
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) length: u32,
    pub(super) control: u32,
    pub(super) sequence: u32,
    /// Strides in words, as in an extended descriptor; 0: every beat is at the same address.
    pub(super) strides: u32,
}

/// Consecutive words, as standard descriptors always have.
pub(super) const SEQUENTIAL: u32 = 0x0001_0001;

/// The descriptor being carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) descriptor: Descriptor,
    pub(super) done: u32,
    /// When the next burst is due; after the last one, the response.
    pub(super) next_ns: u64,
    pub(super) over: Option<(u32, u32)>,
    pub(super) irq_delay_ns: Option<u64>,
    pub(super) fate: Fate,
    pub(super) writes: bool,
}

impl Active {
    /// Where a stuck descriptor writes.
    pub(super) fn stuck_at(&self) -> Option<u64> {
        (self.fate == Fate::Stuck && self.writes).then_some(self.descriptor.write)
    }

    pub(super) fn never_stops(&self) -> bool {
        self.fate == Fate::Stuck
    }
}

#[derive(Debug, Default)]
pub(super) struct Dispatcher {
    pub(super) depth: usize,
    control: u32,
    irq: bool,
    /// When the line rises for the interrupt; `None`: never.
    line_at_ns: Option<u64>,
    stopped_on: u32,
    /// The words of a descriptor whose go bit is not set yet.
    staged: [u32; 8],
    pub(super) fifo: Deque<Descriptor, JOBS_MAX>,
    pub(super) active: Option<Active>,
    responses: Deque<(u32, u32), { 2 * JOBS_MAX }>,
    /// When the dispatcher became busy; `None`: it is idle.
    busy_since_ns: Option<u64>,
    pub(super) stops_at_ns: Option<u64>,
    pub(super) resets_at_ns: Option<u64>,
    sequence: u32,
}

impl Dispatcher {
    pub(super) fn new(depth: usize) -> Self {
        Self { depth, ..Self::default() }
    }

    pub(super) const fn sequence(&self) -> u32 {
        self.sequence
    }

    pub(super) fn room(&self) -> bool {
        self.fifo.len() < self.depth
    }

    /// Returns whether the next descriptor may start.
    pub(super) fn may_begin(&self) -> bool {
        self.control & (m::CONTROL_STOP | m::CONTROL_STOP_DESCRIPTORS | m::CONTROL_RESET) == 0
            && self.resets_at_ns.is_none()
            && self.active.is_none()
            && self.responses.len() < 2 * self.depth
    }

    pub(super) const fn line_at_ns(&self) -> Option<u64> {
        if self.irq { self.line_at_ns } else { None }
    }

    pub(super) fn stuck_at(&self) -> Option<u64> {
        self.active.as_ref().and_then(Active::stuck_at)
    }

    /// Returns whether the masters were ordered to stop.
    pub(super) const fn masters_stop(&self) -> bool {
        self.control & m::CONTROL_STOP != 0
    }

    fn is_stopped(&self) -> bool {
        let stopped = self.control & m::CONTROL_STOP != 0 && self.stops_at_ns.is_none();
        let drained = self.control & m::CONTROL_STOP_DESCRIPTORS != 0 && self.active.is_none();
        stopped || drained
    }

    pub(super) const fn interrupts(&self) -> bool {
        self.control & m::CONTROL_GLOBAL_INTERRUPT != 0
    }

    fn status(&self, now_ns: u64) -> u32 {
        let busy = self.busy_since_ns.is_some_and(|since_ns| since_ns + BUSY_AFTER_NS <= now_ns);
        let bit = |is: bool, mask: u32| if is { mask } else { 0 };
        bit(busy, m::STATUS_BUSY)
            | bit(self.fifo.is_empty(), m::STATUS_DESCRIPTORS_EMPTY)
            | bit(!self.room(), m::STATUS_DESCRIPTORS_FULL)
            | bit(self.responses.is_empty(), m::STATUS_RESPONSES_EMPTY)
            | bit(self.responses.len() >= 2 * self.depth, m::STATUS_RESPONSES_FULL)
            | bit(self.is_stopped(), m::STATUS_STOP_STATE)
            | bit(self.resets_at_ns.is_some(), m::STATUS_RESET_STATE)
            | self.stopped_on
            | bit(self.irq, m::STATUS_IRQ)
    }

    /// Writes a descriptor word; the last byte of the control word has the go bit.
    pub(super) fn write_descriptor(&mut self, at: usize, value: u32, extended: bool, now_ns: u64) {
        if let Some(word) = self.staged.get_mut(at / 4) {
            *word = value;
        }
        let control_at =
            if extended { m::DESCRIPTOR_CONTROL_ENHANCED } else { m::DESCRIPTOR_CONTROL_STANDARD };
        if at != control_at || value & m::CONTROL_GO == 0 {
            return;
        }
        let word = |at: usize| self.staged.get(at / 4).copied().unwrap_or(0);
        let wide = |low: usize, high: usize| {
            u64::from(word(low)) | if extended { u64::from(word(high)) << 32 } else { 0 }
        };
        let descriptor = Descriptor {
            read: wide(m::DESCRIPTOR_READ_ADDRESS, m::DESCRIPTOR_READ_ADDRESS_HIGH),
            write: wide(m::DESCRIPTOR_WRITE_ADDRESS, m::DESCRIPTOR_WRITE_ADDRESS_HIGH),
            length: word(m::DESCRIPTOR_LENGTH),
            control: value,
            sequence: if extended { word(m::DESCRIPTOR_SEQUENCE) & 0xFFFF } else { 0 },
            strides: if extended { word(m::DESCRIPTOR_STRIDES) } else { SEQUENTIAL },
        };
        self.push(descriptor, now_ns);
    }

    /// On hardware a descriptor without room would stall the bus. Here it is lost, so its job never
    /// ends.
    pub(super) fn push(&mut self, descriptor: Descriptor, now_ns: u64) {
        if self.room() && self.resets_at_ns.is_none() {
            let _ = self.fifo.push_back(descriptor);
            self.busy_since_ns.get_or_insert(now_ns);
        }
    }

    pub(super) fn response(&self) -> (u32, u32) {
        self.responses.front().copied().unwrap_or_default()
    }

    pub(super) fn pop_response(&mut self) -> u32 {
        self.responses.pop_front().unwrap_or_default().1
    }

    pub(super) fn has_response(&self) -> bool {
        !self.responses.is_empty()
    }

    /// The masters have finished a descriptor.
    pub(super) fn done(
        &mut self,
        at_ns: u64,
        active: &Active,
        (bytes, status): (u32, u32),
        keeps_response: bool,
        interrupts_here: bool,
    ) {
        self.sequence = active.descriptor.sequence << 16 | active.descriptor.sequence;
        self.active = None;
        if self.fifo.is_empty() {
            self.busy_since_ns = None;
        }
        if keeps_response {
            let _ = self.responses.push_back((bytes, status));
        }
        let control = active.descriptor.control;
        if self.interrupts() && interrupts_here && interrupts(control, status) {
            if !self.irq {
                self.line_at_ns = active.irq_delay_ns.map(|delay| at_ns + delay);
            }
            self.irq = true;
        }
        let on_error =
            self.control & m::CONTROL_STOP_ON_ERROR != 0 && status & m::RESPONSE_ERROR_MASK != 0;
        let on_early = self.control & m::CONTROL_STOP_ON_EARLY != 0
            && status & m::RESPONSE_EARLY_TERMINATION != 0;
        if on_error || on_early {
            self.control |= m::CONTROL_STOP;
            self.stopped_on |=
                if on_error { m::STATUS_STOPPED_ON_ERROR } else { m::STATUS_STOPPED_ON_EARLY };
        }
    }

    /// Completes a stop or a reset that ends by `at_ns`.
    pub(super) fn settle(&mut self, at_ns: u64) {
        if self.stops_at_ns.is_some_and(|stops| stops <= at_ns) {
            self.stops_at_ns = None;
        }
        if self.resets_at_ns.is_some_and(|resets| resets <= at_ns) {
            *self = Self::new(self.depth);
        }
    }
}

/// Returns whether a descriptor with this control word interrupts for this status.
pub(super) const fn interrupts(control: u32, status: u32) -> bool {
    let errors = status & m::RESPONSE_ERROR_MASK & (control & m::CONTROL_ERROR_IRQ) >> 16;
    let early = status & m::RESPONSE_EARLY_TERMINATION != 0
        && control & m::CONTROL_EARLY_TERMINATION_IRQ != 0;
    control & m::CONTROL_TRANSFER_COMPLETE_IRQ != 0 || errors != 0 || early
}

impl MsgdmaModel {
    pub(super) fn read_csr(&self, at: usize, now_ns: u64) -> u32 {
        let (config_1, config_2, info) = self.config_words();
        let dispatcher = &self.dispatcher;
        let waiting = u32::try_from(dispatcher.fifo.len()).unwrap_or(0);
        match at {
            m::CSR_STATUS => dispatcher.status(now_ns),
            m::CSR_CONTROL => dispatcher.control,
            m::CSR_FILL_LEVEL => waiting << 16 | waiting,
            m::CSR_RESPONSE_FILL_LEVEL => u32::try_from(dispatcher.responses.len()).unwrap_or(0),
            m::CSR_SEQUENCE => dispatcher.sequence,
            m::CSR_CONFIG_1 => config_1,
            m::CSR_CONFIG_2 => config_2,
            m::CSR_TYPE_VERSION => info,
            _ => 0,
        }
    }

    pub(super) fn write_csr(&mut self, at: usize, value: u32, now_ns: u64) {
        let dispatcher = &mut self.dispatcher;
        match at {
            m::CSR_STATUS if value & m::STATUS_IRQ != 0 => dispatcher.irq = false,
            // The end of a running reset clears the whole register.
            m::CSR_CONTROL if dispatcher.resets_at_ns.is_some() => {}
            m::CSR_CONTROL if value & m::CONTROL_RESET != 0 => {
                dispatcher.control = m::CONTROL_RESET;
                let stuck = dispatcher.stuck_at().is_some()
                    || dispatcher.active.as_ref().is_some_and(Active::never_stops);
                dispatcher.resets_at_ns = Some(if stuck { u64::MAX } else { now_ns + RESET_NS });
                self.stream.cut(true);
            }
            m::CSR_CONTROL => {
                if value & m::CONTROL_STOP == 0 {
                    (dispatcher.stopped_on, dispatcher.stops_at_ns) = (0, None);
                } else if dispatcher.control & m::CONTROL_STOP == 0 {
                    self.stop_masters();
                    let dispatcher = &mut self.dispatcher;
                    let stuck = dispatcher.active.as_ref().is_some_and(Active::never_stops);
                    dispatcher.stops_at_ns = Some(if stuck { u64::MAX } else { now_ns + STOP_NS });
                }
                self.dispatcher.control = value & 0x3F;
            }
            _ => {}
        }
    }
}
