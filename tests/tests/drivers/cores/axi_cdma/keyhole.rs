//! One side at an address that does not move: a FIFO's, which gives back what it gets.

use super::*;
use contigo::drivers::axi_cdma::AxiCdmaKeyhole;

type Queued = Queue<AxiCdmaKeyhole<SimWindow<AxiCdmaModel>>>;

fn open(
    device: &SimDevice<AxiCdmaModel>,
    config: AxiCdmaConfig,
    at: Keyhole,
    own: Option<CpuBuf>,
) -> Queued {
    let jobs = config.depth.unwrap_or(1);
    Queue::new(device.window().unwrap().keyhole(config, at, own).unwrap(), jobs).unwrap()
}

#[test]
fn bytes_go_through_a_fifo_and_come_back() {
    for (sg, data_bits) in [(false, 32), (true, 64)] {
        let (board, region, pool) = bench(1, 3, 4096);
        let device = core(&board, AxiCdmaSpec::default());
        let config = AxiCdmaConfig { data_bits, length_bits: 10, depth: Some(1), ..DEFAULT };
        let own = || sg.then(|| ring(&region));
        let mut sent = vec![0; 960];
        fastrand::Rng::with_seed(1).fill(&mut sent);
        let mut from = pool.take().unwrap();
        from.copy_from_slice(&sent).unwrap();
        let mut writer = open(&device, config, Keyhole::Writes(FIFO_ADDR), own());
        let [from] = writer.run([from.to_device(..960)], &[], LIMIT).unwrap().buffers;
        assert_eq!(from.view_at::<u8>(..960).unwrap(), sent, "nothing writes it");
        drop(writer);

        let mut reader = open(&device, config, Keyhole::Reads(FIFO_ADDR), own());
        let [to] = reader.run(receives(&pool, ..960), &[], LIMIT).unwrap().buffers;
        assert_eq!(to.view_at::<u8>(..960).unwrap(), sent);
        // It is empty now: a read waits, and its time limit ends it.
        let failed = reader.run(receives(&pool, ..64), &[], Duration::from_millis(1)).unwrap_err();
        let timeout = Error::Timeout { timeout_us: 1_000 };
        assert_eq!((failed.error, failed.buffers.is_some()), (timeout, true));
        drop(reader);
        // The FIFO is no memory.
        clean(&board);
    }
}

/// A transfer that is longer than its length register holds stays at the address in each piece.
#[test]
fn keyhole_jobs_and_pieces_share_address() {
    let (board, region, pool) = bench(1, 3, 1024);
    let device = core(&board, AxiCdmaSpec::default());
    let config = AxiCdmaConfig { length_bits: 8, depth: Some(3), ..DEFAULT };
    let mut queue = open(&device, config, Keyhole::Writes(FIFO_ADDR), Some(ring(&region)));
    for byte in 0..3 {
        queue.give([filled(&pool, byte).to_device(..600)]);
    }
    for _ in 0..3 {
        let _ = queue.end::<1>();
    }
    drop(queue);
    let mut queue = open(&device, config, Keyhole::Reads(FIFO_ADDR), Some(ring(&region)));
    for _ in 0..3 {
        queue.give(receives(&pool, ..600));
    }
    for byte in 0..3 {
        assert_eq!(queue.end::<1>().buffers[0].view_at::<u8>(..600).unwrap(), [byte; 600]);
    }
}

#[test]
fn keyhole_needs_whole_words_and_its_address() {
    let (board, _, pool) = bench(1, 1, 4096);
    let device = core(&board, AxiCdmaSpec::default());
    let mut queue = open(&device, DEFAULT, Keyhole::Writes(FIFO_ADDR + 0x1000), None);
    cases! {
        queue.refuses(sends(&pool, ..62), &[]) => Error::Argument { value: 62, multiple_of: 4, .. },
        queue.run(sends(&pool, ..64), &[], LIMIT).unwrap_err().error
            => Error::FaultAt { what, .. } if what.starts_with("DMADecErr"),
    }
}
