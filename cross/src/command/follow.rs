//! Reads along in a file that another program writes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// A line is cut here: a program that prints no line break cannot fill the memory.
const LONGEST_LINE: usize = 64 * 1024;

/// The lines of a growing file, each once.
#[derive(Debug)]
pub struct Follow {
    file: File,
    unfinished: Vec<u8>,
}

impl Follow {
    /// From the beginning of the file.
    pub fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, unfinished: Vec::new() })
    }

    /// Hands over every line that was finished since the last call, without its line break.
    pub fn new_lines(&mut self, each: &mut dyn FnMut(&str)) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = self.file.read(&mut chunk)?;
            if read == 0 {
                return Ok(());
            }
            self.unfinished.extend(chunk.iter().take(read));
            while let Some(end) = self.end_of_line() {
                let line: Vec<u8> = self.unfinished.drain(..=end).collect();
                each(String::from_utf8_lossy(&line).trim_end());
            }
        }
    }

    /// The same at the end of the file, where the last line may have no break.
    pub fn rest(&mut self, each: &mut dyn FnMut(&str)) -> io::Result<()> {
        self.new_lines(each)?;
        let rest = std::mem::take(&mut self.unfinished);
        if !rest.is_empty() {
            each(String::from_utf8_lossy(&rest).trim_end());
        }
        Ok(())
    }

    fn end_of_line(&self) -> Option<usize> {
        let found = self.unfinished.iter().take(LONGEST_LINE).position(|byte| *byte == b'\n');
        found.or_else(|| (self.unfinished.len() >= LONGEST_LINE).then_some(LONGEST_LINE - 1))
    }
}
