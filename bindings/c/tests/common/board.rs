//! A simulated board with everything on it.

use super::*;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;

/// A simulated board with a region, a pool of eight slots, and a DMA channel that copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Board {
    pub(crate) sim: contigo_sim,
    pub(crate) port: contigo_port,
    pub(crate) region: contigo_region,
    pub(crate) pool: contigo_pool,
    pub(crate) device: contigo_device,
    pub(crate) engine: contigo_engine,
}

/// Boards that are open. The tables are the process's, and a machine of many cores would run more
/// tests at once than they have room for.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// Waits for room for one board more; for a minute at most, as where tests that failed closed none.
fn wait_for_room() {
    for _ in 0..60_000 {
        let more = |open| (open < 8).then_some(open + 1);
        if OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

impl Board {
    pub(crate) fn new() -> Self {
        Self::with(&sim_options())
    }

    pub(crate) fn with(options: &contigo_sim_options) -> Self {
        wait_for_room();
        let sim = answer(|sim| unsafe { contigo_sim_open(options, sim) });
        let port = sim_port(sim, 0);
        let region = open_region(c"sim", &region_options(sim));
        let pool = open_pool(region, SLOT, 8, 256);
        let device = sim_device(sim, c"zdma");
        let engine = open_engine(&engine_options(c"zdma", device, port, 0));
        Self { sim, port, region, pool, device, engine }
    }

    #[track_caller]
    pub(crate) fn take(&self) -> contigo_buf {
        take(self.pool)
    }

    /// The operands of a copy: 64 bytes of ones, and where they go.
    pub(crate) fn operands(&self) -> [contigo_operand; 2] {
        let bufs = [self.take(), self.take()];
        fill(bufs[0], 1);
        fill(bufs[1], 0x55);
        bufs.map(|buf| part(buf, 64))
    }

    pub(crate) fn try_start(
        &self,
        operands: &[contigo_operand; 2],
    ) -> (contigo_status, contigo_job) {
        try_job(self.engine, operands, &[])
    }

    #[track_caller]
    pub(crate) fn start(&self, operands: &[contigo_operand; 2]) -> contigo_job {
        start_job(self.engine, operands, &[])
    }

    /// Closes everything: nothing of it is out.
    #[track_caller]
    pub(crate) fn close(self) {
        ok(contigo_engine_close(self.engine));
        ok(contigo_device_close(self.device));
        ok(contigo_pool_close(self.pool));
        ok(contigo_region_close(self.region));
        ok(contigo_port_close(self.port));
        ok(contigo_sim_close(self.sim));
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}
