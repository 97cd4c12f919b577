//! Bytes and nanoseconds of an event, beside the same event as text:
//! `cargo run --release -p contigo-log --features decode,events --example cost -- /dev/shm`.

use contigo::trace::Event;
use contigo_log::{Clock, Reader, Settings};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A round is short, so that some rounds run without an interruption; the best one counts.
const ROUNDS: u32 = 200;
const EVENTS: u32 = 1_000;

fn event(slot: u32) -> Event {
    Event::Take { slot: slot as usize & 7, len_bytes: 4096 }
}

/// The best round's nanoseconds an event.
fn best_ns(mut act: impl FnMut(Event)) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        (0..EVENTS).for_each(|slot| act(event(slot)));
        begin.elapsed().as_nanos() as f64 / f64::from(EVENTS)
    });
    rounds.fold(f64::MAX, f64::min)
}

/// Text as a logger writes it: the time, the level, the event.
fn text_ns(path: &Path, mut out: impl Write) -> Result<(f64, f64), Box<dyn Error>> {
    let start = Instant::now();
    let ns =
        best_ns(|event| drop(writeln!(out, "{:.6} TRACE {event}", start.elapsed().as_secs_f64())));
    out.flush()?;
    Ok((ns, std::fs::metadata(path)?.len() as f64 / f64::from(ROUNDS * EVENTS)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: cost FOLDER [untimed]")?);
    let clock = if std::env::args().nth(2).is_some() { Clock::None } else { Clock::Monotonic };
    let ring = folder.join("contigo-cost.log");
    let bare_ns = best_ns(|event| {
        std::hint::black_box(event);
    });
    let silent_ns = best_ns(|event| defmt::trace!("{}", event));
    contigo_log::start(&ring, &Settings { clock, ..Settings::default() })?;
    let ring_ns = best_ns(|event| defmt::trace!("{}", event));
    let written = Reader::open(&ring)?.header()?.written as f64 / f64::from(ROUNDS * EVENTS);
    let text = folder.join("contigo-cost.txt");
    let buffered = text_ns(&text, BufWriter::new(File::create(&text)?))?;
    let at_once = text_ns(&text, File::create(&text)?)?;
    let mut out = std::io::stdout();
    writeln!(out, "no defmt: {bare_ns:.1} ns, 0 bytes")?;
    writeln!(out, "no log started: {silent_ns:.0} ns, 0 bytes")?;
    writeln!(
        out,
        "ring: {ring_ns:.0} ns, {written:.1} bytes; {} events dropped",
        contigo_log::dropped()
    )?;
    writeln!(
        out,
        "text in a buffer, lost with the program: {:.0} ns, {:.1} bytes",
        buffered.0, buffered.1
    )?;
    writeln!(out, "text at once, with system calls: {:.0} ns, {:.1} bytes", at_once.0, at_once.1)?;
    Ok(())
}
