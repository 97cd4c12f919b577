//! The lines of a log: text for people, JSON for programs. No output moves a terminal's cursor,
//! starts a line, or changes the writing direction.

use super::texts::Event;
use crate::failure::Failure;
use contigo_log::{Header, Piece};
use serde::Serialize;
use std::env;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The output, and its format.
pub(super) struct Lines {
    json: bool,
    reader_is_gone: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Begin {
        program: &'a str,
        pid: u32,
        build_id: Option<String>,
        boot_id: &'a str,
        start_real_ns: u64,
    },
    Event {
        time_us: u64,
        level: Option<&'a str>,
        file: Option<&'a str>,
        line: Option<u64>,
        text: &'a str,
    },
    Overwritten {
        overwritten_bytes: u64,
    },
    Damaged {
        damaged_bytes: u64,
    },
    End {
        dropped_events: u64,
    },
}

impl Lines {
    pub(super) fn new(json: bool) -> Self {
        Self { json, reader_is_gone: false }
    }

    /// Whether the reader of the output has gone.
    pub(super) fn reader_is_gone(&self) -> bool {
        self.reader_is_gone
    }

    /// Prints which program logged.
    pub(super) fn begin(&mut self, header: &Header) -> Result<(), Failure> {
        let build_id = header.build_id.map(|id| id.to_string());
        self.put(&Line::Begin {
            program: &header.program.to_string_lossy(),
            pid: header.pid,
            build_id,
            boot_id: &header.boot_id,
            start_real_ns: header.start_real_ns,
        })
    }

    /// Prints an event, or a gap of lost events. A frame without an `event` is damaged.
    pub(super) fn piece(&mut self, piece: &Piece, event: Option<&Event>) -> Result<(), Failure> {
        match piece {
            Piece::Overwritten { len_bytes } => {
                self.put(&Line::Overwritten { overwritten_bytes: *len_bytes })
            }
            Piece::Damaged { len_bytes } => self.put(&Line::Damaged { damaged_bytes: *len_bytes }),
            Piece::Frame(frame) => match event {
                None => self.put(&Line::Damaged { damaged_bytes: frame.len() as u64 }),
                Some(event) => {
                    let file = event.place.as_ref().map(|(file, _)| shown(file));
                    let line = event.place.as_ref().map(|(_, line)| *line);
                    self.put(&Line::Event {
                        time_us: event.time_us,
                        level: event.level.as_deref(),
                        file,
                        line,
                        text: &event.text,
                    })
                }
            },
        }
    }

    /// Prints how many events were dropped.
    pub(super) fn end(&mut self, header: &Header) -> Result<(), Failure> {
        if header.dropped == 0 && !self.json {
            return Ok(());
        }
        self.put(&Line::End { dropped_events: header.dropped })
    }

    fn put(&mut self, line: &Line<'_>) -> Result<(), Failure> {
        let text = if self.json {
            harmless_json(
                &serde_json::to_string(line).map_err(|error| Failure::Encode(error.to_string()))?,
            )
        } else {
            harmless(&line.text())
        };
        let mut out = io::stdout().lock();
        match writeln!(out, "{text}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.reader_is_gone = true;
                Ok(())
            }
            Err(error) => Err(Failure::Output(error)),
            Ok(()) => Ok(()),
        }
    }
}

impl Line<'_> {
    fn text(&self) -> String {
        match self {
            Self::Begin { program, pid, build_id, .. } => {
                format!(
                    "-- {program}, process {pid}, build {}",
                    build_id.as_deref().unwrap_or("unknown")
                )
            }
            Self::Event { time_us, level, file, line, text } => {
                let place = file
                    .zip(*line)
                    .map(|(file, line)| format!("  ({file}:{line})"))
                    .unwrap_or_default();
                let (seconds, micros) = (time_us / 1_000_000, time_us % 1_000_000);
                format!("{seconds}.{micros:06} {:5} {text}{place}", level.unwrap_or(""))
            }
            Self::Overwritten { overwritten_bytes } => {
                format!("-- {overwritten_bytes} bytes before this were overwritten by newer events")
            }
            Self::Damaged { damaged_bytes } => format!("-- {damaged_bytes} bytes here are damaged"),
            Self::End { dropped_events } => {
                format!("-- the program dropped {dropped_events} events")
            }
        }
    }
}

/// A path below this program's working folder, without that folder.
fn shown(file: &str) -> &str {
    let here = env::current_dir().ok();
    here.and_then(|here| Path::new(file).strip_prefix(here).ok()?.to_str()).unwrap_or(file)
}

/// `text` in one line. A line break or a tab becomes a space; every other letter that a terminal
/// obeys or does not show becomes its number.
pub(super) fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' => safe.push(' '),
            _ if is_harmful(letter) => safe.extend(letter.escape_unicode()),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Escapes these letters in JSON, with JSON's own escapes: they occur only in strings.
fn harmless_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_harmful(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// Whether `letter` is a control (C0, C1, DEL), or is Unicode's for directions, line ends, or
/// nothing visible. Source: Unicode's classes Cc, Cf, Zl and Zp, as far as a terminal obeys them.
fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        let text = "a\u{1b}[2Jb\nc\u{9b}31md\u{202e}e\u{2066}f\u{2028}g\u{e0041}h\u{7f}\u{e9}";
        assert_eq!(
            super::harmless(text),
            "a\\u{1b}[2Jb c\\u{9b}31md\\u{202e}e\\u{2066}f\\u{2028}g\\u{e0041}h\\u{7f}\u{e9}"
        );
        let json =
            serde_json::to_string(text).map(|json| super::harmless_json(&json)).unwrap_or_default();
        assert!(json.chars().all(|letter| !super::is_harmful(letter)), "{json}");
        assert!(json.contains("\\u009b31m") && json.contains("\\udb40\\udc41"), "{json}");
        assert_eq!(
            serde_json::from_str::<String>(&json).ok().as_deref(),
            Some(text),
            "the value is the same"
        );
    }
}
