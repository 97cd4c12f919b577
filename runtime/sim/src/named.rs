#![allow(unsafe_code, reason = "a model promises to touch no memory")]
//! Models by name: `sim:NAME` opens a board with one.
//!
//! A driver's model has the driver's name. A variant, such as a core with a camera before it, has a
//! name that begins with the driver's.

use crate::ap_ctrl::ApCtrlModel;
use crate::axi_cdma::AxiCdmaModel;
use crate::axi_dma::{AxiDmaModel, CoreSpec};
use crate::axi_dmac::{AxiDmacBuild, AxiDmacModel, Side};
use crate::axi_gate::GatedModel;
use crate::axi_mcdma::{McdmaModel, McdmaSpec};
use crate::axi_vdma::{AxiVdmaModel, AxiVdmaSpec};
use crate::litepcie::LitepcieModel;
use crate::msgdma::{MsgdmaBuild, MsgdmaModel};
use crate::pl330::{Pl330Model, Pl330Spec};
use crate::stream::{SourceConfig, StreamConfig};
use crate::zdma::ZdmaModel;
use crate::{AnyModel, Model, SimBus};
use contigo_core::types::near::Among;
use contigo_core::types::{Error, Result, lock};
use contigo_drivers::axi_mcdma::McdmaConfig;
use contigo_drivers::msgdma::{MsgdmaConfig, MsgdmaMode};
use spin::Mutex;

/// A name, and what makes the model.
type Row = (&'static str, fn() -> AnyModel);

/// A camera sends packets or frames of 4 KiB back to back at 400 MB/s, without end, through a FIFO
/// of 512 bytes. A sink takes whatever comes. A core opened by name has all length bits, and
/// realigns, so a driver for any design fits.
static BUILT_IN: &[Row] = &[
    // A chain, `copy(from, to, n)`; the same kernel for maps that say `ap_ctrl_hs`; and the first
    // one behind a gate, whose registers follow at 0x1_0000.
    ("ap_ctrl", || AnyModel::new(<ApCtrlModel>::default())),
    ("ap_ctrl_hs", || AnyModel::new(ApCtrlModel::copier_hs())),
    ("ap_ctrl_gated", || AnyModel::new(GatedModel::new(<ApCtrlModel>::default()))),
    ("axi_cdma", || AnyModel::new(AxiCdmaModel::default())),
    ("axi_dma", || axi_dma(CoreSpec::default())),
    // For the settings `channel=1`, and `channel=0`.
    ("axi_dma_camera", || axi_dma(CoreSpec::camera(SourceConfig::default(), FIFO_BYTES))),
    ("axi_dma_sink", || axi_dma(CoreSpec { stream: StreamConfig::sink(), ..CoreSpec::default() })),
    ("axi_dmac", || AnyModel::new(AxiDmacModel::default())),
    ("axi_dmac_camera", || axi_dmac([Side::Stream, Side::Memory], camera())),
    ("axi_dmac_sink", || axi_dmac([Side::Memory, Side::Stream], StreamConfig::sink())),
    ("axi_mcdma", || axi_mcdma(StreamConfig::default())),
    // For `channel=16` and `channel=17`, and `channel=0` and `channel=1`.
    ("axi_mcdma_camera", || axi_mcdma(camera())),
    ("axi_mcdma_sink", || axi_mcdma(StreamConfig::sink())),
    ("axi_vdma", || axi_vdma(StreamConfig::default())),
    // For `channel=1`, its frames 100 us apart, and `channel=0`.
    ("axi_vdma_camera", || {
        axi_vdma(StreamConfig::source(
            SourceConfig { gap_ns: 100_000, ..SourceConfig::default() },
            FIFO_BYTES,
        ))
    }),
    ("axi_vdma_sink", || axi_vdma(StreamConfig::sink())),
    ("litepcie", || AnyModel::new(LitepcieModel::default())),
    ("msgdma", || msgdma(MsgdmaConfig::default(), StreamConfig::default())),
    // For `mode=2,resp_at=0x40`, `prefetcher_at=0x60`, and `mode=1`.
    ("msgdma_camera", || {
        msgdma(
            MsgdmaConfig {
                mode: MsgdmaMode::Receive,
                resp_at: Some(0x40),
                ..MsgdmaConfig::default()
            },
            camera(),
        )
    }),
    ("msgdma_prefetcher", || {
        msgdma(
            MsgdmaConfig { prefetcher_at: Some(0x60), ..MsgdmaConfig::default() },
            StreamConfig::sink(),
        )
    }),
    ("msgdma_sink", || {
        msgdma(
            MsgdmaConfig { mode: MsgdmaMode::Send, ..MsgdmaConfig::default() },
            StreamConfig::sink(),
        )
    }),
    ("pl330", || AnyModel::new(Pl330Model::new(Pl330Spec::default()))),
    // Words that read back as they were written, for no driver.
    ("registers", || AnyModel::new(Words([0; WORDS_BYTES / 4]))),
    ("zdma", || AnyModel::new(ZdmaModel::default())),
];

const FIFO_BYTES: usize = 512;

fn camera() -> StreamConfig {
    StreamConfig::source(SourceConfig::default(), FIFO_BYTES)
}

fn axi_dma(spec: CoreSpec) -> AnyModel {
    AnyModel::new(AxiDmaModel::new(CoreSpec { length_bits: 26, ..spec }))
}

fn axi_dmac(sides: [Side; 2], stream: StreamConfig) -> AnyModel {
    AnyModel::new(AxiDmacModel::new(AxiDmacBuild { sides, stream, ..AxiDmacBuild::default() }))
}

fn axi_mcdma(stream: StreamConfig) -> AnyModel {
    let config = McdmaConfig { length_bits: 26, ..McdmaConfig::default() };
    AnyModel::new(McdmaModel::new(McdmaSpec { config, streams: [stream; 2] }))
}

fn axi_vdma(stream: StreamConfig) -> AnyModel {
    AnyModel::new(AxiVdmaModel::new(AxiVdmaSpec { stream, dre: true, ..AxiVdmaSpec::default() }))
}

fn msgdma(config: MsgdmaConfig, stream: StreamConfig) -> AnyModel {
    // The model sends write responses, whatever the setting says.
    let config = MsgdmaConfig { write_responses: true, ..config };
    AnyModel::new(MsgdmaModel::new(MsgdmaBuild { config, stream, ..MsgdmaBuild::default() }))
}

/// The most models that a program can register: as many as drivers.
pub(crate) const MAX_REGISTERED: usize = 32;

static REGISTERED: Mutex<heapless::Vec<Row, MAX_REGISTERED>> = Mutex::new(heapless::Vec::new());

/// Registers a model of the program's own until the process ends: `sim:NAME` opens a board with
/// one.
///
/// # Errors
/// [`Error::InUse`]: a model of that name exists. [`Error::TooMany`]: 32 were registered.
pub fn register(name: &'static str, model: fn() -> AnyModel) -> Result<()> {
    let mut registered = lock::acquire(&REGISTERED)?;
    if BUILT_IN.iter().chain(registered.iter()).any(|(known, _)| *known == name) {
        return Err(Error::InUse { errno: 0 });
    }
    registered
        .push((name, model))
        .map_err(|_| Error::TooMany { what: "registered models", most: MAX_REGISTERED as u64 })
}

/// Makes a new model called `name`.
///
/// # Errors
/// [`Error::NotFound`], with the most similar names.
pub fn named(name: &str) -> Result<AnyModel> {
    let registered = lock::acquire(&REGISTERED)?.clone();
    let row = BUILT_IN.iter().chain(&registered).find(|(known, _)| *known == name);
    let (_, model) = row.ok_or_else(|| Error::NotFound {
        what: "simulated device",
        among: Among::nearest(name, |each| each_name(each)),
    })?;
    Ok(model())
}

/// Calls `each` with the name of every model, the built-in ones first.
pub fn each_name(each: &mut dyn FnMut(&str)) {
    BUILT_IN.iter().for_each(|(name, _)| each(name));
    let registered =
        lock::acquire(&REGISTERED).map(|registered| registered.clone()).unwrap_or_default();
    registered.iter().for_each(|(name, _)| each(name));
}

/// Half of what Vivado gives a core by default, and more registers than one has.
const WORDS_BYTES: usize = 32 * 1024;

/// The registers of a core without a model: words that read back as they were written, 0 after
/// power-on. They start nothing, and have no interrupt.
struct Words([u32; WORDS_BYTES / 4]);

// SAFETY: it touches no memory.
unsafe impl Model for Words {
    const WINDOW_BYTES: usize = WORDS_BYTES;

    fn advance(&mut self, _: &mut SimBus<'_>) {}

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        self.0.get(offset / 4).copied().unwrap_or(0)
    }

    fn write32(&mut self, offset: usize, value: u32, _: &mut SimBus<'_>) {
        if let Some(word) = self.0.get_mut(offset / 4) {
            *word = value;
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self) {
        self.0.fill(0);
    }
}
