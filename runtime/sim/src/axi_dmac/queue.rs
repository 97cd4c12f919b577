//! The registers of a transfer, the queue of transfers, and the reports of finished transfers.

use super::{AxiDmacBuild, Side, manual as m};
use heapless::Deque;

/// From SUBMIT to the queue.
const QUEUE_NS: u64 = 40;
/// How many transfers wait inside, besides the current one.
const INSIDE: usize = 2;
/// How many reports can wait.
const REPORTS: usize = 4;

/// A transfer as the registers describe it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    pub(super) destination: u64,
    pub(super) source: u64,
    pub(super) list: u64,
    pub(super) x_length: u32,
    pub(super) y_length: u32,
    pub(super) destination_stride: u32,
    pub(super) source_stride: u32,
    pub(super) flags: u32,
}

/// The bits of a number that is a multiple of `word`.
const fn words_of(word: usize) -> u32 {
    u32::MAX << word.trailing_zeros()
}

/// Keeps the address bits that exist: `DMA_AXI_ADDR_WIDTH - 1` to `BYTES_PER_BEAT_WIDTH`.
pub(super) const fn address(value: u64, word: usize, bits: u32) -> u64 {
    value & u64::MAX >> (64 - bits) & !(word as u64 - 1)
}

const fn set_low(addr: &mut u64, value: u32, word: usize, bits: u32) {
    *addr = address(*addr >> 32 << 32 | value as u64, word, bits);
}

const fn set_high(addr: &mut u64, value: u32, word: usize, bits: u32) {
    *addr = address(*addr & 0xFFFF_FFFF | (value as u64) << 32, word, bits);
}

impl Request {
    pub(super) fn read(&self, offset: usize, build: &AxiDmacBuild) -> u32 {
        let [source, destination] = build.sides.map(|side| side == Side::Memory);
        #[allow(clippy::cast_possible_truncation, reason = "the two halves of an address")]
        match offset {
            m::FLAGS => self.flags,
            m::DEST_ADDRESS if destination => self.destination as u32,
            m::SRC_ADDRESS if source => self.source as u32,
            m::X_LENGTH => self.x_length,
            m::Y_LENGTH => self.y_length,
            m::DEST_STRIDE => self.destination_stride,
            m::SRC_STRIDE => self.source_stride,
            m::SG_ADDRESS => self.list as u32,
            m::DEST_ADDRESS_HIGH if destination => (self.destination >> 32) as u32,
            m::SRC_ADDRESS_HIGH if source => (self.source >> 32) as u32,
            m::SG_ADDRESS_HIGH => (self.list >> 32) as u32,
            _ => 0,
        }
    }

    pub(super) fn write(&mut self, offset: usize, value: u32, build: &AxiDmacBuild) {
        let [source_word, destination_word] = build.words;
        let length_mask = u32::MAX >> (32 - build.length_bits);
        match offset {
            m::FLAGS => self.flags = value & (m::FLAG_TLAST | m::FLAG_PARTIAL_REPORTING),
            m::DEST_ADDRESS => {
                set_low(&mut self.destination, value, destination_word, build.address_bits)
            }
            m::SRC_ADDRESS => set_low(&mut self.source, value, source_word, build.address_bits),
            m::X_LENGTH => self.x_length = value & length_mask | (build.length_align - 1),
            m::Y_LENGTH if build.rows => self.y_length = value & length_mask,
            m::DEST_STRIDE if build.rows => {
                self.destination_stride = value & length_mask & words_of(destination_word)
            }
            m::SRC_STRIDE if build.rows => {
                self.source_stride = value & length_mask & words_of(source_word)
            }
            m::SG_ADDRESS if build.lists => set_low(&mut self.list, value, 8, build.address_bits),
            m::DEST_ADDRESS_HIGH => {
                set_high(&mut self.destination, value, destination_word, build.address_bits)
            }
            m::SRC_ADDRESS_HIGH => {
                set_high(&mut self.source, value, source_word, build.address_bits)
            }
            m::SG_ADDRESS_HIGH if build.lists => {
                set_high(&mut self.list, value, 8, build.address_bits)
            }
            _ => {}
        }
    }
}

/// IDs, the queue, DONE and the reports.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// When SUBMIT was written.
    submitted_ns: Option<u64>,
    /// The ID of the next transfer, and the ID of the next one to end.
    next: u32,
    next_end: u32,
    done: u32,
    inside: Deque<(u32, Request), INSIDE>,
    reports: Deque<(u32, u32), REPORTS>,
}

impl Queue {
    pub(super) const fn submit(&mut self, now_ns: u64) {
        if self.submitted_ns.is_none() {
            self.submitted_ns = Some(now_ns);
        }
    }

    /// When the queue takes in the submitted transfer.
    pub(super) fn next_at_ns(&self) -> Option<u64> {
        self.submitted_ns.filter(|_| !self.inside.is_full()).map(|at_ns| at_ns + QUEUE_NS)
    }

    /// Takes in the transfer, and clears its DONE bit.
    pub(super) fn take_in(&mut self, request: &Request) {
        if self.inside.push_back((self.next, *request)).is_ok() {
            self.submitted_ns = None;
            self.done &= !(1 << self.next);
            self.next = (self.next + 1) % 4;
        }
    }

    pub(super) fn pop(&mut self) -> Option<(u32, Request)> {
        self.inside.pop_front()
    }

    /// The transfers that wait inside, oldest first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Request> {
        self.inside.iter().map(|(_, request)| request)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    pub(super) fn has_room_for_report(&self) -> bool {
        !self.reports.is_full()
    }

    /// A transfer ended; `report`: it was short, and moved this many bytes.
    pub(super) fn ended(&mut self, report: Option<u32>) {
        if let Some(bytes) = report {
            let _ = self.reports.push_back((bytes, self.next_end));
        }
        self.done |= 1 << self.next_end;
        self.next_end = (self.next_end + 1) % 4;
    }

    pub(super) fn take_report(&mut self) -> u32 {
        self.reports.pop_front().map_or(0, |(_, id)| id)
    }

    pub(super) fn read(&self, offset: usize) -> Option<u32> {
        Some(match offset {
            m::TRANSFER_ID => self.next,
            m::TRANSFER_SUBMIT => u32::from(self.submitted_ns.is_some()),
            m::TRANSFER_DONE => {
                self.done | if self.reports.is_empty() { 0 } else { m::PARTIAL_TRANSFER_DONE }
            }
            m::ACTIVE_TRANSFER_ID => self.next_end,
            m::PARTIAL_TRANSFER_LENGTH => self.reports.front().map_or(0, |(bytes, _)| *bytes),
            _ => return None,
        })
    }
}
