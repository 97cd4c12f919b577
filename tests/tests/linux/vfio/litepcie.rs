//! LitePCIe's driver behind an IOMMU. Its jobs run over memory of the function, and the card gets
//! no byte that was not mapped for it.

use super::opened;
use contigo::{
    Align, Device, Error, Mmio, Port, Queue, Region, Result, Wait,
    drivers::litepcie::{Litepcie, LitepcieConfig, Side},
    linux::vfio::{Interrupt, VfioDevice},
    sim::SimBoard,
};
use contigo_testkit::{
    fake_vfio::{FakeVfio, Machine, Way},
    litepcie as manual,
};
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

const LIMIT: Duration = Duration::from_secs(2);

/// A design with 64-bit addresses.
pub(super) fn config() -> LitepcieConfig {
    LitepcieConfig { address_bits: 64, ..LitepcieConfig::default() }
}

/// A card with its loopback on. It reaches memory as its function does: through the IOMMU.
pub(super) struct Card {
    function: VfioDevice,
    kernel: FakeVfio,
    state: Mutex<State>,
    /// It works when a test calls `work`, and not when its table is written.
    waits: bool,
}

#[derive(Default)]
struct State {
    /// The writer, then the reader.
    lanes: [Lane; 2],
    between: VecDeque<u8>,
    /// Requests that the IOMMU refused.
    refused: u32,
}

#[derive(Default)]
struct Lane {
    enabled: bool,
    value: [u32; 2],
    table: VecDeque<(u64, usize)>,
    count: u32,
}

/// Its registers, for a driver or for the test.
pub(super) struct Bar<'c>(pub(super) &'c Card);

impl Card {
    fn new(function: VfioDevice, kernel: &FakeVfio) -> Self {
        Self { function, kernel: kernel.clone(), state: Mutex::default(), waits: false }
    }

    pub(super) fn that_waits(function: VfioDevice, kernel: &FakeVfio) -> Self {
        Self { waits: true, ..Self::new(function, kernel) }
    }

    /// Carries out what its tables have, and raises its interrupt.
    pub(super) fn work(&self) -> bool {
        self.state().work(&self.kernel);
        self.kernel.raise()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    /// Carries out what it can.
    fn work(&mut self, kernel: &FakeVfio) {
        let [writer, reader] = &mut self.lanes;
        while let Some((addr, len)) = reader.table.front().copied().filter(|_| reader.enabled) {
            let mut bytes = vec![0; len];
            if kernel.device_read(addr, &mut bytes).is_err() {
                // No answer: it waits for ever.
                self.refused += 1;
                reader.enabled = false;
                break;
            }
            self.between.extend(bytes);
            reader.table.pop_front();
            reader.count += 1;
        }
        while let Some((addr, len)) = writer
            .table
            .front()
            .copied()
            .filter(|(_, len)| writer.enabled && self.between.len() >= *len)
        {
            let bytes: Vec<u8> = self.between.drain(..len).collect();
            self.refused += u32::from(kernel.device_write(addr, &bytes).is_err());
            writer.table.pop_front();
            writer.count += 1;
        }
    }
}

// SAFETY: the registers are this card's, which one value owns.
unsafe impl Mmio for Bar<'_> {
    fn len_bytes(&self) -> usize {
        self.0.function.len_bytes()
    }
    fn read32(&self, offset: usize) -> u32 {
        let Some(at) = offset.checked_sub(manual::DMA0) else { return 0 };
        let state = self.0.state();
        let Some(lane) = state.lanes.get(at / manual::READER) else { return 0 };
        match at % manual::READER {
            0 => u32::from(lane.enabled) | 2,
            manual::LOOP_STATUS => lane.count,
            _ => 0,
        }
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        let Some(at) = offset.checked_sub(manual::DMA0) else { return };
        let mut state = self.0.state();
        let Some(lane) = state.lanes.get_mut(at / manual::READER) else { return };
        match at % manual::READER {
            0 => lane.enabled = value & 1 != 0,
            manual::VALUE => lane.value[0] = value,
            manual::WE => {
                let [control, low] = lane.value;
                lane.table.push_back((
                    u64::from(value) << 32 | u64::from(low),
                    (control & manual::LENGTH) as usize,
                ));
            }
            manual::FLUSH => (lane.table, lane.count) = (VecDeque::new(), 0),
            at if at == manual::VALUE + 4 => lane.value[1] = value,
            _ => {}
        }
        if !self.0.waits {
            state.work(&self.0.kernel);
        }
    }
}

impl Wait for Bar<'_> {
    fn now_us(&self) -> u64 {
        self.0.function.now_us()
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.0.function.wait_at_most(timeout_us)
    }
    fn arm_irq(&self) -> Result<Option<i32>> {
        self.0.function.arm_irq()
    }
}

// SAFETY: the card reaches memory as the function does.
unsafe impl Device for Bar<'_> {
    fn port(&self) -> &Port {
        self.0.function.port()
    }
}

#[test]
fn jobs_run_over_memory_of_the_function() {
    for way in [Way::Group, Way::Iommufd] {
        let (kernel, vfio) = opened(Machine { bar_bytes: 0x1_0000, ..Machine::with(way) });
        let board = SimBoard::new(1);
        let elsewhere = Region::new(board.memory(1 << 16).unwrap()).unwrap();
        let region = Region::new(vfio.memory(1 << 20).unwrap()).unwrap();
        let pool = region.pool(8, 4096).unwrap();
        let card = Card::new(VfioDevice::open(&vfio, 0, Interrupt::Polled).unwrap(), &kernel);
        // SAFETY: the card is one with LitePCIe, and answers at once.
        let driver = unsafe { Litepcie::open(Bar(&card), Side::Loopback, config()) }.unwrap();
        let mut queue = Queue::new(driver, 4).unwrap();
        for round in 0..50_u8 {
            for job in 0..3 {
                let mut from = pool.take().unwrap();
                from.view_mut::<u8>().unwrap().fill(round ^ job << 6);
                queue
                    .submit([from.to_device(..2048), pool.take().unwrap().from_device(..)], &[])
                    .unwrap();
            }
            for job in 0..3 {
                let [_, to] = queue.wait(LIMIT).unwrap().unwrap().buffers;
                assert!(
                    to.view_at::<u8>(..2048).unwrap().iter().all(|byte| *byte == round ^ job << 6)
                );
            }
        }
        // Memory of another machine is refused before a register is written.
        let [from, to] = [0, 1].map(|_| elsewhere.alloc(4096, Align::PAGE).unwrap());
        let refused = queue
            .submit([from.to_device(..), to.from_device(..)], &[])
            .map_err(|refused| refused.error)
            .err();
        assert!(matches!(refused, Some(Error::WrongBus { .. })), "{refused:?}");
        drop(queue);
        assert_eq!((pool.taken(), card.state().refused), (0, 0));
        drop((card, pool));
    }
}

#[test]
fn the_iommu_refuses_what_was_not_mapped() {
    let (kernel, vfio) = opened(Machine { bar_bytes: 0x1_0000, ..Machine::default() });
    let region = Region::new(vfio.memory(1 << 16).unwrap()).unwrap();
    let pool = region.pool(2, 4096).unwrap();
    let card = Card::new(VfioDevice::open(&vfio, 0, Interrupt::Polled).unwrap(), &kernel);
    // SAFETY: as above.
    let driver = unsafe { Litepcie::open(Bar(&card), Side::Reader, config()) }.unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    queue.submit([pool.take().unwrap().to_device(..)], &[]).unwrap();
    assert!(queue.wait::<1>(LIMIT).unwrap().is_some());
    // A descriptor that no driver wrote: the card reads nothing, and its job would never end.
    let past = region.base().raw() + region.len_bytes() as u64;
    let reader = manual::DMA0 + manual::READER;
    #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
    let words = [
        (manual::VALUE, 4096),
        (manual::VALUE + 4, past as u32),
        (manual::WE, (past >> 32) as u32),
    ];
    for (at, value) in words {
        // SAFETY: the IOMMU refuses the address, which is this test's purpose.
        unsafe { Bar(&card).write32(reader + at, value) };
    }
    let seen = |state: MutexGuard<'_, State>| (state.refused, state.between.len());
    assert_eq!(seen(card.state()), (1, 4096), "nothing was read");
    queue.submit([pool.take().unwrap().to_device(..)], &[]).unwrap();
    assert!(queue.wait::<1>(Duration::from_millis(5)).unwrap().is_none(), "the card says nothing");
    queue.clear().unwrap();
    assert_eq!(pool.taken(), 0);
}
