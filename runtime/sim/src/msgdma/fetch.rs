//! The prefetcher: it fetches descriptors, and writes back their results. It reads a descriptor in
//! two steps, and its control word in the second.

use super::dispatcher::{Descriptor, SEQUENTIAL, interrupts};
use super::{JOBS_MAX, MsgdmaModel, manual as m};
use crate::SimBus;
use contigo_core::types::DevAddr;
use heapless::Deque;

/// The time of each of the two steps of a fetch.
const FETCH_NS: u64 = 150;
/// The time of a write-back.
const WRITE_BACK_NS: u64 = 120;
/// The time of a reset.
const RESET_NS: u64 = 100;

/// The state of the fetch.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Idle,
    /// The time of the first step.
    First(u64),
    /// The time of the second step, and the words of the first.
    Second(u64, [u32; m::WORDS_ENHANCED]),
    /// The prefetcher waits for room in the dispatcher.
    Full([u32; m::WORDS_ENHANCED]),
}

#[derive(Debug, Default)]
pub(super) struct Fetch {
    control: u32,
    next: u64,
    at: u64,
    poll: u32,
    irq: bool,
    line_at_ns: Option<u64>,
    state: State,
    /// The addresses of the descriptors in the dispatcher, and their control words.
    pointers: Deque<(u64, u32), JOBS_MAX>,
    /// The prefetcher has run since its reset, so it writes responses back.
    writes_back: bool,
    write_back_at_ns: Option<u64>,
    irq_delays_ns: Deque<Option<u64>, JOBS_MAX>,
    /// Control words on their way to memory: the time of arrival, the address, and the word.
    landing: Deque<(u64, u64, u32), JOBS_MAX>,
    resets_at_ns: Option<u64>,
}

impl Fetch {
    pub(super) const fn line_at_ns(&self) -> Option<u64> {
        if self.irq { self.line_at_ns } else { None }
    }

    pub(super) fn next_at_ns(&self, room: bool) -> Option<u64> {
        let fetch = match self.state {
            State::Idle => None,
            State::First(at_ns) | State::Second(at_ns, _) => Some(at_ns),
            State::Full(_) => room.then_some(0),
        };
        let landing = self.landing.front().map(|(at_ns, ..)| *at_ns);
        [fetch, self.write_back_at_ns, landing, self.resets_at_ns].into_iter().flatten().min()
    }

    pub(super) fn read(&self, at: usize) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "the two halves of an address")]
        match at {
            m::PREFETCHER_CONTROL => self.control,
            m::PREFETCHER_NEXT_LOW => self.next as u32,
            m::PREFETCHER_NEXT_HIGH => (self.next >> 32) as u32,
            m::PREFETCHER_POLL_FREQUENCY => self.poll,
            m::PREFETCHER_STATUS => u32::from(self.irq),
            _ => 0,
        }
    }

    pub(super) fn write(&mut self, at: usize, value: u32, now_ns: u64) {
        match at {
            m::PREFETCHER_CONTROL => {
                // RUN and the reset bit clear themselves; writing 0 does not clear them.
                let kept = self.control & (m::PREFETCHER_RUN | m::PREFETCHER_RESET);
                let begins = value & m::PREFETCHER_RUN != 0 && kept & m::PREFETCHER_RUN == 0;
                self.control = value & 0x1F | kept;
                if value & m::PREFETCHER_RESET != 0 {
                    self.reset_if_idle(now_ns);
                } else if begins && kept & m::PREFETCHER_RESET == 0 {
                    (self.state, self.at, self.writes_back) =
                        (State::First(now_ns + FETCH_NS), self.next, true);
                }
            }
            m::PREFETCHER_NEXT_LOW => self.next = self.next >> 32 << 32 | u64::from(value),
            m::PREFETCHER_NEXT_HIGH => self.next = self.next & 0xFFFF_FFFF | u64::from(value) << 32,
            m::PREFETCHER_POLL_FREQUENCY => self.poll = value & 0xFFFF,
            m::PREFETCHER_STATUS if value & m::PREFETCHER_STATUS_IRQ != 0 => self.irq = false,
            _ => {}
        }
    }

    /// Resets once no descriptor is under way, not even one that waits for room.
    fn reset_if_idle(&mut self, now_ns: u64) {
        if self.control & m::PREFETCHER_RESET != 0 && matches!(self.state, State::Idle) {
            self.resets_at_ns.get_or_insert(now_ns + RESET_NS);
        }
    }

    /// Handles a response of the dispatcher.
    pub(super) fn response(&mut self, at_ns: u64, irq_delay_ns: Option<u64>) {
        let _ = self.irq_delays_ns.push_back(irq_delay_ns);
        if self.writes_back {
            self.write_back_at_ns.get_or_insert(at_ns + WRITE_BACK_NS);
        }
    }
}

fn words_of<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = bytes.try_into().map_or(0, u32::from_le_bytes);
    }
    words
}

impl MsgdmaModel {
    /// Does the prefetcher's step that is due at `at_ns`.
    pub(super) fn step_fetch(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        if self.fetch.resets_at_ns.is_some_and(|resets| resets <= at_ns) {
            let Fetch { next, poll, control, irq, line_at_ns, landing, .. } =
                core::mem::take(&mut self.fetch);
            let control = control & !(m::PREFETCHER_RUN | m::PREFETCHER_RESET);
            // An interconnect that answered early still performs its writes.
            self.fetch =
                Fetch { next, poll, control, irq, line_at_ns, landing, ..Fetch::default() };
        }
        self.land_words(at_ns, bus);
        if self.fetch.write_back_at_ns.is_some_and(|due| due <= at_ns) {
            self.write_back(at_ns, bus);
        }
        let count = if self.build.config.extended { m::WORDS_ENHANCED } else { m::WORDS_STANDARD };
        match self.fetch.state {
            State::First(due) if due <= at_ns => {
                let mut bytes = [0; 4 * m::WORDS_ENHANCED];
                let _ = bus.read(
                    DevAddr(self.fetch.at),
                    bytes.get_mut(..4 * (count - 1)).unwrap_or_default(),
                );
                self.fetch.state = State::Second(at_ns + FETCH_NS, words_of(&bytes));
            }
            State::Second(due, mut words) if due <= at_ns => {
                let mut bytes = [0; 4];
                let _ = bus.read(DevAddr(self.fetch.at + 4 * (count as u64 - 1)), &mut bytes);
                let control = u32::from_le_bytes(bytes);
                if let Some(word) = words.get_mut(count - 1) {
                    *word = control;
                }
                self.fetch.state = match control & m::CONTROL_OWN_BY_HW {
                    _ if self.fetch.control & m::PREFETCHER_RESET != 0 => State::Idle,
                    0 if self.fetch.control & m::PREFETCHER_POLL_EN != 0 => {
                        State::First(at_ns + 10 * u64::from(self.fetch.poll).max(1))
                    }
                    0 => {
                        self.fetch.control &= !m::PREFETCHER_RUN;
                        State::Idle
                    }
                    _ => State::Full(words),
                };
                self.fetch.reset_if_idle(at_ns);
            }
            _ => {}
        }
        if let State::Full(words) = self.fetch.state
            && self.dispatcher.room()
        {
            self.hand_over(&words, count, at_ns);
        }
    }

    /// Writes the control words that have arrived by `at_ns`.
    fn land_words(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        while let Some(&(_, at, word)) =
            self.fetch.landing.front().filter(|(lands, ..)| *lands <= at_ns)
        {
            let _ = self.fetch.landing.pop_front();
            let _ = bus.write(DevAddr(at), &word.to_le_bytes());
        }
    }

    fn hand_over(&mut self, words: &[u32; m::WORDS_ENHANCED], count: usize, at_ns: u64) {
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        let extended = count == m::WORDS_ENHANCED;
        let wide = |low: usize, high: usize| {
            u64::from(word(low)) | if extended { u64::from(word(high)) << 32 } else { 0 }
        };
        let control = word(count - 1);
        let descriptor = Descriptor {
            read: wide(0, m::WORD_READ_HIGH),
            write: wide(1, m::WORD_WRITE_HIGH),
            length: word(2),
            control: control | m::CONTROL_GO,
            sequence: if extended { word(m::WORD_SEQUENCE) & 0xFFFF } else { 0 },
            strides: if extended { word(m::WORD_STRIDES) } else { SEQUENTIAL },
        };
        self.dispatcher.push(descriptor, at_ns);
        let _ = self.fetch.pointers.push_back((self.fetch.at, control));
        (self.fetch.at, self.fetch.state) =
            (wide(m::WORD_NEXT, m::WORD_NEXT_HIGH), State::First(at_ns + FETCH_NS));
    }

    /// Writes the oldest response back into the oldest fetched descriptor.
    fn write_back(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        self.fetch.write_back_at_ns = None;
        let Some((at, control)) = self.fetch.pointers.pop_front() else { return };
        let (bytes, _) = self.dispatcher.response();
        let status = self.dispatcher.pop_response();
        let delay_ns = self.fetch.irq_delays_ns.pop_front().flatten();
        let count = if self.build.config.extended { m::WORDS_ENHANCED } else { m::WORDS_STANDARD };
        let owned = if self.fetch.control & m::PREFETCHER_PARK != 0 {
            control
        } else {
            control & !m::CONTROL_OWN_BY_HW
        };
        for (offset, word) in [(m::WRITE_BACK_BYTES, bytes), (m::WRITE_BACK_STATUS, status)] {
            let _ = bus.write(DevAddr(at + offset), &word.to_le_bytes());
        }
        let _ = self.fetch.landing.push_back((
            at_ns + self.build.late_write_back_ns,
            at + 4 * (count as u64 - 1),
            owned,
        ));
        if self.build.late_write_back_ns == 0 {
            self.land_words(at_ns, bus);
        }
        if self.fetch.control & m::PREFETCHER_GLOBAL_INTERRUPT != 0 && interrupts(control, status) {
            if !self.fetch.irq {
                self.fetch.line_at_ns = delay_ns.map(|delay| at_ns + delay);
            }
            self.fetch.irq = true;
        }
        if self.dispatcher.has_response() {
            self.fetch.write_back_at_ns = Some(at_ns + WRITE_BACK_NS);
        }
    }
}
