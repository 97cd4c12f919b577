//! The model at its edges, by raw registers: what PG034 says of modes, of idleness, and of what is
//! ignored.

use super::*;
use contigo::drivers::axi_cdma::AxiCdmaKeyhole;

const CONTROL: usize = 0x00;
const STATUS: usize = 0x04;
const AFTER_RESET: (u32, u32) = (0x0001_0002, 0x0001_000A);

/// Writes a register.
fn write(window: &SimWindow<AxiCdmaModel>, offset: usize, value: u32) {
    // SAFETY: no memory of the board was handed to anybody, and none is in use.
    unsafe { window.write32(offset, value) }
}

fn both(window: &SimWindow<AxiCdmaModel>) -> (u32, u32) {
    (window.read32(CONTROL), window.read32(STATUS))
}

/// It may be in the mode in which BTT does nothing.
#[test]
fn opening_resets_the_core() {
    let (board, region, _) = bench(1, 1, 64);
    let device = core(&board, AxiCdmaSpec::default());
    let window = device.window().unwrap();
    let lent = || Lent::new(&window);
    let reads = Keyhole::Reads(FIFO_ADDR);
    for way in 0..3 {
        write(&window, CONTROL, regs::SG_MODE);
        // SAFETY: the model is built so, and has no memory at the FIFO's address.
        let opened: Box<dyn Driver + '_> = unsafe {
            match way {
                0 => Box::new(AxiCdma::simple(lent(), DEFAULT).unwrap()),
                1 => Box::new(AxiCdma::sg(lent(), DEFAULT, ring(&region)).unwrap()),
                _ => Box::new(AxiCdmaKeyhole::open(lent(), DEFAULT, reads, None).unwrap()),
            }
        };
        assert_eq!(both(&window), AFTER_RESET, "way {way}");
        drop(opened);
    }
}

#[test]
fn power_on_core_is_idle_and_tells_build() {
    let board = SimBoard::new(1);
    for (sg, expected) in [(true, AFTER_RESET), (false, (0x0001_0000, 0x0001_0002))] {
        let device = core(&board, AxiCdmaSpec { sg, ..AxiCdmaSpec::default() });
        let window = device.window().unwrap();
        assert_eq!(both(&window), expected);
        write(&window, CONTROL, regs::SG_MODE);
        let kept = window.read32(CONTROL) & regs::SG_MODE != 0;
        assert_eq!(kept, sg, "the bit stays 0 without the queue");
    }
}

/// The trap: a core in scatter-gather mode takes no simple transfer, and says nothing.
#[test]
fn btt_does_nothing_in_scatter_gather_mode() {
    let board = SimBoard::new(1);
    let device = core(&board, AxiCdmaSpec::default());
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
    let device = core(&board, AxiCdmaSpec::default());
    let window = device.window().unwrap();
    let errors = |also| window.read32(STATUS) & (regs::ERRORS | also);
    write(&window, regs::BTT.offset(), 0);
    assert_eq!(errors(0), regs::DMA_INTERNAL);
    write(&window, STATUS, u32::MAX);
    assert_eq!(errors(regs::IRQS), regs::DMA_INTERNAL, "writing 1 clears interrupts alone");
    write(&window, regs::BTT.offset(), 64);
    assert_eq!(window.read32(STATUS) & regs::IDLE, regs::IDLE, "it has halted");
    write(&window, CONTROL, regs::RESET);
    assert_eq!(window.read32(CONTROL) & regs::RESET, regs::RESET, "under way");
    device.run_for(2).unwrap();
    assert_eq!(both(&window), AFTER_RESET);
    write(&window, CONTROL, regs::SG_MODE);
    write(&window, 0x08, 0xFFFF_FF40);
    write(&window, 0x0C, 0xFF);
    // The address has more than 32 bits, so that the upper half is the doorbell.
    write(&window, 0x10, 0xFFFF_FF40);
    assert_eq!(errors(0), 0);
    write(&window, 0x14, 0xFF);
    assert_eq!(errors(0), regs::SG_DECODE);
    assert_eq!((window.read32(0x08), window.read32(0x0C)), (0xFFFF_FF40, 0xFF), "CURDESC names it");
    assert!(!window.port().coherent);
}
