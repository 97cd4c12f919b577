//! Jobs on the simulated board, and a log that survives whatever ends this program:
//! `cargo run -p contigo-log --features events --example flight -- /dev/shm/flight.log`, then
//! `contigo log /dev/shm/flight.log`.
//!
//! It prints each job's number after the event, so that a reader who kills it knows how far it was.

use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{Queue, Region};
use std::error::Error;
use std::io::Write;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: flight FILE [JOBS] [panic]")?;
    let jobs: u32 = args.next().map_or(Ok(u32::MAX), |jobs| jobs.parse())?;
    contigo_log::start(&path, &contigo_log::Settings { ring_bytes: 4096, ..Default::default() })?;
    defmt::info!("this flight has {=u32} jobs at most", jobs);
    fly(jobs).map_err(|error| error.to_string())?;
    #[allow(clippy::panic, reason = "it shows how a panic is logged")]
    if args.next().is_some() {
        panic!("the flight is over after {jobs} jobs");
    }
    Ok(())
}

fn fly(jobs: u32) -> contigo::Result<()> {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096)?)?;
    let pool = region.pool(2, 256)?;
    let core = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue = Queue::new(core.window()?.simple()?, 1)?;
    defmt::debug!("its pool has pieces of {=[?]} bytes", [256_u16; 2].as_slice());
    for job in 1..=jobs {
        let [from, to] = [pool.take()?, pool.take()?];
        drop(queue.run(
            [from.to_device(..16), to.from_device(..64)],
            &[],
            Duration::from_millis(100),
        )?);
        defmt::warn!("job {=u32} is done", job);
        // When its output has no reader, the flight ends: a test that failed leaves none behind.
        if writeln!(std::io::stdout(), "{job}").is_err() {
            break;
        }
    }
    Ok(())
}
