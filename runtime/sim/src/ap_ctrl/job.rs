//! A job's way through a simulated kernel: AP_START, taken, ended, and the interrupt that tells.

use super::{ApCtrlModel, KernelCall, STAGES, manual as regs};
use crate::{BusError, SimBus, faults::Fate};
use contigo_core::job::MAX_OPERANDS;
use contigo_design::kernel::{MAX_RESULTS, MAX_SCALARS};

/// From AP_START to the end of a job that has no bytes.
const LATENCY_NS: u64 = 2_000;
/// The bytes that a kernel moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;

/// A job that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) pointers: [u64; MAX_OPERANDS],
    pub(super) scalars: [u64; MAX_SCALARS],
    pub(super) ends_at_ns: u64,
    pub(super) fate: Fate,
}

impl<F> ApCtrlModel<F>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], BusError> + Send,
{
    /// How long a job takes: its bytes, by the map's rules.
    fn busy_ns(&self, scalars: &[u64]) -> u64 {
        let bytes = (0..self.map.pointers().len()).map(|index| self.map.need_bytes(index, scalars));
        LATENCY_NS.saturating_add(bytes.fold(0, u64::saturating_add) / BYTES_PER_NS)
    }

    /// AP_START was written. A chain takes a job in a quarter of the time that it works on one;
    /// otherwise a job is taken when it ends.
    pub(super) fn rings(&mut self, bus: &mut SimBus<'_>) {
        if self.start.is_some() {
            return;
        }
        let busy_ns = if self.chain() { self.busy_ns(&self.scalars) / 4 } else { 0 };
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        self.start = Some(bus.now_ns().saturating_add(busy_ns).saturating_add(jitter_ns));
    }

    /// The kernel takes the job whose registers are written, where it has room.
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
        let job = Job { pointers: self.pointers, scalars: self.scalars, ends_at_ns, fate };
        if let Some(place) = self.jobs.get_mut(inside) {
            *place = Some(job);
        }
        if self.chain() {
            self.taken(at_ns, bus);
        }
    }

    /// AP_READY.
    fn taken(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        self.start = None;
        self.ready = true;
        self.raises(at_ns, regs::CHANNEL_READY, bus);
        if self.restarts {
            self.rings(bus);
        }
    }

    /// ISR will get `bits`: at once, late or never.
    fn raises(&mut self, at_ns: u64, bits: u32, bus: &mut SimBus<'_>) {
        let at_ns = bus.irq_delay_ns(LATENCY_NS * 10).map_or(u64::MAX, |delay| at_ns + delay);
        let [done, ready] = &mut self.raise;
        *(if bits == regs::CHANNEL_DONE { done } else { ready }) = (at_ns, bits);
    }

    /// The oldest job ends: all that it writes is written now.
    pub(super) fn run(&mut self, job: Job, bus: &mut SimBus<'_>) {
        let Self { map, compute, .. } = self;
        let mut call =
            KernelCall { map, pointers: &job.pointers, scalars: &job.scalars, bus: &mut *bus };
        // A kernel does not tell what its master was answered.
        self.results = compute(&mut call).unwrap_or_default();
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
