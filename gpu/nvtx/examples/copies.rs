//! Three jobs on the simulated board, of which one is stopped, with a copy each. The tool that
//! `NVTX_INJECTION64_PATH` names hears them; this program prints what the runtime itself says.
//!
//! ```sh
//! cargo build -p contigo-nvtx --example nvtx_lines
//! NVTX_INJECTION64_PATH=target/debug/examples/libnvtx_lines.so \
//!     cargo run -p contigo-nvtx --example copies
//! ```

use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::trace::{self, Event, Ledger, Listener};
use contigo::{JobError, Queue, Region};
use contigo_nvtx::Ranges;
use std::error::Error;
use std::panic::Location;
use std::time::Duration;

/// A listener of the program's own, which hands on what it hears.
struct Both {
    ledger: Ledger<64>,
    ranges: Option<&'static Ranges>,
}

impl Listener for Both {
    fn begins(&self, event: &Event, site: Option<&'static Location<'static>>) {
        if let Some(ranges) = self.ranges {
            ranges.begins(event, site);
        }
    }

    fn happened(&self, event: &Event, site: Option<&'static Location<'static>>) {
        self.ledger.happened(event, site);
        if let Some(ranges) = self.ranges {
            ranges.happened(event, site);
        }
    }
}

fn jobs() -> contigo::Result<()> {
    let board = SimBoard::new(7);
    let region = Region::new(board.memory(64 * 1024)?)?;
    let pool = region.pool(4, 4096)?;
    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut zdma = Queue::new(device.window()?.simple()?, 1)?;
    for stopped in [false, false, true] {
        let (mut input, output) = (pool.take()?, pool.take()?);
        input.copy_from_slice(&[2; 512])?;
        // No job ends at once: a limit of zero stops it.
        let limit = Duration::from_millis(if stopped { 0 } else { 20 });
        match zdma.run([input.to_device(..512), output.from_device(..512)], &[], limit) {
            Err(JobError { error: contigo::Error::Timeout { .. }, .. }) if stopped => {}
            ended => drop(ended?),
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // With no listener of one's own this is one call: `contigo_nvtx::listen()?`.
    let both = Box::leak(Box::new(Both { ledger: Ledger::new(), ranges: Ranges::attached()? }));
    println!("a tool is attached: {}", both.ranges.is_some());
    trace::set_listener(both).map_err(|_| "another listener is set")?;
    jobs()?;
    for row in both.ledger.rows() {
        println!("{} {} {}", row.kind.name().replace(' ', "_"), row.count.calls, row.count.bytes);
    }
    Ok(())
}
