//! The memory that a driver keeps: what the device fetches is what the driver wrote last, on a bus with caches between.
#![allow(unsafe_code, clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, which is its purpose")]

use contigo::{
    Align, BaseAddr, Bus, DevAddr, Device, DriverBuf, Error, PhysAddr, Pool, Port, Region, SyncScope,
    mmio::{Pointer, ReadOnly, Register},
    sim::{Model, SimBoard, SimBus, SimDevice, SimSpec},
};

/// A device that fetches one word at a time.
#[derive(Default)]
struct Fetcher {
    addr: u64,
}

const ADDR: Pointer = Pointer::at(0);
const WORD: Register<ReadOnly> = Register::at(8);

// SAFETY: it only reads, one word at `addr`, while its register is read.
unsafe impl Model for Fetcher {
    const WINDOW_BYTES: usize = 16;
    fn advance(&mut self, _: &mut SimBus<'_>) {}
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        let mut word = [0; 4];
        match (offset, bus.read(DevAddr(self.addr), &mut word)) {
            (8, Ok(())) => u32::from_le_bytes(word),
            _ => u32::MAX,
        }
    }
    fn write32(&mut self, offset: usize, value: u32, _: &mut SimBus<'_>) {
        match offset {
            0 => self.addr = self.addr >> 32 << 32 | u64::from(value),
            4 => self.addr = self.addr & 0xFFFF_FFFF | u64::from(value) << 32,
            _ => {}
        }
    }
    fn irq_at_ns(&self) -> Option<u64> {
        None
    }
    fn reset(&mut self) {}
}

fn fetch(device: &impl Device, addr: DevAddr) -> u32 {
    // SAFETY: the fetcher only reads.
    unsafe { ADDR.write(device, addr) };
    WORD.read(device)
}

#[test]
fn the_device_fetches_what_was_written_last() {
    for port in [SimBoard::port, SimBoard::coherent_port] {
        let board = SimBoard::new(3);
        let device = SimDevice::with_model(&board, port(&board), Fetcher::default());
        let window = device.window().unwrap();
        let region = Region::new(board.memory(4096).unwrap()).unwrap();
        let mut program = DriverBuf::new(region.carve(256, Align::LINE).unwrap().into_buf(), window.port(), 32).unwrap();
        assert_eq!(program.len_bytes(), 256);
        for round in 0..100_u32 {
            let offset_bytes = (round as usize % 63) * 4;
            // SAFETY: the fetcher looks only when it is asked.
            unsafe { program.write(offset_bytes, &[round ^ 0xA5A5_0000, !round]).unwrap() };
            assert_eq!(fetch(&window, program.addr_at(offset_bytes)), round ^ 0xA5A5_0000, "round {round}");
            assert_eq!(fetch(&window, program.addr_at(offset_bytes + 4)), !round, "round {round}");
        }
    }
}

#[test]
fn words_that_do_not_fit_are_not_written() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    // Where the port snoops, no sync looks at the range once more.
    for port in [board.port(), board.coherent_port()] {
        let mut program = DriverBuf::new(region.carve(64, Align::LINE).unwrap().into_buf(), &port, 32).unwrap();
        // SAFETY: no device knows the address.
        let mut write = |offset_bytes, words: &[u32]| unsafe { program.write(offset_bytes, words) };
        assert_eq!(write(60, &[7]), Ok(()));
        assert_eq!(write(64, &[]), Ok(()));
        assert_eq!(write(60, &[1, 2]), Err(Error::OutOfRange { start: 60, end: 68, len_bytes: 64 }));
        assert_eq!(write(usize::MAX - 2, &[1]), Err(Error::OutOfRange { start: usize::MAX - 2, end: usize::MAX, len_bytes: 64 }));
        assert_eq!(write(58, &[1]), Err(Error::Misaligned { addr: 58, align_bytes: 4 }));
        // SAFETY: as above.
        let back = unsafe { program.release() }.into_cpu().unwrap();
        assert_eq!(back.view_at::<u32>(60..64).unwrap(), [7]);
    }
}

#[test]
fn a_buffer_that_does_not_suit_the_port_comes_back() {
    let board = SimBoard::new(1);
    let spec = |scope| SimSpec { len_bytes: 4096, scope, ..SimSpec::default() };
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let buf = |len_bytes| region.carve(len_bytes, Align::LINE).unwrap().into_buf();

    let refused = DriverBuf::new(buf(64), &Port { bus: Bus::Soc, ..board.port() }, 32).unwrap_err();
    assert_eq!(refused.error, Error::WrongBus { port: "sim-hp0", memory: board.bus() });
    let mut back = refused.returned;
    back.view_mut::<u8>().unwrap().fill(1); // the CPU's, as it was

    // A register with too few bits for where the block lies.
    let refused = DriverBuf::new(back, &board.port(), 24).unwrap_err();
    let BaseAddr::Phys(PhysAddr(base)) = region.base() else { panic!("the board's memory has physical addresses") };
    assert_eq!(refused.error, Error::Unreachable { port: "sim-hp0", addr: base, len_bytes: 64, first: 0, last: 0xFF_FFFF });

    // Half a line: what a device writes in the other half would be lost.
    let (half, _other) = buf(64).split_at(32).unwrap();
    let refused = DriverBuf::new(half, &board.port(), 32).unwrap_err();
    assert_eq!(refused.error, Error::SharedLine { start: 64, end: 96, line_bytes: 64 });
    let (_first, odd) = buf(64).split_at(7).unwrap();
    let refused = DriverBuf::new(odd, &board.coherent_port(), 32).unwrap_err();
    assert_eq!(refused.error, Error::Misaligned { addr: 135, align_bytes: 64 });

    let install = "something";
    let nobody = Region::new(board.memory_with(spec(SyncScope::None { install })).unwrap()).unwrap();
    let refused = DriverBuf::new(nobody.carve(64, Align::LINE).unwrap().into_buf(), &board.port(), 32).unwrap_err();
    assert_eq!(refused.error, Error::CannotSync { port: "sim-hp0", install });
}

#[test]
fn dropped_it_is_leaked_and_released_it_is_free_again() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let pool = Pool::<2>::new(region.carve(128, Align::LINE).unwrap(), 64).unwrap();
    let program = DriverBuf::new(pool.take().unwrap(), &board.port(), 32).unwrap();
    // SAFETY: no device knows the address.
    drop(unsafe { program.release() });
    drop(DriverBuf::new(pool.take().unwrap(), &board.port(), 32).unwrap());
    let _second = pool.take().unwrap();
    assert_eq!(pool.take().unwrap_err(), Error::NoSlots { slots: 2 }, "what was dropped without a word stays the device's");
}
