//! Masters read whole words of their bus: the rest of an operand's first and last word too. The
//! models do so, and an operand whose word is not all in its block is refused.
#![allow(unsafe_code, reason = "a master without a driver is a model of the test's")]

use contigo::{
    Align, CpuBuf, Error, Mmio, Queue, Region,
    drivers::{
        axi_cdma::AxiCdmaConfig,
        axi_dma::{AxiDmaConfig, Side},
        axi_dmac::DmacConfig,
        axi_mcdma::{McdmaConfig, Way},
        msgdma::{MsgdmaConfig, MsgdmaTransfer},
    },
    sim::{
        Model, SimBoard, SimBus, SimDevice,
        axi_cdma::AxiCdmaModel,
        axi_dma::{AxiDmaModel, CoreSpec},
        axi_dmac::{AxiDmacBuild, AxiDmacModel},
        axi_mcdma::{McdmaModel, McdmaSpec},
        msgdma::{MsgdmaBuild, MsgdmaModel},
        stream::StreamConfig,
    },
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(5);
/// In words of 4 bytes 3 are read beside them, in words of 8 bytes 7.
const ODD_BYTES: usize = 1001;

/// Memory of three buffers, the last of which ends with its block, and one for descriptors.
macro_rules! ground {
    ($board:ident, $rings:ident, $take:ident) => {
        let $board = SimBoard::new(12);
        let region = Region::new($board.memory(4096 + 3 * 1024).unwrap()).unwrap();
        let $rings = region.alloc(4096, Align::PAGE).unwrap();
        let pool = region.pool(3, 1024).unwrap();
        let $take = || -> CpuBuf {
            let mut buf = pool.take().unwrap();
            for (at, byte) in buf.view_mut::<u8>().unwrap().iter_mut().enumerate() {
                *byte = u8::try_from(at % 251).unwrap();
            }
            buf
        };
    };
}

/// No access counts as one to what was not handed over, and the words were read to their ends.
fn reads_beside(board: &SimBoard, bytes: u64) {
    let counts = board.counts();
    assert_eq!(
        (counts.unowned_accesses, counts.stray_accesses, counts.bytes_beside),
        (0, 0, bytes)
    );
}

#[test]
fn axi_dma_sends_the_last_word_s_bytes_alone() {
    ground!(board, rings, take);
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiDmaModel::new(CoreSpec { stream: StreamConfig::sink(), ..CoreSpec::default() }),
    );
    let driver =
        device.window().unwrap().channel(Side::Mm2s, AxiDmaConfig::default(), Some(rings)).unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    drop(queue.run([take().to_device(..ODD_BYTES)], &[], LIMIT).unwrap());
    assert_eq!(device.model(|model| model.stream.counts()).unwrap().sent_bytes, ODD_BYTES as u64);
    reads_beside(&board, 3);
}

#[test]
fn axi_mcdma_does() {
    ground!(board, rings, take);
    let config = McdmaConfig { mm2s_dre: true, ..McdmaConfig::default() };
    let spec = McdmaSpec { config, streams: [StreamConfig::sink(); 2] };
    let device = SimDevice::with_model(&board, board.port(), McdmaModel::new(spec));
    let core = device.window().unwrap().core().unwrap();
    let mut queue = Queue::new(core.channel(Way::Mm2s(0), rings).unwrap(), 1).unwrap();
    drop(queue.run([take().to_device(4..ODD_BYTES)], &[], LIMIT).unwrap());
    reads_beside(&board, 3);
}

#[test]
fn axi_cdma_does() {
    ground!(board, rings, take);
    drop(rings);
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let mut queue =
        Queue::new(device.window().unwrap().simple(AxiCdmaConfig::default()).unwrap(), 1).unwrap();
    let [_, to] = queue
        .run([take().to_device(..ODD_BYTES), take().from_device(..)], &[], LIMIT)
        .unwrap()
        .buffers;
    assert!(
        to.view_at::<u8>(..ODD_BYTES)
            .unwrap()
            .iter()
            .enumerate()
            .all(|(at, &byte)| usize::from(byte) == at % 251)
    );
    reads_beside(&board, 3);
}

#[test]
fn msgdma_does() {
    ground!(board, rings, take);
    drop(rings);
    let config = MsgdmaConfig { transfer: MsgdmaTransfer::Unaligned, ..MsgdmaConfig::default() };
    let build = MsgdmaBuild { config, ..MsgdmaBuild::default() };
    let device = SimDevice::with_model(&board, board.port(), MsgdmaModel::new(build));
    let mut queue = Queue::new(device.window().unwrap().driver(config).unwrap(), 1).unwrap();
    drop(queue.run([take().to_device(..ODD_BYTES), take().from_device(..)], &[], LIMIT).unwrap());
    reads_beside(&board, 3);
}

#[test]
fn axi_dmac_does() {
    ground!(board, rings, take);
    drop(rings);
    let device =
        SimDevice::with_model(&board, board.port(), AxiDmacModel::new(AxiDmacBuild::default()));
    let mut queue =
        Queue::new(device.window().unwrap().driver(DmacConfig::default()).unwrap(), 1).unwrap();
    drop(queue.run([take().to_device(..ODD_BYTES), take().from_device(..)], &[], LIMIT).unwrap());
    reads_beside(&board, 7);
}

/// Vivado builds buses of up to 1,024 bits, and a block here ends with a line of 64 bytes.
#[test]
fn a_wide_bus_s_operand_at_the_end_of_its_block_is_refused() {
    let board = SimBoard::new(13);
    let region = Region::new(board.memory(4096 + 1024 + 64).unwrap()).unwrap();
    let rings = region.alloc(4096, Align::PAGE).unwrap();
    let packet = region.alloc(1024 + 64, Align::PAGE).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiDmaModel::new(CoreSpec { stream: StreamConfig::sink(), ..CoreSpec::default() }),
    );
    let config = AxiDmaConfig { mm2s_data_bits: 1024, ..AxiDmaConfig::default() };
    let driver = device.window().unwrap().channel(Side::Mm2s, config, Some(rings)).unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let refused = queue.submit([packet.to_device(..1025)], &[]).unwrap_err();
    let block_last = region.base().raw() + 4096 + 1024 + 63;
    assert!(
        matches!(refused.error,
            Error::ReadsBeside { index: 0, word_bytes: 128, last, block_last: end, .. }
            if last == block_last + 64 && end == block_last),
        "{refused}"
    );
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
        self.failed =
            bus.read_words(contigo::DevAddr(value.into()), &mut [0], self.word_bytes).is_err();
    }
    fn irq_at_ns(&self) -> Option<u64> {
        None
    }
    fn reset(&mut self) {}
}

#[test]
fn a_word_that_reaches_past_memory_is_a_bus_error() {
    for (word_bytes, fails) in [(64, false), (128, true)] {
        let board = SimBoard::new(14);
        let region = Region::new(board.memory(1024 + 64).unwrap()).unwrap();
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
