//! The guide's program for tokio, with a card that raises its interrupt later.

#[allow(clippy::all, unsafe_code, reason = "quoted by the guide")]
#[path = "../../../../docs/examples/event_loop.rs"]
mod program;

use super::{
    litepcie::{Bar, Card, config},
    opened,
};
use contigo::{
    Queue, Region,
    drivers::litepcie::{Litepcie, LitepcieConfig, Side},
    linux::vfio::{Interrupt, VfioDevice},
};
use contigo_testkit::fake_vfio::Machine;
use std::{thread, time::Duration};

#[test]
fn event_loop_of_the_guide_takes_every_end() {
    let (kernel, vfio) =
        opened(Machine { bar_bytes: 0x1_0000, irqs: [1, 1, 1], ..Machine::default() });
    let region = Region::new(vfio.memory(1 << 20).unwrap()).unwrap();
    let pool = region.pool(8, 4096).unwrap();
    let card = Card::that_waits(VfioDevice::open(&vfio, 0, Interrupt::Msi).unwrap(), &kernel);
    // Its writes are in memory when it counts them, so that an end comes with its interrupt.
    // SAFETY: the card is one with LitePCIe.
    let driver = unsafe {
        Litepcie::open(Bar(&card), Side::Loopback, LitepcieConfig { ordered: true, ..config() })
    }
    .unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    for job in 0..3_u8 {
        let mut from = pool.take().unwrap();
        from.view_mut::<u8>().unwrap().fill(job);
        queue.submit([from.to_device(..2048), pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    let mut ended = Vec::new();
    let looked = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            card.work()
        });
        let runtime = ::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let all = program::until_empty(&mut queue, |[_, to]| {
            ended.push(to.view_at::<u8>(..1).unwrap()[0])
        });
        // The program has no end where no interrupt and no look finds the ends.
        let limit = Duration::from_secs(20);
        runtime.block_on(async { ::tokio::time::timeout(limit, all).await }).unwrap().unwrap();
        worker.join().unwrap()
    });
    assert!(looked, "the interrupt was on");
    assert_eq!((ended, pool.taken()), (vec![0, 1, 2], 0));
}
