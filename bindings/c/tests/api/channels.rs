//! One device whose channels have an engine each: a simulated PL330, by its name, the setting
//! `channel`, and one handle of the device.

use crate::common::*;
use contigo_c::*;
use contigo_testkit::barrier::Barrier;
use contigo_testkit::rounds;
use core::ffi::CStr;
use core::ptr;
use std::thread;

const TIMEOUT_US: u32 = 100_000;

/// A board with a controller, and what its engines are opened with.
struct Shared {
    board: Board,
    device: contigo_device,
}

impl Shared {
    fn new(options: &contigo_sim_options) -> Self {
        let board = Board::with(options);
        Self { board, device: sim_device(board.sim, c"pl330") }
    }

    fn options(&self, settings: &CStr) -> contigo_engine_options {
        let Self { board, device } = self;
        contigo_engine_options {
            settings: settings.as_ptr(),
            ..engine_options(c"pl330", *device, board.port, board.region)
        }
    }

    #[track_caller]
    fn has_driver(&self, options: &contigo_engine_options) {
        refused(try_engine(options), CONTIGO_E_HAS_DRIVER, "has a driver");
    }

    /// A copy of a whole slot of `value`.
    #[track_caller]
    fn start(&self, engine: contigo_engine, value: u8) -> ([contigo_operand; 2], contigo_job) {
        let bufs = [self.board.take(), self.board.take()];
        fill(bufs[0], value);
        fill(bufs[1], !value);
        let operands = bufs.map(|buf| part(buf, SLOT));
        (operands, start_job(engine, &operands, &[]))
    }

    #[track_caller]
    fn close(self) {
        ok(contigo_device_close(self.device));
        self.board.close();
    }
}

#[test]
fn one_engine_per_channel_or_whole_device() {
    let shared = Shared::new(&sim_options());
    let (zero, one, two) =
        (shared.options(c"channel=0"), shared.options(c"channel=1"), shared.options(c"channel=2"));
    let whole = contigo_engine_options { settings: ptr::null(), ..zero };
    let first = open_engine(&zero);
    let other_port = sim_port(shared.board.sim, 1);
    for taken in [
        zero,
        whole,
        shared.options(c"channel=1,event=0"),
        contigo_engine_options { port: other_port, ..one },
        contigo_engine_options { polled: 1, ..one },
    ] {
        shared.has_driver(&taken);
    }
    refused(try_engine(&shared.options(c"channel=8")), CONTIGO_E_ARGUMENT, "channel");
    let without = contigo_engine_options { region: 0, ..one };
    refused(try_engine(&without), CONTIGO_E_UNSUPPORTED, "needs memory");
    refused(
        unsafe { contigo_device_attach(shared.device, shared.board.port, 0, 0, &mut 0) },
        CONTIGO_E_HAS_DRIVER,
        "has a driver",
    );
    refused(contigo_device_close(shared.device), CONTIGO_E_STILL_USED, "");
    // Each that was refused has given its channel back, and the last one the device.
    let second = open_engine(&one);
    ok(contigo_engine_close(first));
    shared.has_driver(&whole);
    ok(contigo_engine_close(second));
    let alone = open_engine(&whole);
    shared.has_driver(&two);
    let (operands, job) = shared.start(alone, 5);
    ok(wait(job, TIMEOUT_US));
    assert_eq!(bytes(operands[1].buf), [5; SLOT]);
    release_all(&operands);
    ok(contigo_engine_close(alone));
    // Through another port, when no engine has the device.
    ok(contigo_engine_close(open_engine(&contigo_engine_options { port: other_port, ..two })));
    // A driver that shares nothing has no such setting.
    let zdma = sim_device(shared.board.sim, c"zdma");
    let options = contigo_engine_options {
        settings: c"channel=0".as_ptr(),
        ..engine_options(c"zdma", zdma, shared.board.port, 0)
    };
    refused(try_engine(&options), CONTIGO_E_UNKNOWN_SETTING, "setting");
    ok(contigo_device_close(zdma));
    ok(contigo_port_close(other_port));
    shared.close();
}

#[test]
fn four_threads_have_a_channel_each() {
    let (shared, all) = (Shared::new(&sim_options()), Barrier::new(4));
    let settings = [c"channel=0", c"channel=1", c"channel=2", c"channel=3"];
    thread::scope(|scope| {
        for (number, settings) in (1..).zip(settings) {
            let (shared, all) = (&shared, &all);
            scope.spawn(move || {
                for round in 0..rounds(20) {
                    let engine = open_engine(&shared.options(settings));
                    let slots = [(); 2].map(|()| shared.board.take());
                    all.wait();
                    for value in 0..10 {
                        let value = number * 10 + value;
                        fill(slots[0], value);
                        let operands = slots.map(|buf| part(buf, SLOT));
                        let job = start_job(engine, &operands, &[]);
                        ok(wait(job, TIMEOUT_US));
                        assert_eq!(
                            bytes(slots[1]),
                            [value; SLOT],
                            "round {round} of channel {number}"
                        );
                    }
                    release(slots);
                    // The first one's opening and the last one's end, at once.
                    ok(contigo_engine_close(engine));
                }
            });
        }
    });
    shared.close();
}
