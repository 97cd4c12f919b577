#![allow(unsafe_code, reason = "implementing `Accelerator` is a promise: this one touches nothing")]
//! Handing a buffer to a device that the C program drives itself: all the checks and the cache maintenance of a job, without a job.

use contigo::{Accelerator, CpuBuf, DevBuf, DevSlice, Direction, Engine, Error, Port, Timeout};

/// An accelerator that does nothing, with one operand. `DIRECTION` is what it would do with it: a direction's number.
struct HandOver<const DIRECTION: u8> {
    port: Port,
}

const TO_DEVICE: u8 = 0;
const FROM_DEVICE: u8 = 1;
const IN_OUT: u8 = 2;

// SAFETY: it touches no byte and drives no device. Its port is what the caller of `hand_over` says; the address that comes out of it is a
// number until the C program gives it to a device, and with it the promise that the device is on that port (contigo.h,
// `contigo_buf_to_device`).
unsafe impl<const DIRECTION: u8> Accelerator<1> for HandOver<DIRECTION> {
    type Args = ();
    const NAME: &'static str = "a device of the program";
    const ADDR_BITS: u32 = 64;
    const DIRECTIONS: [Direction; 1] = [match DIRECTION {
        TO_DEVICE => Direction::ToDevice,
        FROM_DEVICE => Direction::FromDevice,
        _ => Direction::Bidirectional,
    }];
    fn port(&self) -> &Port {
        &self.port
    }
    fn check(&self, _: &[DevSlice; 1], (): &()) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn start(&mut self, _: &[DevSlice; 1], (): &()) -> Result<(), Error> {
        Ok(())
    }
    fn poll(&mut self, _: Timeout) -> Result<bool, Error> {
        Ok(true)
    }
    fn quiesce(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// What comes of it: the device's, or what was handed in, with the reason.
pub(super) type HandedOver = Result<DevBuf<'static>, (Error, Option<Result<CpuBuf<'static>, DevBuf<'static>>>)>;

/// Makes `len_bytes` from `offset_bytes` of `buf` a device's on `port`.
pub(super) fn hand_over(buf: CpuBuf<'static>, offset_bytes: usize, len_bytes: usize, direction: Direction, port: Port) -> HandedOver {
    match direction {
        Direction::ToDevice => through::<TO_DEVICE>(buf, offset_bytes, len_bytes, port),
        Direction::FromDevice => through::<FROM_DEVICE>(buf, offset_bytes, len_bytes, port),
        Direction::Bidirectional => through::<IN_OUT>(buf, offset_bytes, len_bytes, port),
    }
}

fn through<const DIRECTION: u8>(buf: CpuBuf<'static>, offset_bytes: usize, len_bytes: usize, port: Port) -> HandedOver {
    // A sum past the end of all memory is past the end of the buffer, which is what the engine checks.
    let range = offset_bytes..offset_bytes.saturating_add(len_bytes);
    let mut engine = match Engine::new(HandOver::<DIRECTION> { port }) {
        Ok(engine) => engine,
        Err(refused) => return Err((refused.error, Some(Ok(buf)))),
    };
    let operand = match HandOver::<DIRECTION>::DIRECTIONS {
        [Direction::ToDevice] => buf.to_device(range),
        [Direction::FromDevice] => buf.from_device(range),
        [Direction::Bidirectional] => buf.in_out(range),
    };
    let running = match engine.start([operand], &()) {
        Ok(running) => running,
        Err(refused) => return Err((refused.error, refused.buffers.map(|[operand]| operand.into_buf()))),
    };
    match running.wait_device(Timeout::NOW) {
        Ok([buf]) => Ok(buf),
        Err(failed) => Err((failed.error, failed.buffers.map(|[buf]| Err(buf)))),
    }
}
