//! A stream over the same driver: why it cannot begin, and why it cannot go on.

use super::{FAULT, Rig, SLOT, ends};
use contigo::{Completion, Direction, Error, OperandSpec, Stream};
use std::time::Duration;

#[test]
fn a_stream_says_why_it_cannot_begin_or_go_on() {
    let rig = Rig::new();
    let (mut driver, _) = rig.driver(4, true);
    driver.device.operand = [OperandSpec::to_device()];
    let refused = Stream::new(driver, rig.pool.clone(), 4, &[]).unwrap_err();
    assert_eq!(refused.error, Error::WrongDirection { index: 0, expected: Direction::FromDevice });
    let (driver, script) = rig.driver(4, true);
    let refused = Stream::new(driver, rig.pool.clone(), 4, &[0; 65]).unwrap_err();
    assert!(matches!(refused.error, Error::Argument { value: 65, max: 64, .. }));

    // As much of each buffer as the device takes.
    let mut driver = refused.into_returned();
    driver.device.operand = [OperandSpec { max_bytes: SLOT - 1, ..OperandSpec::from_device() }];
    let mut stream = Stream::new(driver, rig.pool.clone(), 4, &[]).unwrap();
    let all: Vec<_> = (0..8).map(|_| rig.pool.take().unwrap()).collect();
    assert_eq!((stream.start(), stream.is_running()), (Err(Error::NoSlots { slots: 8 }), false));
    drop(all);
    let held: Vec<_> = (0..6).map(|_| rig.pool.take().unwrap()).collect();
    assert_eq!(stream.start(), Ok(2), "as many as the pool has");
    let mut frames = Vec::new();
    for slot in 0..2 {
        ends(&script, &[slot]);
        let frame = stream.next(Duration::ZERO).unwrap().unwrap();
        assert_eq!(frame.buf.len_bytes(), SLOT - 1, "all that it may have written");
        frames.push(frame);
    }
    // Nothing can come.
    assert_eq!(stream.next(Duration::ZERO).unwrap_err(), Error::NoSlots { slots: 8 });
    // A frame that failed alone is an error and is counted; the stream goes on.
    stream.give_back(frames.pop().unwrap().buf).unwrap();
    drop((held, frames));
    let fails = Completion { status: 1, failed: Some("asked for"), ..Completion::of(2) };
    script.borrow_mut().polls.push_back(Ok(Some(fails)));
    assert_eq!(stream.next(Duration::ZERO).unwrap_err(), FAULT);
    assert_eq!((stream.is_running(), stream.counts().failed), (true, 1));
    assert!(stream.next(Duration::ZERO).unwrap().is_none());
    assert_eq!((stream.queue().len(), rig.pool.taken()), (4, 4));
    // A device that refuses a buffer is stopped, and no frame is asked for behind the program's
    // back.
    drop(stream.next(Duration::ZERO));
    ends(&script, &[3]);
    let frame = stream.next(Duration::ZERO).unwrap().unwrap();
    script.borrow_mut().submit = Some(FAULT);
    assert_eq!((stream.give_back(frame.buf), stream.is_running()), (Err(FAULT), false));
    assert!(stream.next(Duration::ZERO).unwrap().is_none());
    script.borrow_mut().submit = None;
    assert_eq!(stream.start(), Ok(4));
}
