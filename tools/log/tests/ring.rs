//! The ring under threads, signals and forks, and each file that is no ring or a damaged one.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; signals and fork are promises"
)]

use contigo_log::{Decoder, Piece, Reader, Refused, Settings, StartError};
use contigo_testkit::emulated;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::{fs, thread};
use tempfile::TempDir;

const RING_BYTES: u32 = 32 << 10;
const HEADER_BYTES: usize = 4096;

/// The one log of this process, and one test at a time that fills it.
fn log() -> (&'static Path, std::sync::MutexGuard<'static, ()>) {
    static LOG: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    let (_, path) = LOG.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("ring.log");
        contigo_log::start(&path, &Settings { ring_bytes: RING_BYTES, ..Settings::default() })
            .unwrap();
        (folder, path)
    });
    (path, ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// This program's texts, read once: its file is large.
fn decoder(reader: &Reader) -> &'static Decoder {
    static DECODER: OnceLock<Decoder> = OnceLock::new();
    DECODER.get_or_init(|| {
        let header = reader.header().unwrap();
        Decoder::new(&fs::read(&header.program).unwrap(), &header).unwrap()
    })
}

/// The texts of all good events; damage fails the test.
fn texts(path: &Path) -> Vec<String> {
    let mut reader = Reader::open(path).unwrap();
    let decoder = decoder(&reader);
    let pieces = reader.pieces().unwrap().into_iter();
    let texts = pieces.filter_map(|piece| match piece {
        Piece::Frame(frame) => Some(decoder.entry(&frame).unwrap().text),
        Piece::Overwritten { .. } => None,
        Piece::Damaged { len_bytes } => panic!("{len_bytes} bytes are damaged"),
    });
    texts.collect()
}

#[test]
fn threads_lose_no_event_that_is_not_counted() {
    const THREADS: u32 = 2;
    const EVENTS: u32 = 1_000;
    let (path, _one) = log();
    let before = contigo_log::dropped();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                (0..EVENTS)
                    .for_each(|event| defmt::info!("thread {=u32} event {=u32}", thread, event))
            });
        }
    });
    let dropped = contigo_log::dropped() - before;
    let mut newest = BTreeMap::new();
    let mut heard = 0;
    for text in texts(path) {
        let words: Vec<_> = text.split(' ').collect();
        if let ["thread", thread, "event", event] = words[..] {
            let event: u32 = event.parse().unwrap();
            assert!(
                newest.insert(thread.to_owned(), event).is_none_or(|last| last < event),
                "{text} is out of order"
            );
            heard += 1;
        }
    }
    assert_eq!(newest.len(), 2);
    // 2,000 events of some 12 bytes fit into 32 KiB.
    assert_eq!(u64::from(THREADS * EVENTS), heard + dropped);
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
    defmt::warn!("a signal came");
}

#[test]
fn a_signal_handlers_event_is_there_or_counted() {
    let (path, _one) = log();
    let before = contigo_log::dropped();
    // SAFETY: the handler makes an atomic addition and an event, which never blocks.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as libc::sighandler_t) };
    // SAFETY: this thread's own handle.
    let own = unsafe { libc::pthread_self() };
    let sender = thread::spawn(move || {
        for _ in 0..2_000 {
            // SAFETY: the thread that is signalled joins this one.
            unsafe { libc::pthread_kill(own, libc::SIGUSR1) };
        }
    });
    let mut own_events = 0_u64;
    while !sender.is_finished() {
        defmt::trace!("and on");
        own_events += 1;
    }
    sender.join().unwrap();
    let signals = SIGNALS.load(Ordering::Relaxed);
    assert!(signals > 0 && own_events > 0);
    let dropped = contigo_log::dropped() - before;
    assert!(
        dropped <= signals,
        "{dropped} events of {signals} signals are dropped: this thread's own never is"
    );
    let heard = texts(path).iter().filter(|text| *text == "a signal came").count() as u64;
    assert!(heard + dropped <= signals);
}

#[test]
fn a_child_of_fork_logs_nothing() {
    if let Some(why) = emulated::why() {
        // It answers 0 to MADV_WIPEONFORK, and wipes nothing.
        return contigo_testkit::skipped("ring::a_child_of_fork_logs_nothing", &why);
    }
    let (path, _one) = log();
    defmt::info!("the parent says {=u32}", 1);
    // SAFETY: the child makes an event and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        defmt::info!("the child says {=u32}", 2);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: this process's own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    defmt::info!("the parent says {=u32}", 3);
    let texts = texts(path);
    assert_eq!(texts[texts.len() - 2..], ["the parent says 1", "the parent says 3"]);
}

#[test]
fn a_long_event_is_dropped_and_the_next_is_not() {
    let (path, _one) = log();
    let before = contigo_log::dropped();
    defmt::info!("{=str}", "long ".repeat(200).as_str());
    defmt::info!("short");
    assert_eq!(contigo_log::dropped(), before + 1);
    assert_eq!(texts(path).last().unwrap(), "short");
}

#[test]
fn each_refusal_of_the_start_is_provoked() {
    let (_, _one) = log();
    let given = |ring_bytes| {
        contigo_log::start("/nowhere/at/all", &Settings { ring_bytes, ..Settings::default() })
    };
    assert_eq!(given(5000), Err(StartError::RingBytes { given: 5000 }));
    assert_eq!(given(2 << 20), Err(StartError::RingBytes { given: 2 << 20 }));
    assert_eq!(given(4096), Err(StartError::Twice));
}

/// A copy of the ring, damaged.
fn refused(bytes: &[u8]) -> Refused {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("damaged.log");
    fs::write(&path, bytes).unwrap();
    Reader::open(&path).unwrap().pieces().unwrap_err()
}

#[test]
fn each_refusal_of_a_file_is_provoked() {
    let (path, _one) = log();
    let whole = fs::read(path).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        refused(&changed)
    };
    assert!(matches!(refused(b""), Refused::NotYet));
    assert!(matches!(refused(&[0; HEADER_BYTES + 4096]), Refused::NotYet));
    assert!(matches!(refused(b"something else that is long enough"), Refused::NoRing));
    assert!(matches!(with(7, &[2]), Refused::Version { found: 2 }));
    assert!(matches!(with(8, &[1, 2, 3, 4]), Refused::RingBytes { .. }));
    assert!(matches!(refused(&whole[..100]), Refused::Cut { has: 100, .. }));
    assert!(matches!(refused(&whole[..HEADER_BYTES + 10]), Refused::Cut { .. }));
    assert!(matches!(with(128, &[0xff; 8]), Refused::Counts { .. }));
    assert!(matches!(Reader::open("/nowhere/at/all"), Err(Refused::File(_))));
    assert!(matches!(Reader::open("/dev"), Err(Refused::NoRing | Refused::File(_))));
}

/// Random damage behind a good header: events and gaps, and never a panic. A seed that fails is in
/// the message.
#[test]
fn whatever_the_ring_holds_is_events_or_gaps() {
    let (path, _one) = log();
    (0..500_u32)
        .for_each(|event| defmt::debug!("whole {=u32} {=str} {=[u8]}", event, "text", [1, 2, 3]));
    let whole = fs::read(path).unwrap();
    let reader = Reader::open(path).unwrap();
    let decoder = decoder(&reader);
    let good = reader.header().unwrap().written;
    let folder = TempDir::new().unwrap();
    let damaged = folder.path().join("damaged.log");
    let mut gaps = 0;
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = whole.clone();
        match seed % 3 {
            // Everything, a few bytes, or a stretch of zeroes: a page that was never written.
            0 => random.fill(&mut bytes[HEADER_BYTES..]),
            1 => (0..random.usize(1..50)).for_each(|_| {
                bytes[random.usize(HEADER_BYTES..HEADER_BYTES + 9000)] = random.u8(..)
            }),
            _ => {
                let from = random.usize(HEADER_BYTES..HEADER_BYTES + 4000);
                bytes[from..from + 4096].fill(0);
            }
        }
        if seed % 3 == 0 {
            // The whole ring counts, and the newest byte is anywhere.
            let end = good + random.u64(u64::from(RING_BYTES)..1 << 40);
            bytes[128..136].copy_from_slice(&end.to_le_bytes());
            bytes[136..144].copy_from_slice(&end.to_le_bytes());
        }
        fs::write(&damaged, &bytes).unwrap();
        for piece in Reader::open(&damaged).unwrap().pieces().unwrap() {
            match piece {
                Piece::Frame(frame) => drop(decoder.entry(&frame)),
                Piece::Damaged { len_bytes } => gaps += u32::from(len_bytes > 0),
                Piece::Overwritten { .. } => {}
            }
        }
        // And frames that say of themselves that they are right.
        let mut frame = vec![0; random.usize(0..64)];
        random.fill(&mut frame);
        drop(decoder.entry(&frame));
    }
    assert!(gaps > 40, "seeds of damage were seen as {gaps} gaps");
}

/// A reader may come between the two counts of a program at work.
#[test]
fn torn_counts_are_read_again() {
    let (path, _one) = log();
    defmt::info!("an event");
    let whole = fs::read(path).unwrap();
    let folder = TempDir::new().unwrap();
    let torn = folder.path().join("torn.log");
    let mut bytes = whole.clone();
    bytes[136..144].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    fs::write(&torn, &bytes).unwrap();
    let reader = Reader::open(&torn).unwrap();
    let writer = thread::spawn(move || {
        thread::sleep(std::time::Duration::from_millis(5));
        let file = fs::File::options().write(true).open(&torn).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &whole[136..144], 136).unwrap();
    });
    let header = reader.header().unwrap();
    writer.join().unwrap();
    assert!(header.written > 0 && header.written <= header.reserved);
}
