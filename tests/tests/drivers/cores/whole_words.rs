//! Masters read whole words of their bus: the rest of an operand's first and last word too. The
//! models do so, and an operand whose word is not all in its block is refused.
#![allow(unsafe_code, reason = "a master without a driver is a model of the test's")]

use crate::prelude::*;
use contigo::drivers::axi_cdma::AxiCdmaConfig;
use contigo::drivers::axi_dma::{AxiDmaConfig, Side};
use contigo::drivers::axi_dmac::DmacConfig;
use contigo::drivers::axi_mcdma::{McdmaConfig, Way};
use contigo::drivers::msgdma::{MsgdmaConfig, MsgdmaTransfer};
use contigo::sim::axi_cdma::AxiCdmaModel;
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::axi_dmac::{AxiDmacBuild, AxiDmacModel};
use contigo::sim::axi_mcdma::{McdmaModel, McdmaSpec};
use contigo::sim::msgdma::{MsgdmaBuild, MsgdmaModel};

/// In words of 4 bytes 3 are read beside them, in words of 8 bytes 7.
const ODD_BYTES: usize = 1001;

/// Memory of three buffers, the last of which ends with its block, and one for descriptors.
fn ground() -> (SimBoard, CpuBuf, Pool) {
    let board = SimBoard::new(12);
    let region = region(&board, 4096 + 3 * 1024);
    let (rings, pool) = (ring(&region), region.pool(3, 1024).unwrap());
    (board, rings, pool)
}

/// A job whose bytes arrive. No access counts as one to what was not handed over, and the words
/// were read to their ends.
fn reads_beside<D: Driver>(driver: D, pool: &Pool, board: &SimBoard, first: usize, bytes: u64) {
    let mut from = pool.take().unwrap();
    for (at, byte) in from.view_mut::<u8>().unwrap().iter_mut().enumerate() {
        *byte = u8::try_from(at % 251).unwrap();
    }
    let is_copy = driver.operands().len() == 2;
    let mut queue = Queue::new(driver, 1).unwrap();
    let from = from.to_device(first..ODD_BYTES);
    if is_copy {
        let operands = [from, pool.take().unwrap().from_device(..)];
        let [from, to] = queue.run(operands, &[], LIMIT).unwrap().buffers;
        let both = [from, to].map(|buf| buf.view_at::<u8>(..ODD_BYTES).unwrap().to_vec());
        assert_eq!(both[0], both[1]);
    } else {
        drop(queue.run([from], &[], LIMIT).unwrap());
    }
    clean(board);
    assert_eq!(board.counts().bytes_beside, bytes);
}

fn sink(board: &SimBoard) -> SimDevice<AxiDmaModel> {
    let spec = CoreSpec { stream: StreamConfig::sink(), ..CoreSpec::default() };
    SimDevice::<AxiDmaModel>::with_model(board, board.port(), AxiDmaModel::new(spec))
}

#[test]
fn axi_dma_sends_the_last_word_s_bytes_alone() {
    let (board, rings, pool) = ground();
    let device = sink(&board);
    let driver = device.window().unwrap();
    let driver = driver.channel(Side::Mm2s, AxiDmaConfig::default(), Some(rings)).unwrap();
    reads_beside(driver, &pool, &board, 0, 3);
    assert_eq!(device.model(|model| model.stream.counts).unwrap().sent_bytes, ODD_BYTES as u64);
}

#[test]
fn axi_mcdma_does() {
    let (board, rings, pool) = ground();
    let config = McdmaConfig { mm2s_dre: true, ..McdmaConfig::default() };
    let model = McdmaModel::new(McdmaSpec { config, streams: [StreamConfig::sink(); 2] });
    let device = SimDevice::<McdmaModel>::with_model(&board, board.port(), model);
    let core = device.window().unwrap().core().unwrap();
    reads_beside(core.channel(Way::Mm2s(0), rings).unwrap(), &pool, &board, 4, 3);
}

#[test]
fn axi_cdma_does() {
    let (board, _, pool) = ground();
    let window = SimDevice::<AxiCdmaModel>::new(&board, board.port()).window().unwrap();
    let driver = window.simple(AxiCdmaConfig::default()).unwrap();
    reads_beside(driver, &pool, &board, 0, 3);
}

#[test]
fn msgdma_does() {
    let (board, _, pool) = ground();
    let config = MsgdmaConfig { transfer: MsgdmaTransfer::Unaligned, ..MsgdmaConfig::default() };
    let model = MsgdmaModel::new(MsgdmaBuild { config, ..MsgdmaBuild::default() });
    let window =
        SimDevice::<MsgdmaModel>::with_model(&board, board.port(), model).window().unwrap();
    reads_beside(window.driver(config).unwrap(), &pool, &board, 0, 3);
}

#[test]
fn axi_dmac_does() {
    let (board, _, pool) = ground();
    let model = AxiDmacModel::new(AxiDmacBuild::default());
    let window =
        SimDevice::<AxiDmacModel>::with_model(&board, board.port(), model).window().unwrap();
    reads_beside(window.driver(DmacConfig::default()).unwrap(), &pool, &board, 0, 7);
}

/// Vivado builds buses of up to 1,024 bits, and a block here ends with a line of 64 bytes.
#[test]
fn wide_operand_at_blocks_end_is_refused() {
    let board = SimBoard::new(13);
    let region = region(&board, 4096 + 1024 + 64);
    let rings = ring(&region);
    let packet = region.alloc(1024 + 64, Align::PAGE).unwrap();
    let config = AxiDmaConfig { mm2s_data_bits: 1024, ..AxiDmaConfig::default() };
    let driver = sink(&board).window().unwrap().channel(Side::Mm2s, config, Some(rings)).unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let refused = queue.submit([packet.to_device(..1025)], &[]).unwrap_err();
    let its_last = region.base().raw() + 4096 + 1024 + 63;
    cases! {
        refused.error => Error::ReadsBeside { index: 0, word_bytes: 128, last, block_last, .. }
            if last == its_last + 64 && block_last == its_last,
    }
    assert_eq!(refused.to_string().matches("operand 0").count(), 1, "{refused}");
    let [packet] = refused.buffers.unwrap().map(|operand| operand.into_buf().unwrap());
    drop(queue.run([packet.to_device(..1024)], &[], LIMIT).unwrap());
}

/// Reads one word at the address that is written to its register.
#[derive(Debug, Default)]
struct Reader {
    word_bytes: usize,
    failed: bool,
}

// SAFETY: it drops what it reads.
unsafe impl Model for Reader {
    const WINDOW_BYTES: usize = 4;
    fn advance(&mut self, _: &mut SimBus<'_>) {}
    fn read32(&mut self, _: usize, _: &mut SimBus<'_>) -> u32 {
        self.failed.into()
    }
    fn write32(&mut self, _: usize, value: u32, bus: &mut SimBus<'_>) {
        self.failed = bus.read_words(DevAddr(value.into()), &mut [0], self.word_bytes).is_err();
    }
    fn irq_at_ns(&self) -> Option<u64> {
        None
    }
    fn reset(&mut self) {}
}

#[test]
fn word_reaching_past_memory_is_bus_error() {
    for (word_bytes, fails) in [(64, false), (128, true)] {
        let board = SimBoard::new(14);
        let region = region(&board, 1024 + 64);
        let device =
            SimDevice::with_model(&board, board.port(), Reader { word_bytes, failed: false });
        let buf = region.alloc(1024 + 64, Align::LINE).unwrap();
        // SAFETY: the model reads it at once.
        let held = unsafe {
            buf.hand_over(&board.port(), 32, 1024..1025, contigo::Direction::ToDevice).unwrap()
        };
        let window = device.window().unwrap();
        // SAFETY: as above.
        unsafe { window.write32(0, u32::try_from(held.slice().addr.0).unwrap()) };
        assert_eq!(window.read32(0), u32::from(fails));
        let counts = board.counts();
        assert_eq!((counts.unowned_accesses, counts.stray_accesses), (0, u64::from(fails)));
        drop(held);
    }
}
