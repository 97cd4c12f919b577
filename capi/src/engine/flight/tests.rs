#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "the C functions take pointers, which are references here; a test that panics has failed, which is its purpose"
)]
//! A start that fails, on a device that does not stop.

use super::*;
use crate::*;
use contigo::{Completion, DevSlice, Driver, OperandSpec, Port};

/// What a call answers by its last argument.
fn answer<T: Default>(call: impl FnOnce(*mut T) -> contigo_status) -> T {
    let mut value = T::default();
    assert_eq!(call(&raw mut value), CONTIGO_OK);
    value
}

/// Stopped when the engine is made, and never again.
struct Dead {
    port: Port,
    stops: usize,
}

const FAULT: Error = Error::Fault { device: "dead", status: 1, what: "asked for" };

// SAFETY: it touches no memory.
unsafe impl Driver for Dead {
    fn name(&self) -> &'static str {
        "dead"
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::from_device()] }
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        Err(FAULT)
    }
    fn poll(&mut self, _: Timeout) -> Result<Option<Completion>, Error> {
        Ok(None)
    }
    fn stop(&mut self) -> Result<(), Error> {
        self.stops += 1;
        if self.stops == 1 { Ok(()) } else { Err(Error::WillNotStop { device: "dead", status: 1, waited_us: 1 }) }
    }
}

impl TypedDriver<1> for Dead {
    type Args = ();
    type Words = [u32; 0];
    type Report = ();
    fn words((): &()) -> [u32; 0] {
        []
    }
    fn report(&self, _: &Completion) {}
}

#[test]
fn what_a_start_that_failed_leaves_to_a_device_is_lost() {
    let options = contigo_sim_options { struct_size: size_of::<contigo_sim_options>(), ..contigo_sim_options::default() };
    // SAFETY: the pointers are references.
    let sim = answer(|sim| unsafe { contigo_sim_open(&raw const options, sim) });
    // SAFETY: as above.
    let port = answer(|port| unsafe { contigo_sim_port(sim, 0, port) });
    let memory = contigo_heap_options {
        struct_size: size_of::<contigo_heap_options>(),
        kind: CONTIGO_HEAP_SIM,
        addr_bits: 0,
        len_bytes: 4096,
        align_bytes: 0,
        name: core::ptr::null(),
        sim,
        kernel_port: 0,
        gpu: 0,
        write_combined: 0,
        device: 0,
    };
    // SAFETY: as above.
    let heap = answer(|heap| unsafe { contigo_heap_open(&raw const memory, heap) });
    // SAFETY: as above.
    let buf = answer(|buf| unsafe { contigo_carve(heap, 64, 0, buf) });
    let port = crate::object::port::get(port).ok().unwrap();
    let engine = Box::leak(Box::new(Engine::new(Dead { port, stops: 0 }).ok().unwrap()));
    let started = Flight::start(engine, &[Part { buf, offset_bytes: 0, len_bytes: 64 }], &());
    assert_eq!(started.err().map(|fault| fault.status()), Some(CONTIGO_E_WILL_NOT_STOP));
    assert_eq!([contigo_buf_release(buf), contigo_buf_to_cpu(buf)], [CONTIGO_E_LEAKED; 2]);
    assert_eq!(contigo_heap_close(heap), CONTIGO_E_STILL_USED);
}
