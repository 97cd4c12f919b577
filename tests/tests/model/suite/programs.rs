//! Each driver and mode has a stop program that the kernel takes.

use super::{See, each_driver};
use contigo::job::{StopProgram, StopStep};
use contigo::sim::{SimBoard, SimDevice};
use contigo::{Align, Driver as _, Region};
use contigo_testkit::suite::{Subject, Way};

/// No register tells that a reader's requests were answered, nor that writes which were overtaken
/// are in memory.
const NONE: [&str; 4] =
    ["litepcie, reader", "litepcie, writer", "litepcie, loopback", "litepcie, loopback, ordered"];

struct Programs(usize);

impl See for Programs {
    /// A driver whose steps are refused where they are put together has no program, and its users
    /// learn it after a crash.
    fn see(&mut self, subject: &impl Subject) {
        let board = SimBoard::new(1);
        let own_bytes = subject.memory_bytes().max(64).next_multiple_of(4096);
        let region = Region::new(board.memory(own_bytes).unwrap()).unwrap();
        let device = SimDevice::with_model(&board, Way::Plain.port(&board), subject.model());
        let own =
            (subject.memory_bytes() > 0).then(|| region.alloc(own_bytes, Align::PAGE).unwrap());
        let program =
            subject.open(device.window().unwrap(), own, |driver| driver.stop_program()).unwrap();
        let name = subject.name();
        assert_eq!(program == StopProgram::NONE, NONE.contains(&name), "{name}: {program:?}");
        let limit_us = |step: &StopStep| match *step {
            StopStep::PollUntil { timeout_us, .. } | StopStep::PollWhile { timeout_us, .. } => {
                Some(u64::from(timeout_us))
            }
            StopStep::Write { .. } | StopStep::Else => None,
        };
        for way in program.steps().split(|step| *step == StopStep::Else) {
            let polls = way.last().is_none_or(|last| limit_us(last).is_some());
            assert!(polls, "{name}: only a poll shows that the device has stopped: {way:?}");
        }
        let polls_us: u64 = program.steps().iter().filter_map(limit_us).sum();
        assert!(polls_us <= 1_000_000, "{name}: the kernel takes a second of polls: {polls_us} us");
        self.0 += 1;
    }
}

#[test]
fn every_drivers_stop_program_ends_in_look() {
    let mut programs = Programs(0);
    each_driver(&mut programs);
    assert!(programs.0 > 20, "{} subjects", programs.0);
}
