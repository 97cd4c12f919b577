//! The command's work: it reads one run of the program after the other.

use super::Options;
use super::lines::{Lines, harmless};
use super::texts::{self, Texts};
use crate::failure::Failure;
use contigo_log::{Header, Piece, Reader, Refused};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A person sees no shorter pause, and each poll copies the ring.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A failure that names its file.
fn about(file: &Path, why: &str) -> Failure {
    Failure::Usage(harmless(&format!("{}: {why}", file.display())))
}

pub(super) fn log(options: &Options) -> Result<(), Failure> {
    let about_file = |refused: Refused| about(&options.file, &refused.to_string());
    let mut lines = Lines::new(options.json);
    // With --follow, until the user ends it: each turn is one run of the program.
    loop {
        let (mut reader, header) = begun(options).map_err(about_file)?;
        let mut texts = of_program(options, &reader, &header)?;
        lines.begin(&header)?;
        while !lines.reader_is_gone() {
            let replaced = options.follow && !reader.is_still(&options.file);
            for piece in reader.pieces().map_err(about_file)? {
                let event = match &piece {
                    Piece::Frame(frame) => {
                        texts.event(frame).map_err(|why| about(&options.file, &why))?
                    }
                    _ => None,
                };
                lines.piece(&piece, event.as_ref())?;
            }
            if !options.follow {
                return lines.end(&reader.header().map_err(about_file)?);
            }
            if replaced {
                break;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        if lines.reader_is_gone() {
            return Ok(());
        }
    }
}

/// Opens the log once it has begun. With --follow, it waits for that until the user ends it.
fn begun(options: &Options) -> Result<(Reader, Header), Refused> {
    let mut waits = false;
    loop {
        match Reader::open(&options.file)
            .and_then(|reader| reader.header().map(|header| (reader, header)))
        {
            Err(refused) if options.follow && is_early(&refused) => {
                if !waits {
                    // If standard error is closed too, this line is lost.
                    let file = harmless(&options.file.display().to_string());
                    let _ = writeln!(
                        io::stderr(),
                        "contigo: {file} is no log yet: waiting for its program"
                    );
                    waits = true;
                }
                thread::sleep(BETWEEN_LOOKS);
            }
            answer => return answer,
        }
    }
}

/// Whether a program that is just starting can cause this refusal.
fn is_early(refused: &Refused) -> bool {
    match refused {
        Refused::NotYet => true,
        Refused::File(error) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// Opens the texts: from the file that the user names, or from the program that logged.
fn of_program(options: &Options, reader: &Reader, header: &Header) -> Result<Texts, Failure> {
    let elf: &Path = options.elf.as_deref().unwrap_or(&header.program);
    let say = |why: String| about(elf, &format!("{why}; --elf PROGRAM names the right file"));
    let owner = reader.owner().map_err(|refused| about(&options.file, &refused.to_string()))?;
    let file = texts::open(elf, options.elf.is_none().then_some(owner)).map_err(say)?;
    Texts::new(file, header.clone()).map_err(say)
}
