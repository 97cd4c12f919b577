//! Compares the driver's register table with the model's, and tests registers at their limits.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unsafe_code,
    reason = "a test that panics has failed; registers that nothing drives are written"
)]

use super::{AxiDmaModel, CoreSpec, manual};
use crate::driver_regs::axi_dma as regs;
use crate::{
    SimBoard, SimDevice,
    stream::{StreamConfig, StreamEnd},
};
use contigo_core::{
    hw::Mmio,
    mem::Region,
    types::{Align, DevAddr, Direction},
};

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
    let drivers = [
        regs::DMACR.offset(),
        regs::DMASR.offset(),
        regs::CURDESC.offset(),
        regs::CURDESC_HIGH.offset(),
        regs::TAILDESC.offset(),
    ];
    assert_eq!(
        drivers,
        [manual::DMACR, manual::DMASR, manual::CURDESC, manual::CURDESC_MSB, manual::TAILDESC]
    );
    let drivers = [
        regs::TAILDESC_HIGH.offset(),
        regs::ADDRESS.offset(),
        regs::ADDRESS_HIGH.offset(),
        regs::LENGTH.offset(),
        regs::CHANNEL_BYTES,
    ];
    assert_eq!(
        drivers,
        [
            manual::TAILDESC_MSB,
            manual::ADDR,
            manual::ADDR_MSB,
            manual::LENGTH,
            manual::S2MM - manual::MM2S
        ]
    );
    assert_eq!(
        (regs::CONTROL.offset(), regs::CURDESC_LOW.offset(), 2 * regs::CHANNEL_BYTES),
        (manual::DMACR, manual::CURDESC, manual::END)
    );
    assert_eq!(
        [regs::RUN, regs::RESET, regs::IRQ_ENABLE, regs::IRQS],
        [manual::CR_RS, manual::CR_RESET, manual::SR_IRQ_ALL, manual::SR_IRQ_ALL]
    );
    assert_eq!(
        [0xFF << regs::THRESHOLD_SHIFT, 0xFF << regs::DELAY_SHIFT],
        [manual::THRESHOLD, manual::DELAY]
    );
    let drivers = [regs::INTERNAL_ERROR, regs::SLAVE_ERROR, regs::DECODE_ERROR];
    assert_eq!(drivers, [manual::SR_DMA_INT_ERR, manual::SR_DMA_SLV_ERR, manual::SR_DMA_DEC_ERR]);
    let drivers = [regs::SG_INTERNAL_ERROR, regs::SG_SLAVE_ERROR, regs::SG_DECODE_ERROR];
    assert_eq!(drivers, [manual::SR_SG_INT_ERR, manual::SR_SG_SLV_ERR, manual::SR_SG_DEC_ERR]);
    assert_eq!((regs::ERRORS, regs::SG_INCLUDED), (manual::SR_ERRORS, manual::SR_SG_INCLUDED));
    assert_eq!([regs::HALTED, regs::IDLE], [manual::SR_HALTED, manual::SR_IDLE]);
    let known = regs::HALTED
        | regs::IDLE
        | regs::SG_INCLUDED
        | regs::ERRORS
        | regs::IRQS
        | manual::THRESHOLD
        | manual::DELAY;
    assert_eq!(
        (regs::RESERVED & known, regs::RESERVED | known),
        (0, u32::MAX),
        "each bit has a meaning, or none"
    );
    let drivers =
        [regs::BYTES_MASK, regs::TX_FIRST, regs::TX_LAST, regs::FIRST, regs::LAST, regs::COMPLETE];
    let [bytes, tx_sof, tx_eof] = [manual::BD_BYTES, manual::BD_TX_SOF, manual::BD_TX_EOF];
    assert_eq!(
        drivers,
        [bytes, tx_sof, tx_eof, manual::BD_RX_SOF, manual::BD_RX_EOF, manual::BD_CMPLT]
    );
    assert_eq!(regs::FAILED, manual::BD_INT_ERR | manual::BD_SLV_ERR | manual::BD_DEC_ERR);
    assert_eq!(
        [regs::BUFFER_AT, regs::CONTROL_AT, regs::STATUS_AT],
        [manual::BD_BUFFER, manual::BD_CONTROL, manual::BD_STATUS]
    );
    assert_eq!(regs::DESCRIPTOR_ALIGN_BYTES as u64, manual::BD_ALIGN);
    let words = regs::descriptor(0x1_2345_6780, DevAddr(0x2_0000_0040), 77);
    assert_eq!(
        (
            words[manual::BD_NEXT / 4],
            words[1],
            words[manual::BD_BUFFER / 4],
            words[3],
            words[manual::BD_CONTROL / 4]
        ),
        (0x2345_6780, 1, 0x40, 2, 77)
    );
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
