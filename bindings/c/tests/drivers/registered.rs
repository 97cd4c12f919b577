//! A Rust driver that a program registers in its own libcontigo. C opens it as it opens a built-in
//! one. (The program links the two crates; this test is such a program.)

use crate::common::*;
use contigo::drivers::zdma::Zdma;
use contigo::job::{AnyDriver, Parts};
use contigo::mem::DevSlice;
use contigo::names::{AnyDevice, DriverRow, register};
use contigo::sim::AnyModel;
use contigo::sim::zdma::ZdmaModel;
use contigo::{Completion, Device, Driver, Error, Result};
use contigo_c::*;
use core::ffi::CStr;
use std::time::Duration;

/// An argument at which its check panics.
const PANICS: u32 = 13;

/// Copies, backwards or not: as much of a driver as this test needs.
struct Twice<D: Device>(Zdma<D>, u32);

// SAFETY: every method is the channel's own.
unsafe impl<D: Device> Driver for Twice<D> {
    contigo::forward!(|this| this.0 => port, simulated, addr_bits, operands, depth, in_order);
    contigo::forward!(|this| this.0 => stop);
    fn name(&self) -> &'static str {
        "twice"
    }
    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        match args {
            [1..=9] => self.0.check(operands, &[]),
            [panics] if *panics == PANICS => panic!("asked for"),
            _ => Err(Error::Argument {
                name: "times",
                value: args.len() as u64,
                min: 1,
                max: 9,
                multiple_of: 1,
            }),
        }
    }
    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        self.1 = args[0] * 100;
        unsafe { self.0.submit(slot, operands, &[]) }
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        Ok(self.0.poll(timeout)?.map(|done| Completion { words: [self.1, 0, 0, 0], ..done }))
    }
}

/// # Safety
/// The device is a ZDMA channel, and no other code drives it.
unsafe fn open(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    parts.settings.number("burst", 1, 16)?;
    assert_eq!(
        parts.memory.map(|memory| memory.len_bytes()),
        Some(4096),
        "as much as its row asks for"
    );
    // SAFETY: the caller's promise.
    let channel: Zdma<AnyDevice> = unsafe { Zdma::simple(parts.device)? };
    AnyDriver::new(Twice(channel, 0))
}

static TWICE: DriverRow = DriverRow {
    settings: Some(&["burst"]),
    memory_bytes: 4096,
    ..DriverRow::new("twice", "copies, and reports a word", open)
};

#[test]
fn registered_driver_opens_from_c_by_name() {
    let board = Board::new();
    let missing = |name: &CStr| unsafe { contigo_sim_device(board.sim, name.as_ptr(), &mut 0) };
    refused(
        missing(c"twice"),
        CONTIGO_E_NOT_FOUND,
        "there is no such simulated device; others that are here: ",
    );
    register(&TWICE).unwrap();
    contigo::sim::register("twice", || AnyModel::new(ZdmaModel::default())).unwrap();
    assert_eq!(register(&TWICE), Err(Error::InUse { errno: 0 }));
    refused(missing(c"twic"), CONTIGO_E_NOT_FOUND, "others that are here: twice, ");

    let device = sim_device(board.sim, c"twice");
    let options = engine_options(c"twice", device, board.port, board.region);
    let wrong = contigo_engine_options { settings: c"burst=17".as_ptr(), ..options };
    refused(try_engine(&wrong), CONTIGO_E_ARGUMENT, "burst is 17");
    let wrong = contigo_engine_options { settings: c"burst=two".as_ptr(), ..options };
    refused(
        try_engine(&wrong),
        CONTIGO_E_NOT_A_NUMBER,
        "burst is no number: write one from 1 to 16",
    );
    let engine = open_engine(&contigo_engine_options { settings: c"burst=16".as_ptr(), ..options });
    let operands = board.operands();
    let start = |times: u32, job: &mut contigo_job| unsafe {
        contigo_job_start(engine, operands.as_ptr(), 2, &times, 1, 0, job)
    };
    let mut job = 0;
    refused(start(10, &mut job), CONTIGO_E_ARGUMENT, "times");
    ok(start(3, &mut job));
    let mut said = empty::<contigo_completion>();
    ok(unsafe { contigo_job_wait(job, 20_000, &mut said) });
    assert_eq!((said.words[0], &bytes(operands[1].buf)[..64]), (300, &[1; 64][..]));
    // Its buffers went back to their pool then, with entries that stayed a job's for ever.
    let carved = carve(board.region, 64, 64);
    let with_carved = [operands[0], part(carved, 64)];
    let panicked =
        unsafe { contigo_job_start(engine, with_carved.as_ptr(), 2, &PANICS, 1, 0, &mut job) };
    refused(panicked, CONTIGO_E_INTERNAL, "a defect");
    assert_eq!((job, info_of(engine).in_flight), (0, 0), "nothing was started");
    assert_eq!(free_slots(board.pool), 6);
    ok(contigo_buf_release(carved));
    ok(start(1, &mut job));
    ok(wait(job, 20_000));
    release_all(&operands);
    ok(contigo_engine_close(engine));
    ok(contigo_device_close(device));
    board.close();
}
