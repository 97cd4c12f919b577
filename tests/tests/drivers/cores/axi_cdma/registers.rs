//! The model at its edges, by raw registers: what PG034 says of modes, of idleness, and of what is
//! ignored.
#![allow(unsafe_code, reason = "registers without a driver")]

use super::DEFAULT;
use crate::regs::axi_cdma as regs;
use contigo::{
    Device, Mmio,
    drivers::axi_cdma::{AxiCdma, AxiCdmaKeyhole, Keyhole},
    sim::{
        SimBoard, SimDevice, SimWindow,
        axi_cdma::{AxiCdmaModel, AxiCdmaSpec, FIFO_ADDR},
    },
};
use contigo_testkit::lent::Lent;

/// It may be in the mode in which BTT does nothing.
#[test]
fn opening_resets_the_core() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let window = device.window().unwrap();
    for way in 0..3 {
        write(&window, CONTROL, regs::SG_MODE);
        let memory = board.memory(4096).unwrap();
        let region = contigo::Region::new(memory).unwrap();
        let descriptors = region.alloc(4096, contigo::Align::PAGE).unwrap();
        // SAFETY: the model is built so, and has no memory at the FIFO's address.
        unsafe {
            match way {
                0 => drop((
                    AxiCdma::simple(Lent::new(&window), DEFAULT).unwrap(),
                    assert_reset(&window),
                )),
                1 => drop((
                    AxiCdma::sg(Lent::new(&window), DEFAULT, descriptors).unwrap(),
                    assert_reset(&window),
                )),
                _ => {
                    let opened = AxiCdmaKeyhole::open(
                        Lent::new(&window),
                        DEFAULT,
                        Keyhole::Reads(FIFO_ADDR),
                        None,
                    );
                    drop((opened.unwrap(), assert_reset(&window)));
                }
            }
        }
    }
}

fn assert_reset(window: &SimWindow<AxiCdmaModel>) {
    assert_eq!((window.read32(CONTROL), window.read32(STATUS)), (0x0001_0002, 0x0001_000A));
}

/// Writes a register.
fn write(window: &SimWindow<AxiCdmaModel>, offset: usize, value: u32) {
    // SAFETY: no memory of the board was handed to anybody, and none is in use.
    unsafe { window.write32(offset, value) }
}

const CONTROL: usize = 0x00;
const STATUS: usize = 0x04;

#[test]
fn after_power_on_it_is_idle_and_says_what_is_built_in() {
    let board = SimBoard::new(1);
    for (sg, control, status) in
        [(true, 0x0001_0002, 0x0001_000A), (false, 0x0001_0000, 0x0001_0002)]
    {
        let device = SimDevice::with_model(
            &board,
            board.port(),
            AxiCdmaModel::new(AxiCdmaSpec { sg, ..AxiCdmaSpec::default() }),
        );
        let window = device.window().unwrap();
        assert_eq!((window.read32(CONTROL), window.read32(STATUS)), (control, status));
        write(&window, CONTROL, regs::SG_MODE);
        assert_eq!(
            window.read32(CONTROL) & regs::SG_MODE != 0,
            sg,
            "the bit stays 0 without the queue"
        );
    }
}

/// The trap: a core in scatter-gather mode takes no simple transfer, and says nothing.
#[test]
fn btt_does_nothing_in_scatter_gather_mode() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let window = device.window().unwrap();
    write(&window, CONTROL, regs::SG_MODE);
    write(&window, regs::BTT.offset(), 64);
    device.run_for(1_000).unwrap();
    assert_eq!(window.read32(STATUS) & (regs::IDLE | regs::IOC | regs::ERRORS), regs::IDLE);
    // And TAILDESC nothing in simple mode.
    write(&window, CONTROL, 0);
    write(&window, 0x10, 0x40);
    write(&window, 0x14, 0);
    assert_eq!((window.read32(0x10), window.read32(STATUS) & regs::IDLE), (0, regs::IDLE));
}

#[test]
fn reset_clears_internal_and_decode_errors() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let window = device.window().unwrap();
    write(&window, regs::BTT.offset(), 0);
    assert_eq!(window.read32(STATUS) & regs::ERRORS, regs::DMA_INTERNAL);
    write(&window, STATUS, u32::MAX);
    assert_eq!(
        window.read32(STATUS) & (regs::ERRORS | regs::IRQS),
        regs::DMA_INTERNAL,
        "writing 1 clears interrupts alone"
    );
    write(&window, regs::BTT.offset(), 64);
    assert_eq!(window.read32(STATUS) & regs::IDLE, regs::IDLE, "it has halted");
    write(&window, CONTROL, regs::RESET);
    assert_eq!(window.read32(CONTROL) & regs::RESET, regs::RESET, "under way");
    device.run_for(2).unwrap();
    assert_eq!((window.read32(CONTROL), window.read32(STATUS)), (0x0001_0002, 0x0001_000A));
    write(&window, CONTROL, regs::SG_MODE);
    write(&window, 0x08, 0xFFFF_FF40);
    write(&window, 0x0C, 0xFF);
    // The address has more than 32 bits, so that the upper half is the doorbell.
    write(&window, 0x10, 0xFFFF_FF40);
    assert_eq!(window.read32(STATUS) & regs::ERRORS, 0);
    write(&window, 0x14, 0xFF);
    assert_eq!(window.read32(STATUS) & regs::ERRORS, regs::SG_DECODE);
    assert_eq!((window.read32(0x08), window.read32(0x0C)), (0xFFFF_FF40, 0xFF), "CURDESC names it");
    assert!(!window.port().coherent);
}
