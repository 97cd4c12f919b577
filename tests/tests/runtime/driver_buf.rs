//! The memory that a driver keeps: the device fetches what the driver wrote last, and the driver
//! reads what the device wrote, on a bus with caches between.

use crate::gemm::region;
use contigo::hw::mmio::{Pointer, ReadOnly, ReadWrite, Register};
use contigo::mem::{DriverBuf, SyncScope};
use contigo::sim::{Model, SimBoard, SimBus, SimDevice, SimSpec};
use contigo::types::BaseAddr;
use contigo::{Align, Bus, DevAddr, Device, Error, PhysAddr, Port, Region};

/// A device that fetches or writes one word at a time.
#[derive(Default)]
struct Fetcher {
    addr: u64,
}

const ADDR: Pointer = Pointer::at(0);
const WORD: Register<ReadOnly> = Register::at(8);
/// A word that is written here goes to `addr`.
const STORE: Register<ReadWrite> = Register::at(12);

// SAFETY: it reads or writes one word at `addr`, while its register is read or written.
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
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            12 => bus.write(DevAddr(self.addr), &value.to_le_bytes()).unwrap(),
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

/// So many bytes of `region`, as the memory of a driver behind `port`.
fn own(region: &Region, len_bytes: usize, port: &Port) -> DriverBuf {
    DriverBuf::new(region.alloc(len_bytes, Align::LINE).unwrap(), port, 32).unwrap()
}

fn fetch(device: &impl Device, addr: DevAddr) -> u32 {
    // SAFETY: the fetcher only reads.
    unsafe { ADDR.write(device, addr) };
    WORD.read(device)
}

fn store(device: &impl Device, addr: DevAddr, value: u32) {
    // SAFETY: each test gives it addresses of a `DriverBuf` that it holds.
    unsafe {
        ADDR.write(device, addr);
        STORE.write(device, value);
    }
}

const BOTH: [fn(&SimBoard) -> Port; 2] = [SimBoard::port, SimBoard::coherent_port];

#[test]
fn each_side_reads_what_the_other_wrote_last() {
    for port in BOTH {
        let board = SimBoard::new(3);
        let device = SimDevice::with_model(&board, port(&board), Fetcher::default());
        let window = device.window().unwrap();
        let region = region(&board, 4096);
        let mut memory = own(&region, 256, window.port());
        assert_eq!(memory.len_bytes(), 256);
        let syncs = u64::from(!window.port().coherent);
        for round in 0..100_u32 {
            let offset_bytes = (round as usize % 63) * 4;
            let [first, second] = [0, 4].map(|more| memory.addr_at(offset_bytes + more));
            // SAFETY: the fetcher looks only when it is asked.
            unsafe { memory.write(offset_bytes, &[round ^ 0xA5A5_0000, !round]).unwrap() };
            let fetched = [fetch(&window, first), fetch(&window, second)];
            assert_eq!(fetched, [round ^ 0xA5A5_0000, !round], "round {round}");

            store(&window, first, round);
            store(&window, second, round + 7);
            let (before, mut words) = (region.stats().syncs, [0; 2]);
            memory.read(offset_bytes, &mut words).unwrap();
            assert_eq!(words, [round, round + 7], "round {round}");
            // One call at most for each line, none where it snoops.
            assert!((syncs..=2 * syncs).contains(&(region.stats().syncs - before)));
        }
        let counts = board.counts();
        assert_eq!([counts.unowned_accesses, counts.stray_accesses, counts.evictions], [0; 3]);
        assert_eq!(counts.lost_writes, 0);
    }
}

#[test]
fn words_that_are_not_there_are_refused() {
    let outside = |start: usize, bytes| Error::OutOfRange {
        start,
        end: start.saturating_add(bytes),
        len_bytes: 64,
    };
    // Where the port snoops, no sync looks at the range once more.
    for port in BOTH {
        let board = SimBoard::new(1);
        let (port, region) = (port(&board), region(&board, 4096));
        let mut memory = own(&region, 64, &port);
        // SAFETY: no device knows the address.
        let mut write = |offset_bytes, words: &[u32]| unsafe { memory.write(offset_bytes, words) };
        assert_eq!((write(60, &[7]), write(64, &[])), (Ok(()), Ok(())));
        assert_eq!(write(60, &[1, 2]), Err(outside(60, 8)));
        assert_eq!(write(usize::MAX - 2, &[1]), Err(outside(usize::MAX - 2, 4)));
        assert_eq!(write(58, &[1]), Err(Error::Misaligned { addr: 58, align_bytes: 4 }));
        let mut words = [5; 2];
        assert_eq!(memory.read(60, &mut words), Err(outside(60, 8)));
        assert_eq!(memory.read(usize::MAX - 2, &mut words), Err(outside(usize::MAX - 2, 8)));
        let odd = Error::Misaligned { addr: 54, align_bytes: 4 };
        assert_eq!(memory.read(54, &mut words), Err(odd));
        assert_eq!((memory.read(64, &mut []), words), (Ok(()), [5; 2]));
        // SAFETY: as above.
        let back = unsafe { memory.release() }.into_cpu().unwrap();
        assert_eq!(back.view_at::<u32>(60..64).unwrap(), [7]);
    }
}

/// The device completes descriptor 0 while the driver writes descriptor 1: is the status still
/// there? Returns it, and how many lines the board saw cleaned over it.
fn status_beside_a_new_descriptor(
    line: Align,
    distance: impl Fn(&DriverBuf) -> usize,
) -> (u32, u64) {
    const COMPLETE: u32 = 0x8000_1000;
    let board = SimBoard::new(5);
    let device = SimDevice::with_model(&board, board.port(), Fetcher::default());
    let window = device.window().unwrap();
    let spec = SimSpec { len_bytes: 4096, line, ..SimSpec::default() };
    let region = Region::new(board.memory_with(spec).unwrap()).unwrap();
    let mut ring = own(&region, 512, window.port());
    let (second, status_at) = (distance(&ring), ring.addr_at(8));
    // SAFETY: the device touches a word only when `store` asks it to, and never the one written.
    let mut write =
        |offset_bytes| unsafe { ring.write(offset_bytes, &[0x1000_0000, 4096, 0]).unwrap() };
    write(0);
    store(&window, status_at, COMPLETE);
    write(second);
    let mut status = [0];
    ring.read(8, &mut status).unwrap();
    (status[0], board.counts().lost_writes)
}

#[test]
fn descriptor_sharing_a_line_loses_its_status() {
    // 32-byte descriptors back to back.
    let lost = status_beside_a_new_descriptor(Align::LINE, |_| 32);
    let kept = status_beside_a_new_descriptor(Align::LINE, |ring| ring.stride(32));
    assert_eq!((lost, kept), ((0, 1), (0x8000_1000, 0)));
    // A line of 128 bytes (a Cortex-A's `CTR_EL0` may say so): 64 bytes for a descriptor are too
    // few.
    let long = Align::new(128).unwrap();
    assert_eq!(status_beside_a_new_descriptor(long, |_| 64), (0, 1));
    assert_eq!(status_beside_a_new_descriptor(long, |ring| ring.stride(64)), (0x8000_1000, 0));
}

#[test]
fn a_stride_is_whole_lines() {
    let board = SimBoard::new(1);
    let strides = |bytes: usize| {
        let line = Align::new(bytes).unwrap();
        let spec = SimSpec { len_bytes: 4096, line, ..SimSpec::default() };
        let region = Region::new(board.memory_with(spec).unwrap()).unwrap();
        let ring = own(&region, 512, &board.port());
        [0, 1, 32, 64, 65, usize::MAX].map(|descriptor_bytes| ring.stride(descriptor_bytes))
    };
    assert_eq!(strides(32), [32, 32, 32, 64, 96, usize::MAX]);
    assert_eq!(strides(64), [64, 64, 64, 64, 128, usize::MAX]);
    assert_eq!(strides(128), [128, 128, 128, 128, 128, usize::MAX]);
}

#[test]
fn buffer_unsuited_to_port_comes_back() {
    let board = SimBoard::new(1);
    let region = region(&board, 4096);
    let buf = |len_bytes| region.alloc(len_bytes, Align::LINE).unwrap();

    let error = |buf, port: &Port, bits| DriverBuf::new(buf, port, bits).unwrap_err().error;

    let refused = DriverBuf::new(buf(64), &Port { bus: Bus::Soc, ..board.port() }, 32).unwrap_err();
    assert_eq!(refused.error, Error::WrongBus { port: "sim-hp0", memory: board.bus() });
    let mut back = refused.into_returned();
    back.view_mut::<u8>().unwrap().fill(1); // the CPU's, as it was

    // A register with too few bits for where the block lies.
    let BaseAddr::Phys(PhysAddr(addr)) = region.base() else { panic!("physical") };
    let (port, last) = ("sim-hp0", 0xFF_FFFF);
    let beyond = Error::Unreachable { port, addr, len_bytes: 64, first: 0, last };
    assert_eq!(error(back, &board.port(), 24), beyond);

    // Half a line: what a device writes in the other half would be lost.
    let (half, _other) = buf(64).split_at(32).unwrap();
    let shared = Error::SharedLine { start: 0, end: 32, line_bytes: 64 };
    assert_eq!(error(half, &board.port(), 32), shared);
    let (_first, odd) = buf(64).split_at(7).unwrap();
    let misaligned = Error::Misaligned { addr: 71, align_bytes: 64 };
    assert_eq!(error(odd, &board.coherent_port(), 32), misaligned);

    let install = "something";
    let scope = SyncScope::None { install };
    let spec = SimSpec { len_bytes: 4096, scope, ..SimSpec::default() };
    let unsynced = Region::new(board.memory_with(spec).unwrap()).unwrap();
    let buf = unsynced.alloc(64, Align::LINE).unwrap();
    assert_eq!(error(buf, &board.port(), 32), Error::CannotSync { port, install });
}

#[test]
fn dropped_is_leaked_released_is_free() {
    let board = SimBoard::new(1);
    let region = region(&board, 4096);
    let pool = region.pool(2, 64).unwrap();
    let program = DriverBuf::new(pool.take().unwrap(), &board.port(), 32).unwrap();
    // SAFETY: no device knows the address.
    drop(unsafe { program.release() });
    drop(DriverBuf::new(pool.take().unwrap(), &board.port(), 32).unwrap());
    let _second = pool.take().unwrap();
    // A buffer that was dropped without a word stays the device's.
    assert_eq!(pool.take().unwrap_err(), Error::NoSlots { slots: 2 });
}
