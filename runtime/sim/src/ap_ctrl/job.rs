//! A job's path through a simulated kernel: AP_START, accepted, finished, and its interrupt.

use super::{ApCtrlModel, KernelCall, KernelError, STAGES, manual as regs};
use crate::SimBus;
use crate::faults::Fate;
use contigo_core::job::MAX_OPERANDS;
use contigo_design::kernel::{MAX_RESULTS, MAX_SCALARS};

/// From AP_START to the end of a job that moves no bytes.
const LATENCY_NS: u64 = 2_000;
/// How many bytes a kernel moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;

/// A job that the kernel has accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) pointers: [u64; MAX_OPERANDS],
    pub(super) scalars: [u64; MAX_SCALARS],
    pub(super) ends_at_ns: u64,
    pub(super) fate: Fate,
}

impl<F> ApCtrlModel<F>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], KernelError> + Send,
{
    /// How long a job takes: its bytes, counted by the map's rules.
    fn busy_ns(&self, scalars: &[u64]) -> u64 {
        let bytes = (0..self.map.pointers().len()).map(|index| self.map.need_bytes(index, scalars));
        LATENCY_NS.saturating_add(bytes.fold(0, u64::saturating_add) / BYTES_PER_NS)
    }

    /// Handles a write of AP_START. A chain accepts a job in a quarter of the time that it works on
    /// one; any other kernel accepts a job when the job ends.
    pub(super) fn rings(&mut self, bus: &mut SimBus<'_>) {
        if self.start.is_some() {
            return;
        }
        let busy_ns = if self.chain() { self.busy_ns(&self.scalars) / 4 } else { 0 };
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        self.start = Some(bus.now_ns().saturating_add(busy_ns).saturating_add(jitter_ns));
    }

    /// Accepts the job whose registers are written, if the kernel has room.
    pub(super) fn take(&mut self, bus: &mut SimBus<'_>) {
        let Some(at_ns) = self.start.filter(|at| *at <= bus.now_ns()) else { return };
        let room = if self.chain() { STAGES } else { 1 };
        let inside = self.jobs_inside();
        if inside >= room {
            return;
        }
        let busy_ns = self.busy_ns(&self.scalars);
        let fate = bus.fate();
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        let ends_at_ns = at_ns.saturating_add(busy_ns).saturating_add(jitter_ns);
        self.accepted += 1;
        let Self { accepted: number, pointers, scalars, .. } = *self;
        let job = Job { number, pointers, scalars, ends_at_ns, fate };
        if let Some(place) = self.jobs.get_mut(inside) {
            *place = Some(job);
        }
        if self.chain() {
            self.taken(at_ns, bus);
        }
    }

    /// Sets AP_READY: the kernel has accepted a job.
    fn taken(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        self.start = None;
        self.ready = true;
        self.raises(at_ns, regs::CHANNEL_READY, bus);
        if self.restarts {
            self.rings(bus);
        }
    }

    /// Schedules `bits` for ISR: on time, late or never.
    fn raises(&mut self, at_ns: u64, bits: u32, bus: &mut SimBus<'_>) {
        let at_ns = bus.irq_delay_ns(LATENCY_NS * 10).map_or(u64::MAX, |delay| at_ns + delay);
        let [done, ready] = &mut self.raise;
        *(if bits == regs::CHANNEL_DONE { done } else { ready }) = (at_ns, bits);
    }

    /// Ends the oldest job, and writes its whole output now; or not yet, if its function has not
    /// ended.
    pub(super) fn run(&mut self, job: Job, bus: &mut SimBus<'_>) {
        let (Self { map, compute, .. }, Job { number, pointers, scalars, .. }) = (&mut *self, &job);
        let computed = compute(&mut KernelCall { number: *number, map, pointers, scalars, bus });
        match computed {
            Ok(results) => self.results = results,
            Err(KernelError::WouldBlock) => return,
            // A kernel does not report the responses that its bus master got. The board does.
            Err(error) => {
                self.results = [0; MAX_RESULTS];
                bus.did_not_compute(matches!(error, KernelError::Bus(_)));
            }
        }
        let [oldest, next] = &mut self.jobs;
        *oldest = next.take();
        self.done = true;
        self.raises(job.ends_at_ns, regs::CHANNEL_DONE, bus);
        if !self.chain() {
            self.taken(job.ends_at_ns, bus);
        }
    }

    /// The first operand that the kernel writes.
    pub(super) fn output(&self) -> Option<usize> {
        self.map.operands().iter().position(|spec| spec.direction.device_writes())
    }
}
