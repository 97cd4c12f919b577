//! A job under way, with its buffers' entries: whatever its end, each buffer is in its entry again, or lost for ever.

use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    object::buf::{BUFS, Buf, Held},
    table::{Guard, JobHold},
};
use contigo::{Attempt, DevBuf, Direction, Engine, Error, JobError, Operand, Running, Timeout, TypedDriver};
use heapless::Vec;

/// Which bytes of which buffer.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) buf: u64,
    pub(crate) offset_bytes: usize,
    pub(crate) len_bytes: usize,
}

/// How to end a job.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// Look once, with no wait.
    Poll,
    /// Wait, and stop the device where the time is over. `to_cpu`: the buffers are the CPU's then.
    Wait { timeout: Timeout, to_cpu: bool },
}

/// A job under way. Nobody but it reaches the entries of its buffers.
pub(super) struct Flight<D: TypedDriver<N> + 'static, const N: usize> {
    running: Running<'static, 'static, D, N>,
    holds: [JobHold<Buf>; N],
}

impl<D: TypedDriver<N>, const N: usize> Flight<D, N> {
    /// Starts a job. Where it is refused, every buffer stays as it was, or is lost with a device that would not stop.
    pub(super) fn start(engine: &'static mut Engine<D, N>, parts: &[Part; N], args: &D::Args) -> Result<Self, Fault> {
        let mut guards = lock_all(parts)?;
        let mut operands = Vec::<Operand<'static>, N>::new();
        for ((guard, part), spec) in guards.iter_mut().zip(parts).zip(engine.driver().operands()) {
            let held = guard.value().ok_or(Misuse::Stale { kind: Kind::Buf })?.take();
            // `lock_all` found it there, and there are N of them.
            if let Some(operand) = operand(held, part, spec.direction) {
                let _ = operands.push(operand);
            }
        }
        let count = Error::Argument { name: "operands", value: parts.len() as u64, min: N as u64, max: N as u64, multiple_of: 1 };
        let operands = operands.into_array::<N>().map_err(|_| count)?;
        match engine.start(operands, args) {
            Ok(running) => {
                let mut holds = Vec::<JobHold<Buf>, N>::new();
                for guard in guards {
                    let _ = holds.push(guard.into_job());
                }
                match holds.into_array::<N>() {
                    Ok(holds) => Ok(Self { running, holds }),
                    // There are as many as operands. Were it not so, the job is stopped here, and the entries are lost.
                    Err(_) => Err(count.into()),
                }
            }
            Err(refused) => {
                let fault = job_fault(&refused);
                match refused.buffers {
                    Some(operands) => {
                        for (guard, operand) in guards.iter_mut().zip(operands) {
                            if let Some(buf) = guard.value() {
                                buf.put(operand.into_buf().map_or_else(Held::Dev, Held::Cpu));
                            }
                        }
                    }
                    // Leak, never free: a hold that is dropped leaves its entry to the device.
                    None => guards.into_iter().for_each(|guard| drop(guard.into_job())),
                }
                Err(fault)
            }
        }
    }

    /// Ends the job, or gives it back where it has not ended: only after `End::Poll`.
    pub(super) fn end(self, how: End) -> Result<Option<Self>, Fault> {
        let Self { running, holds } = self;
        let ended = match how {
            End::Poll => match running.try_wait() {
                Ok(Attempt::Pending(running)) => return Ok(Some(Self { running, holds })),
                Ok(Attempt::Done(done)) => Ok(done.buffers.map(Held::Cpu)),
                Err(failed) => Err(failed),
            },
            End::Wait { timeout, to_cpu: true } => running.wait(timeout).map(|done| done.buffers.map(Held::Cpu)),
            End::Wait { timeout, to_cpu: false } => running.wait_device(timeout).map(|done| done.buffers.map(Held::Dev)),
        };
        match ended {
            Ok(buffers) => {
                give_back(holds, buffers);
                Ok(None)
            }
            Err(failed) => {
                let fault = job_fault(&failed);
                // Without buffers the device would not stop, and the holds are dropped.
                if let Some(buffers) = failed.buffers {
                    give_back(holds, buffers.map(reclaim));
                }
                Err(fault)
            }
        }
    }
}

/// The buffers' entries, for this call alone.
fn lock_all<const N: usize>(parts: &[Part; N]) -> Result<Vec<Guard<Buf>, N>, Fault> {
    let mut guards = Vec::<Guard<Buf>, N>::new();
    for (index, part) in parts.iter().enumerate() {
        if let Some(first) = parts.iter().take(index).position(|other| other.buf == part.buf) {
            return Err(Misuse::SameBuffer { first, second: index }.into());
        }
        let mut guard = BUFS.lock(part.buf)?;
        guard.value().ok_or(Misuse::Stale { kind: Kind::Buf })?.may_leave()?;
        let _ = guards.push(guard);
    }
    Ok(guards)
}

fn operand(held: Held, part: &Part, direction: Direction) -> Option<Operand<'static>> {
    // A sum past the end of all memory is past the end of the buffer, which is what the engine checks.
    let range = part.offset_bytes..part.offset_bytes.saturating_add(part.len_bytes);
    Some(match (held, direction) {
        (Held::Cpu(buf), Direction::ToDevice) => buf.to_device(range),
        (Held::Cpu(buf), Direction::FromDevice) => buf.from_device(range),
        (Held::Cpu(buf), Direction::Bidirectional) => buf.in_out(range),
        (Held::Dev(buf), Direction::ToDevice) => buf.to_device(range),
        (Held::Dev(buf), Direction::FromDevice) => buf.from_device(range),
        (Held::Dev(buf), Direction::Bidirectional) => buf.in_out(range),
        // `lock_all` has refused these.
        (Held::Away | Held::LentCpu(_) | Held::LentDev(_), _) => return None,
    })
}

fn give_back<const N: usize>(holds: [JobHold<Buf>; N], buffers: [Held; N]) {
    for (hold, held) in holds.into_iter().zip(buffers) {
        if let Some(buf) = hold.back().value() {
            buf.put(held);
        }
    }
}

/// The CPU's, where the caches let it: otherwise `contigo_buf_to_cpu` tries again.
fn reclaim(buf: DevBuf<'static>) -> Held {
    buf.into_cpu().map_or_else(|refused| Held::Dev(refused.returned), Held::Cpu)
}

fn job_fault<B>(failed: &JobError<B>) -> Fault {
    Fault::Job { error: failed.error, cause: failed.cause, operand: failed.operand }
}

#[cfg(test)]
mod tests;
