//! The driver of `edu` against a model of it on the simulated board: what a copy is, what is
//! refused, what cannot be stopped.

use contigo::{
    Bus, Error, Mmio, Port, Queue, Region,
    sim::{SimBoard, SimDevice, SimSpec},
};
use contigo::{PhysAddr, types::BaseAddr};
use contigo_testkit::edu::{Edu, EduModel, FaultWatch, IommuFault};
use std::{cell::RefCell, rc::Rc, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

fn rig(board: &SimBoard) -> Port {
    Port { addr_bits: 64, window: (0, u64::MAX), ..board.port() }
}

#[test]
fn every_length_is_copied_and_nothing_beside_it() {
    let board = SimBoard::new(11);
    let region = Region::new(board.memory(256 << 10).unwrap()).unwrap();
    let pool = region.pool(8, 8192).unwrap();
    let device = SimDevice::with_model(&board, rig(&board), EduModel::<32>::new());
    let mut queue = Queue::new(Edu::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    for (len, at) in
        [(1, 0), (3, 5), (64, 0), (100, 64), (255, 1), (4095, 0), (4095, 64), (4094, 1)]
    {
        let (mut from, mut to) = (pool.take().unwrap(), pool.take().unwrap());
        let pattern: Vec<u8> =
            (0..len).map(|i| u8::try_from((i * 7 + at + len) % 251).unwrap()).collect();
        from.view_at_mut::<u8>(at..at + len).unwrap().copy_from_slice(&pattern);
        to.view_mut::<u8>().unwrap().fill(0xEE);
        // Where the device writes must be whole lines on a port that does not snoop.
        let [_, to] = queue
            .run([from.to_device(at..at + len), to.from_device(64..64 + 4096)], &[], SECOND)
            .unwrap()
            .buffers;
        let seen = to.view::<u8>().unwrap();
        assert_eq!(seen[64..64 + len], pattern, "{len} bytes at {at}");
        assert!(
            seen[..64].iter().chain(&seen[64 + len..]).all(|byte| *byte == 0xEE),
            "{len} bytes at {at}"
        );
    }
    assert_eq!(queue.counts().completed, 8);
}

#[test]
fn a_copy_takes_two_transfers_and_each_its_100_ms() {
    let board = SimBoard::new(12);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(4, 4096).unwrap();
    let device = SimDevice::with_model(&board, rig(&board), EduModel::<32>::new());
    let mut queue = Queue::new(Edu::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    queue
        .submit([pool.take().unwrap().to_device(..64), pool.take().unwrap().from_device(..64)], &[])
        .unwrap();
    let begin_ns = board.now_ns();
    let ended_ns = loop {
        if queue.try_next::<2>().unwrap().is_some() {
            break board.now_ns();
        }
        device.run_for(1_000).unwrap();
        assert!(board.now_ns() - begin_ns < 1_000_000_000, "it never ends");
    };
    let took_ms = (ended_ns - begin_ns) / 1_000_000;
    assert!((200..220).contains(&took_ms), "{took_ms} ms");

    // A limit that ends between the two, or in the first: stopped, and nothing is written
    // afterwards.
    for limit_us in [50_000, 150_000] {
        let mut to = pool.take().unwrap();
        to.view_mut::<u8>().unwrap().fill(0x77);
        let failed = queue.run(
            [pool.take().unwrap().to_device(..64), to.from_device(..64)],
            &[],
            Duration::from_micros(limit_us.into()),
        );
        let failed = failed.unwrap_err();
        assert_eq!(failed.error, Error::Timeout { timeout_us: limit_us });
        let [_, to] = failed.buffers.unwrap();
        let before = to.into_cpu().unwrap().view_at::<u8>(..64).unwrap().to_vec();
        assert!(queue.is_empty(), "it came to rest");
        assert_eq!(
            before,
            [if limit_us == 50_000 { 0x77 } else { 0 }; 64],
            "the transfer under way ran to its end, and no other began"
        );
    }
    assert!(
        queue
            .run(
                [pool.take().unwrap().to_device(..64), pool.take().unwrap().from_device(..64)],
                &[],
                SECOND
            )
            .is_ok()
    );
}

#[test]
fn what_it_cannot_reach_is_refused_before_the_doorbell() {
    let board = SimBoard::new(13);
    let high = SimSpec {
        len_bytes: 64 << 10,
        base: Some(BaseAddr::Phys(PhysAddr(0x1000_0000))),
        ..SimSpec::default()
    };
    let edge = SimSpec {
        len_bytes: 64 << 10,
        base: Some(BaseAddr::Phys(PhysAddr(0x0FFF_0000))),
        ..SimSpec::default()
    };
    let (high, edge) = (
        Region::new(board.memory_with(high).unwrap()).unwrap(),
        Region::new(board.memory_with(edge).unwrap()).unwrap(),
    );
    let high = high.pool(4, 4096).unwrap();
    let edge = edge.pool(16, 4096).unwrap();
    let device = SimDevice::with_model(&board, rig(&board), EduModel::<28>::new());
    let mut queue = Queue::new(Edu::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    let mut slots: Vec<_> = (0..16).map(|_| edge.take().unwrap()).collect();
    let (last, first) = (slots.pop().unwrap(), slots.remove(0));
    assert!(
        queue.run([first.to_device(..4095), last.from_device(..)], &[], SECOND).is_ok(),
        "up to the last byte below 2^28"
    );
    drop(slots);
    for index in [0, 1] {
        let mut operands =
            [edge.take().unwrap().to_device(..64), edge.take().unwrap().from_device(..)];
        operands[index] = if index == 0 {
            high.take().unwrap().to_device(..64)
        } else {
            high.take().unwrap().from_device(..)
        };
        let refused = queue.submit(operands, &[]).unwrap_err();
        assert!(
            matches!(refused.error, Error::Unreachable { addr, last: 0xFFF_FFFF, .. } if addr >= 0x1000_0000),
            "{refused}"
        );
        assert_eq!(refused.operand, Some(index));
    }
    assert_eq!(queue.counts().pushed, 1, "no doorbell was rung");
}

#[test]
fn lengths_it_has_no_room_for_are_refused() {
    let board = SimBoard::new(14);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(4, 8192).unwrap();
    let device = SimDevice::with_model(&board, rig(&board), EduModel::<32>::new());
    let mut queue = Queue::new(Edu::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    let refused = queue
        .submit([pool.take().unwrap().to_device(..4096), pool.take().unwrap().from_device(..)], &[])
        .unwrap_err();
    assert!(matches!(refused.error, Error::Argument { value: 4096, max: 4095, .. }));
    let refused = queue
        .submit([pool.take().unwrap().to_device(..65), pool.take().unwrap().from_device(..64)], &[])
        .unwrap_err();
    assert_eq!(refused.error, Error::BufferSize { index: 1, need_bytes: 65, have_bytes: 64 });
}

#[test]
fn one_that_will_not_end_keeps_its_buffers() {
    let board = SimBoard::new(15);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(2, 4096).unwrap();
    let device = SimDevice::with_model(&board, rig(&board), EduModel::<32>::stuck());
    let mut queue = Queue::new(Edu::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    let failed = queue
        .run(
            [pool.take().unwrap().to_device(..64), pool.take().unwrap().from_device(..64)],
            &[],
            Duration::from_millis(300),
        )
        .unwrap_err();
    assert!(
        matches!(failed.error, Error::WillNotStop { device: "edu", .. })
            && failed.buffers.is_none(),
        "{failed}"
    );
    assert!(matches!(pool.take(), Err(Error::NoSlots { .. })), "leaked, not freed");
    device.reset().unwrap();
    queue.clear().unwrap();
}

#[test]
fn what_is_no_edu_is_refused() {
    struct Nothing(usize);
    #[allow(unsafe_code, reason = "a window of nothing")]
    // SAFETY: no device, no memory.
    unsafe impl Mmio for Nothing {
        fn len_bytes(&self) -> usize {
            self.0
        }
        fn read32(&self, _: usize) -> u32 {
            u32::MAX
        }
        unsafe fn write32(&self, _: usize, _: u32) {}
    }
    let port = Port {
        name: "none",
        bus: Bus::Soc,
        offset: 0,
        addr_bits: 32,
        window: (0, u32::MAX.into()),
        coherent: false,
    };
    for (len_bytes, expected) in [
        (0x98, Error::RegisterWindow { device: "edu", need_bytes: 0x9C, have_bytes: 0x98 }),
        (
            0x9C,
            Error::WrongDevice {
                device: "edu",
                register: "identification",
                expected: 0xFFFF_00ED,
                found: u32::MAX,
            },
        ),
    ] {
        #[allow(unsafe_code, reason = "a port is a claim")]
        // SAFETY: it reaches nothing.
        let wired =
            unsafe { contigo::hw::Wired::new(Nothing(len_bytes), contigo::linux::Spin, port) };
        #[allow(unsafe_code, reason = "the kind of a window is a claim")]
        // SAFETY: a write to it goes nowhere.
        let opened = unsafe { Edu::<_, 28>::open(wired) };
        assert_eq!(opened.map(drop), Err(expected));
    }
}

/// Answers from a script, the last entry first.
#[derive(Clone)]
struct Scripted(Rc<RefCell<Vec<Option<IommuFault>>>>);

impl FaultWatch for Scripted {
    fn forget(&mut self) -> contigo::Result<()> {
        Ok(())
    }
    fn seen(&mut self, _wait_us: u32) -> contigo::Result<Option<IommuFault>> {
        Ok(self.0.borrow_mut().pop().flatten())
    }
}

#[test]
fn a_refused_access_is_an_error_in_the_log() {
    let board = SimBoard::new(16);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(4, 4096).unwrap();
    let device = SimDevice::with_model(&board, rig(&board), EduModel::<32>::new());
    let script = Scripted(Rc::default());
    #[allow(unsafe_code, reason = "the kind of a window is a claim")]
    // SAFETY: it is a simulated edu's, with 32 bits.
    let driver = unsafe { Edu::<_, 32, _>::watched(device.window().unwrap(), script.clone()) };
    let mut queue = Queue::new(driver.unwrap(), 1).unwrap();
    let fault = |write| IommuFault { event: 0x10, stream: 8, write, addr: 0x4000 };
    // The last answer comes first.
    for (answers, expected) in [
        (vec![Some(fault(false))], Err("a read that the IOMMU refused")),
        (vec![Some(fault(true)), None], Err("a write that the IOMMU refused")),
        (vec![None, None], Ok(())),
    ] {
        *script.0.borrow_mut() = answers;
        let ended = queue
            .run(
                [pool.take().unwrap().to_device(..64), pool.take().unwrap().from_device(..64)],
                &[],
                SECOND,
            )
            .map(drop)
            .map_err(|failed| failed.error);
        assert_eq!(
            ended,
            expected.map_err(|what| Error::Fault { device: "edu", status: 0x10, what })
        );
        assert!(queue.is_empty() && script.0.borrow().is_empty());
    }
}
