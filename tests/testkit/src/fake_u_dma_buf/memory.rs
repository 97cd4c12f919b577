//! The block as two memories, the CPU's cache and the bus, and the lines that a sync moves.

use super::Command;
use contigo::Direction;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

#[derive(Debug)]
pub(super) struct Memory {
    /// Bytes in a cache line.
    pub(super) line: usize,
    /// The bytes that the CPU sees.
    pub(super) file: File,
    /// The bytes that a device sees.
    pub(super) bus: Vec<u8>,
    /// The bytes of each of the CPU's lines when it was last read from or written to the bus: a
    /// line that differs is dirty.
    pub(super) clean: Vec<u8>,
}

impl Memory {
    pub(super) fn sync(&mut self, command: Command, range: Range<usize>, direction: Direction) {
        let lines = range.start / self.line..range.end.div_ceil(self.line);
        match (command, direction) {
            (Command::ForCpu, Direction::ToDevice) => {}
            (Command::ForDevice, Direction::ToDevice | Direction::Bidirectional) => {
                self.write_back(lines)
            }
            // Lines covered only in part are written back first: the kernel must not lose the bytes
            // beside the range.
            (Command::ForDevice, Direction::FromDevice) | (Command::ForCpu, _) => {
                for edge in [range.start, range.end] {
                    if edge % self.line != 0 {
                        self.write_back(edge / self.line..edge / self.line + 1);
                    }
                }
                self.discard(lines);
            }
        }
    }

    /// Dirty lines go to the bus. Clean ones do not: they may be stale.
    pub(super) fn write_back(&mut self, lines: Range<usize>) {
        for index in lines {
            let bytes = self.line(index);
            let mut line = vec![0; bytes.len()];
            self.file.read_exact_at(&mut line, bytes.start as u64).unwrap();
            if self.clean[bytes.clone()] != *line {
                self.bus[bytes.clone()].copy_from_slice(&line);
                self.clean[bytes].copy_from_slice(&line);
            }
        }
    }

    /// The CPU's lines are filled from the bus; bytes that were written to them are lost.
    fn discard(&mut self, lines: Range<usize>) {
        for index in lines {
            let bytes = self.line(index);
            self.file.write_all_at(&self.bus[bytes.clone()], bytes.start as u64).unwrap();
            self.clean[bytes.clone()].copy_from_slice(&self.bus[bytes]);
        }
    }

    fn line(&self, index: usize) -> Range<usize> {
        let start = index * self.line;
        start..(start + self.line).min(self.bus.len())
    }
}
