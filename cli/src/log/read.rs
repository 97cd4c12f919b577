//! The command's work: one run of the program after the other.

use super::{Options, lines::Lines};
use crate::failure::Failure;
use contigo_log::{Decoder, Header, Reader, Refused};
use std::{fs, path::Path, thread, time::Duration};

/// A person sees no shorter pause, and a look costs a copy of the ring.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Usage(refused.to_string())
    }
}

pub(super) fn log(options: &Options) -> Result<(), Failure> {
    let about_file = |refused: Refused| Failure::Usage(format!("{}: {refused}", options.file.display()));
    let mut lines = Lines::new(options.json);
    // With --follow until its user ends it: each turn is one run of the program.
    loop {
        let mut reader = Reader::open(&options.file).map_err(about_file)?;
        let header = reader.header().map_err(about_file)?;
        let decoder = decoder(options, &header)?;
        lines.begin(&header)?;
        while !lines.nobody_reads() {
            let replaced = options.follow && !reader.is_still(&options.file);
            for piece in reader.pieces().map_err(about_file)? {
                lines.piece(&decoder, &piece)?;
            }
            if !options.follow {
                return lines.end(&reader.header().map_err(about_file)?);
            }
            if replaced {
                break;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        if lines.nobody_reads() {
            return Ok(());
        }
    }
}

/// The texts: of the file that the user names, or of the one that logged.
fn decoder(options: &Options, header: &Header) -> Result<Decoder, Failure> {
    let elf: &Path = options.elf.as_deref().unwrap_or(&header.program);
    let say = |why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}; --elf PROGRAM names the right file", elf.display()));
    // A log from elsewhere may name a device, whose bytes have no end.
    let is_file = fs::metadata(elf).map_err(|error| say(&error))?.is_file();
    if !is_file {
        return Err(say(&"it is no file"));
    }
    let bytes = fs::read(elf).map_err(|error| say(&error))?;
    Decoder::new(&bytes, header).map_err(|refused| say(&refused))
}
