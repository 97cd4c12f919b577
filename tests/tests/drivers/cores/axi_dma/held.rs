//! An error of one channel holds the other's RS at 0 until a reset: which channel reports which
//! error, and that both work again.

use super::*;
use crate::regs::axi_dma as regs;
use contigo::JobError;

/// The core's register has 14 bits, and reads this length as 0.
const CUT_TO_0: usize = 1 << 14;
const S2MM: &str = "axi_dma s2mm";
const MM2S: &str = "axi_dma mm2s";

fn config() -> AxiDmaConfig {
    AxiDmaConfig { length_bits: 20, stop_us: 50, ..AxiDmaConfig::default() }
}

/// A receive that fails without a packet, or with the one of 1,000 bytes that is sent.
const fn room_that_fails(spec: CoreSpec) -> usize {
    if spec.sg { CUT_TO_0 } else { 512 }
}

#[track_caller]
fn is_of(error: Error, side: &str) {
    // The channel itself knows its descriptor's length.
    let is = matches!(error, Error::LengthCut { device, done_bytes: 0, .. } if device == side)
        || matches!(error, Error::Fault { device, what, .. }
            if device == side && what.starts_with("DMAIntErr"));
    assert!(is, "no error of {side}: {error}");
}

#[test]
fn failed_channels_sibling_names_its_error() {
    for spec in [DIRECT, WITH_SG] {
        let (board, region, pool) = bench(6, 8, CUT_TO_0);
        let device = core(&board, spec);
        let whole = device.window().unwrap().core().unwrap();
        let [mut send, mut receive] = pair(&whole, &region, config());
        macro_rules! both_work {
            () => {
                receive.give(receives(&pool, ..2000));
                send.give(sends(&pool, ..1000));
                assert_eq!(receive.end::<1>().bytes, Some(1000));
                let _ = send.end::<1>();
            };
        }
        // S2MM has failed when this returns, and no call has polled it since.
        macro_rules! receive_fails {
            () => {
                both_work!();
                receive.give(receives(&pool, ..room_that_fails(spec)));
                if !spec.sg {
                    send.give(sends(&pool, ..1000));
                }
                device.run_for(20).unwrap();
            };
        }
        macro_rules! receive_was_reset {
            () => {
                assert_eq!(receive.fails::<1>(), Error::EndedByReset { device: S2MM });
                assert_eq!(receive.drain::<1>(), 1);
            };
        }
        // The packet that was sent in between is there.
        macro_rules! receives_64 {
            () => {
                receive.give(receives(&pool, ..64));
                assert_eq!(receive.end::<1>().bytes, Some(64));
                let _ = send.end::<1>();
            };
        }

        // MM2S runs, and has a job.
        receive_fails!();
        if spec.sg {
            send.give(sends(&pool, ..1000));
        }
        is_of(send.fails::<1>(), S2MM);
        assert_eq!(send.drain::<1>(), 1);
        // Its stop was the reset: it works, also before S2MM is polled.
        send.give(sends(&pool, ..64));
        let _ = send.end::<1>();
        // S2MM's stop resets the core once more, and the FIFO with it: MM2S has no job.
        receive_was_reset!();

        // It has no job, and is stopped: it starts again at once.
        receive_fails!();
        send.clear().unwrap();
        send.give(sends(&pool, ..64));
        receive_was_reset!();
        receives_64!();

        // MM2S is stopped already when S2MM fails: the start of MM2S reports the error, once.
        both_work!();
        send.stop().unwrap();
        if spec.sg {
            receive.give(receives(&pool, ..room_that_fails(spec)));
            device.run_for(20).unwrap();
            is_of(send.refuses(sends(&pool, ..64), &[]), S2MM);
            send.give(sends(&pool, ..64));
            receive_was_reset!();
            receives_64!();
        }

        // The error is reported by its own channel, where that is polled first.
        receive_fails!();
        is_of(receive.fails::<1>(), S2MM);
        assert_eq!(receive.drain::<1>(), 1);
        send.clear().unwrap();
        both_work!();

        // The other way round.
        if spec.sg {
            send.give(sends(&pool, ..CUT_TO_0));
            device.run_for(20).unwrap();
            receive.give(receives(&pool, ..2000));
            is_of(receive.fails::<1>(), MM2S);
            assert_eq!(receive.drain::<1>(), 1);
            send.stop_one::<1>();
            both_work!();
        }
        clean(&board);
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
        let bits = regs::HALTED | regs::IDLE | regs::ERRORS | regs::IRQS;
        assert_eq!(read(Side::Mm2s, status) & bits, regs::HALTED);
        assert_eq!(read(Side::Mm2s, control) & regs::RUN, 0);
        // RS stays 0, and an error's bit cannot be cleared.
        write(Side::S2mm, status, u32::MAX);
        write(Side::Mm2s, control, regs::RUN);
    }
    write(Side::Mm2s, control, regs::RESET);
    device.run_for(5).unwrap();
    write(Side::Mm2s, control, regs::RUN);
    let (halted, errors) =
        (read(Side::Mm2s, status) & regs::HALTED, read(Side::S2mm, status) & regs::ERRORS);
    assert_eq!((halted, errors), (0, 0));
}

/// Memory answers a fetch of S2MM's with an error, before MM2S starts or after. The core then holds
/// MM2S at its halt, and the error is the fetch's, never "is its clock on".
#[test]
fn fetch_error_is_told_where_it_blocks_a_start() {
    for address_bits in [32, 64] {
        let mut names = 0;
        for fetch_error_at in 0..8 {
            let (board, region, pool) = bench(9, 4, 4096);
            let spec = CoreSpec { fetch_error_at: Some(fetch_error_at), address_bits, ..WITH_SG };
            let device = core(&board, spec);
            let mut queue = as_one(&device, &region, AxiDmaConfig { address_bits, ..config() });
            for _ in 0..10 {
                let ran = queue.run(copies(&pool, ..1000, ..), &[], LIMIT);
                let Err(JobError { cause: error, .. }) = ran else { continue };
                cases! {
                    error => Error::FaultAt { device: S2MM, what, .. }
                        | Error::Fault { device: S2MM, what, .. } if what.starts_with("SGSlvErr"),
                }
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
    let (board, region, pool) = bench(10, 4, CUT_TO_0);
    let device = core(&board, DIRECT);
    let whole = device.window().unwrap().core().unwrap();
    let [mut send, mut receive] = pair(&whole, &region, config());
    // The FIFO takes the packet, which is too long for its operand.
    send.give(sends(&pool, ..1000));
    let _ = send.end::<1>();
    receive.give(receives(&pool, ..room_that_fails(DIRECT)));
    device.run_for(20).unwrap();
    is_of(send.submit(sends(&pool, ..2000), &[]).unwrap_err().cause, S2MM);
}

/// Of two jobs the second's packet fails, while the first's answer comes: S2MM halts after that.
#[test]
fn both_as_one_name_the_failed_channel() {
    let (board, region, pool) = bench(8, 6, CUT_TO_0);
    let device = core(&board, WITH_SG);
    let mut queue = as_one(&device, &region, config());
    for _ in 0..3 {
        for len_bytes in [4096, CUT_TO_0] {
            queue.give(copies(&pool, ..len_bytes, ..8192));
        }
        assert_eq!(queue.end::<2>().bytes, Some(4096));
        device.run_for(20).unwrap();
        is_of(queue.fails::<2>(), MM2S);
        assert!(queue.take_back::<2>().unwrap().is_some());
    }
}
