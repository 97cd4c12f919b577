//! An error of one channel holds the other's RS at 0 until a reset: which channel reports which
//! error, and that both work again.

use super::{DIRECT, SOON, WITH_SG, core, ring};
use crate::regs::axi_dma as regs;
use contigo::{
    Error, JobError, Mmio, Queue, Region,
    drivers::axi_dma::{AxiDmaConfig, Side},
    sim::{SimBoard, axi_dma::CoreSpec},
};

/// The core's register has 14 bits, and reads this length as 0.
const CUT_TO_0: usize = 1 << 14;

fn config() -> AxiDmaConfig {
    AxiDmaConfig { length_bits: 20, stop_us: 50, ..AxiDmaConfig::default() }
}

/// A receive that fails without a packet, or with the one of 1,000 bytes that is sent.
const fn room_that_fails(spec: CoreSpec) -> usize {
    if spec.sg { CUT_TO_0 } else { 512 }
}

fn is_of(error: Error, side: &str) -> bool {
    // The channel itself knows its descriptor's length.
    matches!(error, Error::LengthCut { device, done_bytes: 0, .. } if device == side)
        || matches!(error, Error::Fault { device, what, .. }
            if device == side && what.starts_with("DMAIntErr"))
}

const S2MM: &str = "axi_dma s2mm";
const MM2S: &str = "axi_dma mm2s";

#[test]
fn failed_channels_sibling_names_its_error() {
    for spec in [DIRECT, WITH_SG] {
        let board = SimBoard::new(6);
        let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
        let pool = region.pool(8, CUT_TO_0).unwrap();
        let device = core(&board, spec);
        let whole = device.window().unwrap().core().unwrap();
        let open = |side| {
            // SAFETY: the model is built so, but for its lengths, of which it cuts off bits.
            Queue::new(unsafe { whole.channel(side, config(), Some(ring(&region))) }.unwrap(), 4)
                .unwrap()
        };
        let (mut send, mut receive) = (open(Side::Mm2s), open(Side::S2mm));
        macro_rules! give {
            (send $len:expr) => {
                send.submit([pool.take().unwrap().to_device(..$len)], &[])
                    .map_err(|refused| refused.error)
            };
            (receive $len:expr) => {
                receive
                    .submit([pool.take().unwrap().from_device(..$len)], &[])
                    .map_err(|refused| refused.error)
            };
        }
        macro_rules! both_work {
            () => {
                give!(receive 2000).unwrap();
                give!(send 1000).unwrap();
                assert_eq!(receive.wait::<1>(SOON).unwrap().unwrap().bytes, Some(1000));
                assert!(send.wait::<1>(SOON).unwrap().is_some());
            };
        }
        // S2MM has failed when this returns, and no call has polled it since.
        macro_rules! receive_fails {
            () => {
                both_work!();
                give!(receive room_that_fails(spec)).unwrap();
                if !spec.sg {
                    give!(send 1000).unwrap();
                }
                device.run_for(20).unwrap();
            };
        }
        macro_rules! receive_was_reset {
            () => {
                assert_eq!(
                    receive.wait::<1>(SOON).unwrap_err().error,
                    Error::EndedByReset { device: S2MM }
                );
                assert!(receive.take_back::<1>().unwrap().is_some());
            };
        }

        // MM2S runs, and has a job.
        receive_fails!();
        if spec.sg {
            give!(send 1000).unwrap();
        }
        let failed = send.wait::<1>(SOON).unwrap_err();
        assert!(is_of(failed.error, S2MM), "{}", failed.error);
        assert!(send.take_back::<1>().unwrap().is_some());
        // Its stop was the reset: it works, also before S2MM is polled.
        give!(send 64).unwrap();
        assert!(send.wait::<1>(SOON).unwrap().is_some());
        // S2MM's stop resets the core once more, and the FIFO with it: MM2S has no job.
        receive_was_reset!();

        // It has no job, and is stopped: it starts again at once.
        receive_fails!();
        send.stop().unwrap();
        while send.take_back::<1>().unwrap().is_some() {}
        give!(send 64).unwrap();
        receive_was_reset!();
        give!(receive 64).unwrap();
        assert_eq!(receive.wait::<1>(SOON).unwrap().unwrap().bytes, Some(64));
        assert!(send.wait::<1>(SOON).unwrap().is_some());

        // MM2S is stopped already when S2MM fails: the start of MM2S reports the error, once.
        both_work!();
        send.stop().unwrap();
        if spec.sg {
            give!(receive room_that_fails(spec)).unwrap();
            device.run_for(20).unwrap();
            let refused = give!(send 64).unwrap_err();
            assert!(is_of(refused, S2MM), "{refused}");
            give!(send 64).unwrap();
            receive_was_reset!();
            give!(receive 64).unwrap();
            assert_eq!(receive.wait::<1>(SOON).unwrap().unwrap().bytes, Some(64));
            assert!(send.wait::<1>(SOON).unwrap().is_some());
        }

        // The error is reported by its own channel, where that is polled first.
        receive_fails!();
        let failed = receive.wait::<1>(SOON).unwrap_err();
        assert!(is_of(failed.error, S2MM), "{}", failed.error);
        assert!(receive.take_back::<1>().unwrap().is_some());
        send.stop().unwrap();
        while send.take_back::<1>().unwrap().is_some() {}
        both_work!();

        // The other way round.
        if spec.sg {
            give!(send CUT_TO_0).unwrap();
            device.run_for(20).unwrap();
            give!(receive 2000).unwrap();
            let failed = receive.wait::<1>(SOON).unwrap_err();
            assert!(is_of(failed.error, MM2S), "{}", failed.error);
            assert!(receive.take_back::<1>().unwrap().is_some());
            send.stop().unwrap();
            assert!(send.take_back::<1>().unwrap().is_some());
            both_work!();
        }
        let counts = board.counts();
        assert_eq!(
            [counts.unowned_accesses, counts.stray_accesses, counts.evictions, counts.lost_writes],
            [0; 4]
        );
    }
}

/// The model against `axi_dma_register.vhd`.
#[test]
fn the_core_holds_both_at_0_until_its_reset() {
    let board = SimBoard::new(7);
    // No memory is there.
    let descriptor = 0xF000_0000;
    let device = core(&board, WITH_SG);
    let window = device.window().unwrap();
    let at = |side: Side| if side == Side::Mm2s { 0 } else { regs::CHANNEL_BYTES };
    let read = |side, register: usize| window.read32(at(side) + register);
    // SAFETY: there is no descriptor.
    let write =
        |side, register: usize, value| unsafe { window.write32(at(side) + register, value) };
    let (control, status, head, tail) =
        (regs::DMACR.offset(), regs::DMASR.offset(), 0x08, regs::TAILDESC.offset());
    for side in [Side::Mm2s, Side::S2mm] {
        write(side, head, descriptor);
        write(side, control, regs::RUN);
        assert_eq!(read(side, status) & regs::HALTED, 0);
    }
    write(Side::S2mm, tail, descriptor);
    device.run_for(5).unwrap();
    assert_ne!(read(Side::S2mm, status) & regs::SG_DECODE_ERROR, 0);
    for _ in 0..2 {
        assert_eq!(
            read(Side::Mm2s, status) & (regs::HALTED | regs::IDLE | regs::ERRORS | regs::IRQS),
            regs::HALTED
        );
        assert_eq!(read(Side::Mm2s, control) & regs::RUN, 0);
        // RS stays 0, and an error's bit cannot be cleared.
        write(Side::S2mm, status, u32::MAX);
        write(Side::Mm2s, control, regs::RUN);
    }
    write(Side::Mm2s, control, regs::RESET);
    device.run_for(5).unwrap();
    write(Side::Mm2s, control, regs::RUN);
    assert_eq!(
        (read(Side::Mm2s, status) & regs::HALTED, read(Side::S2mm, status) & regs::ERRORS),
        (0, 0)
    );
}

/// Memory answers a fetch of S2MM's with an error, before MM2S starts or after. The core then holds
/// MM2S at its halt, and the error is the fetch's, never "is its clock on".
#[test]
fn fetch_error_is_told_where_it_blocks_a_start() {
    for address_bits in [32, 64] {
        let mut names = 0;
        for fetch_error_at in 0..8 {
            let board = SimBoard::new(9);
            let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
            let pool = region.pool(4, 4096).unwrap();
            let spec = CoreSpec { fetch_error_at: Some(fetch_error_at), address_bits, ..WITH_SG };
            let device = core(&board, spec);
            let config = AxiDmaConfig { address_bits, ..config() };
            let driver = device.window().unwrap().driver(config, Some(ring(&region))).unwrap();
            let mut queue = contigo::Queue::new(driver, 1).unwrap();
            for _ in 0..10 {
                let operands =
                    [pool.take().unwrap().to_device(..1000), pool.take().unwrap().from_device(..)];
                let Err(JobError { cause: error, .. }) = queue.run(operands, &[], SOON) else {
                    continue;
                };
                let is_fetch = matches!(error,
                    Error::FaultAt { device: S2MM, what, .. } | Error::Fault { device: S2MM, what, .. }
                    if what.starts_with("SGSlvErr"));
                assert!(is_fetch, "fetch {fetch_error_at}: {error}");
                names += 1;
            }
        }
        assert_eq!(names, 8, "each error is reported once");
    }
}

/// In direct register mode a channel that its sibling's error halted takes no length: that is no
/// length that the core cut.
#[test]
fn length_lost_by_a_halt_is_the_siblings_error() {
    let board = SimBoard::new(10);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let pool = region.pool(4, CUT_TO_0).unwrap();
    let device = core(&board, DIRECT);
    let whole = device.window().unwrap().core().unwrap();
    // SAFETY: the model is built so, but for its lengths, of which it cuts off bits.
    let open =
        |side| Queue::new(unsafe { whole.channel(side, config(), None) }.unwrap(), 4).unwrap();
    let (mut send, mut receive) = (open(Side::Mm2s), open(Side::S2mm));
    // The FIFO takes the packet, which is too long for its operand.
    send.submit([pool.take().unwrap().to_device(..1000)], &[]).unwrap();
    assert!(send.wait::<1>(SOON).unwrap().is_some());
    receive.submit([pool.take().unwrap().from_device(..room_that_fails(DIRECT))], &[]).unwrap();
    device.run_for(20).unwrap();
    let refused = send.submit([pool.take().unwrap().to_device(..2000)], &[]).unwrap_err();
    assert!(is_of(refused.cause, S2MM), "{}", refused.cause);
}

/// Of two jobs the second's packet fails, while the first's answer comes: S2MM halts after that.
#[test]
fn both_as_one_name_the_failed_channel() {
    let board = SimBoard::new(8);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let pool = region.pool(6, CUT_TO_0).unwrap();
    let device = core(&board, WITH_SG);
    let driver = device.window().unwrap().driver(config(), Some(ring(&region))).unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    for _ in 0..3 {
        for len_bytes in [4096, CUT_TO_0] {
            queue
                .submit(
                    [
                        pool.take().unwrap().to_device(..len_bytes),
                        pool.take().unwrap().from_device(..8192),
                    ],
                    &[],
                )
                .unwrap();
        }
        assert_eq!(queue.wait::<2>(SOON).unwrap().unwrap().bytes, Some(4096));
        device.run_for(20).unwrap();
        let failed = queue.wait::<2>(SOON).unwrap_err();
        assert!(is_of(failed.error, MM2S), "{}", failed.error);
        assert!(queue.take_back::<2>().unwrap().is_some());
    }
}
