//! Compares the driver's register table with the model's, and tests registers at their limits.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unsafe_code,
    reason = "a test that panics has failed; registers that nothing drives are written"
)]

use super::{AxiDmaModel, CoreSpec, manual};
use crate::driver_regs::{agree, axi_dma as regs};
use crate::stream::{StreamConfig, StreamEnd};
use crate::{SimBoard, SimDevice};
use contigo_core::hw::Mmio;
use contigo_core::mem::Region;
use contigo_core::types::{Align, DevAddr, Direction};

fn core(board: &SimBoard, sg: bool) -> SimDevice<AxiDmaModel> {
    let stream = StreamConfig { end: StreamEnd::Loopback, fifo_bytes: 2048 };
    SimDevice::with_model(
        board,
        board.port(),
        AxiDmaModel::new(CoreSpec { sg, stream, ..CoreSpec::default() }),
    )
}

#[test]
fn the_drivers_registers_are_the_manuals() {
    agree(&[
        (regs::DMACR.offset(), manual::DMACR),
        (regs::CONTROL.offset(), manual::DMACR),
        (regs::DMASR.offset(), manual::DMASR),
        (regs::CURDESC.offset(), manual::CURDESC),
        (regs::CURDESC_LOW.offset(), manual::CURDESC),
        (regs::CURDESC_HIGH.offset(), manual::CURDESC_MSB),
        (regs::TAILDESC.offset(), manual::TAILDESC),
        (regs::TAILDESC_HIGH.offset(), manual::TAILDESC_MSB),
        (regs::ADDRESS.offset(), manual::ADDR),
        (regs::ADDRESS_HIGH.offset(), manual::ADDR_MSB),
        (regs::LENGTH.offset(), manual::LENGTH),
        (regs::CHANNEL_BYTES, manual::S2MM - manual::MM2S),
        (2 * regs::CHANNEL_BYTES, manual::END),
        (regs::BUFFER_AT, manual::BD_BUFFER),
        (regs::CONTROL_AT, manual::BD_CONTROL),
        (regs::STATUS_AT, manual::BD_STATUS),
    ]);
    let known = regs::HALTED
        | regs::IDLE
        | regs::SG_INCLUDED
        | regs::ERRORS
        | regs::IRQS
        | manual::THRESHOLD
        | manual::DELAY;
    agree(&[
        (regs::RUN, manual::CR_RS),
        (regs::RESET, manual::CR_RESET),
        (regs::IRQ_ENABLE, manual::SR_IRQ_ALL),
        (regs::IRQS, manual::SR_IRQ_ALL),
        (0xFF << regs::THRESHOLD_SHIFT, manual::THRESHOLD),
        (0xFF << regs::DELAY_SHIFT, manual::DELAY),
        (regs::INTERNAL_ERROR, manual::SR_DMA_INT_ERR),
        (regs::SLAVE_ERROR, manual::SR_DMA_SLV_ERR),
        (regs::DECODE_ERROR, manual::SR_DMA_DEC_ERR),
        (regs::SG_INTERNAL_ERROR, manual::SR_SG_INT_ERR),
        (regs::SG_SLAVE_ERROR, manual::SR_SG_SLV_ERR),
        (regs::SG_DECODE_ERROR, manual::SR_SG_DEC_ERR),
        (regs::ERRORS, manual::SR_ERRORS),
        (regs::SG_INCLUDED, manual::SR_SG_INCLUDED),
        (regs::HALTED, manual::SR_HALTED),
        (regs::IDLE, manual::SR_IDLE),
        (regs::RESERVED, !known), // each bit has a meaning, or none
        (regs::BYTES_MASK, manual::BD_BYTES),
        (regs::TX_FIRST, manual::BD_TX_SOF),
        (regs::TX_LAST, manual::BD_TX_EOF),
        (regs::FIRST, manual::BD_RX_SOF),
        (regs::LAST, manual::BD_RX_EOF),
        (regs::COMPLETE, manual::BD_CMPLT),
        (regs::FAILED, manual::BD_INT_ERR | manual::BD_SLV_ERR | manual::BD_DEC_ERR),
    ]);
    assert_eq!(regs::DESCRIPTOR_ALIGN_BYTES as u64, manual::BD_ALIGN);
    let words = regs::descriptor(0x1_2345_6780, DevAddr(0x2_0000_0040), 77);
    let [next, buffer, control] =
        [manual::BD_NEXT, manual::BD_BUFFER, manual::BD_CONTROL].map(|at| &words[at / 4..]);
    assert_eq!((next[0], next[1]), (0x2345_6780, 1));
    assert_eq!((buffer[0], buffer[1], control[0]), (0x40, 2, 77));
}

/// The core finds the second descriptor's error while the first one waits for a packet.
#[test]
fn descriptors_are_fetched_ahead() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let device = core(&board, true);
    let mut memory = region.alloc(4096, Align::PAGE).unwrap();
    let at = u32::try_from(region.dev_addr_of(&board.port(), memory.as_mut_ptr(), 4096).unwrap().0)
        .unwrap();
    let words = memory.view_mut::<u32>().unwrap();
    for (index, status) in [0, manual::BD_CMPLT].into_iter().enumerate() {
        let here = 16 * index;
        (words[here], words[here + 2], words[here + 6], words[here + 7]) =
            (at + 64, at + 1024, 64, status);
    }
    // SAFETY: the channel is reset before the memory is taken back.
    let memory =
        unsafe { memory.hand_over(&board.port(), 32, .., Direction::Bidirectional) }.unwrap();
    let window = device.window().unwrap();
    let write = |offset: usize, value: u32| {
        // SAFETY: the descriptors and their buffers are mapped for the device.
        unsafe { window.write32(manual::S2MM + offset, value) }
    };
    write(manual::CURDESC, at);
    write(manual::DMACR, manual::CR_RS);
    write(manual::TAILDESC, at + 64);
    device.run_for(2).unwrap();
    let status = window.read32(manual::S2MM + manual::DMASR);
    assert_eq!(
        (status & manual::SR_ERRORS, status & manual::SR_HALTED),
        (manual::SR_SG_INT_ERR, 0),
        "{status:#x}"
    );
    assert_eq!(window.read32(manual::S2MM + manual::CURDESC), at + 64);
    write(manual::DMACR, manual::CR_RESET);
    device.run_for(1).unwrap();
    drop(memory.into_cpu());
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// Registers of a channel without a driver.
#[test]
fn halted_channel_idles_reset_clears_both() {
    let board = SimBoard::new(1);
    for sg in [false, true] {
        let device = core(&board, sg);
        let window = device.window().unwrap();
        let status = |base: usize| window.read32(base + manual::DMASR);
        let write = |offset: usize, value: u32| {
            // SAFETY: no address written here has memory, and a halted channel moves nothing.
            unsafe { window.write32(offset, value) }
        };
        let after_power_on = [status(manual::MM2S), status(manual::S2MM)];
        assert!(
            after_power_on
                .iter()
                .all(|status| status & (manual::SR_HALTED | manual::SR_IDLE) == manual::SR_HALTED)
        );
        assert_eq!(after_power_on[0] & manual::SR_SG_INCLUDED != 0, sg);
        assert_eq!(window.read32(manual::DMACR), manual::THRESHOLD_RESET | manual::CR_ALWAYS);
        // While the channel is halted, a doorbell does nothing.
        write(manual::LENGTH, 64);
        write(manual::TAILDESC, 0x40);
        device.run_for(100).unwrap();
        assert_eq!([status(manual::MM2S), status(manual::S2MM)], after_power_on);
        // With RS set it is not halted, and not idle before its first job. A threshold of 0 sets 1.
        write(manual::DMACR, 7 << 16);
        write(manual::DMACR, manual::CR_RS);
        assert_eq!(status(manual::MM2S) & (manual::SR_HALTED | manual::SR_IDLE), 0);
        assert_eq!(
            window.read32(manual::DMACR),
            manual::THRESHOLD_RESET | manual::CR_ALWAYS | manual::CR_RS
        );
        // CURDESC does not change while the channel runs.
        write(manual::CURDESC, 0x80);
        assert_eq!(window.read32(manual::CURDESC), 0);
        // A reset of S2MM halts MM2S.
        write(manual::S2MM + manual::DMACR, manual::CR_RESET);
        assert_ne!(
            window.read32(manual::S2MM + manual::DMACR) & manual::CR_RESET,
            0,
            "it takes its time"
        );
        device.run_for(1).unwrap();
        assert_eq!([status(manual::MM2S), status(manual::S2MM)], after_power_on);
        assert_eq!(board.counts().stray_accesses, 0);
    }
}
