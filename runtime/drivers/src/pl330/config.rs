//! The channel and event that a driver uses, and a controller as its registers describe it.

use super::microcode::Core;
use super::regs;
use crate::checks::{has_window, within};
use contigo_core::hw::Device;
use contigo_core::types::{Error, Result};

/// The controller's resources that a driver uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pl330Config {
    /// The channel, from 0.
    pub channel: u8,
    /// The event, from 0, that signals a job's end, and its interrupt. uio_pdrv_genirq delivers the
    /// first interrupt of the device tree's node, which must be this event's: on Zynq-7000 event 0
    /// is `<0 14 4>`.
    pub event: u8,
}

/// A controller, as its registers describe it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) all_channels: u32,
    /// How many channels have drivers.
    pub(super) channels: u32,
    events: u32,
    bus_bytes: u32,
    buffer_words: u32,
    nonsecure: bool,
    /// CR3.
    nonsecure_events: u32,
    barriers: bool,
    coherent: bool,
}

impl Found {
    /// Checks that it is a DMA-330. Only reads.
    pub(super) fn at(device: &impl Device) -> Result<Self> {
        has_window(device, regs::DEVICE, regs::WINDOW_BYTES)?;
        let wrong = |register, expected, found| Error::WrongDevice {
            device: regs::DEVICE,
            register,
            expected,
            found,
        };
        let [periph_id, pcell_id] = [regs::PERIPH_ID, regs::PCELL_ID].map(|registers| {
            registers
                .into_iter()
                .rev()
                .fold(0, |word, register| word << 8 | register.read(device) & 0xFF)
        });
        if periph_id & regs::PERIPH_ID_MASK != regs::PERIPH_ID_VALUE {
            let expected = regs::PERIPH_ID_VALUE | periph_id & !regs::PERIPH_ID_MASK;
            return Err(wrong("periph_id", expected, periph_id));
        }
        if pcell_id != regs::PCELL_ID_VALUE {
            return Err(wrong("pcell_id", regs::PCELL_ID_VALUE, pcell_id));
        }
        let (cr0, crd) = (regs::CR0.read(device), regs::CRD.read(device));
        let bus_bytes = match crd & 7 {
            width @ 2..=4 => 1 << width,
            _ => return Err(Error::Unexpected { name: "pl330's CRD register", value: crd.into() }),
        };
        let channels = (cr0 >> 4 & 7) + 1;
        Ok(Self {
            all_channels: channels,
            channels,
            events: (cr0 >> 17 & 0x1F) + 1,
            bus_bytes,
            buffer_words: (crd >> 20 & 0x3FF) + 1,
            nonsecure: regs::DSR.read(device) & regs::DSR_NONSECURE != 0,
            nonsecure_events: regs::CR3.read(device),
            barriers: periph_id >> 20 & 0xF == 0,
            coherent: device.port().coherent,
        })
    }

    /// The same with an equal share of the data buffer for each channel: together their bursts must
    /// fit, or they lock up (Arm DDI 0424C, "MFIFO usage overview"). Linux divides it in the same
    /// way (`drivers/dma/pl330.c`, `get_burst_len`). A buffer with fewer words than channels serves
    /// one channel per word.
    pub(super) fn shared(self) -> Self {
        let channels = self.all_channels.min(self.buffer_words);
        Self {
            buffer_words: self.buffer_words.checked_div(channels).unwrap_or(1),
            channels,
            ..self
        }
    }

    /// The assembler's parameters, if this controller has the channel and the event of `config`.
    pub(super) fn core(&self, config: Pl330Config) -> Result<Core> {
        for (name, value, count) in
            [("channel", config.channel, self.channels), ("event", config.event, self.events)]
        {
            within(name, value, 0_u8, count - 1)?;
        }
        let Self {
            bus_bytes, buffer_words, nonsecure, nonsecure_events, barriers, coherent, ..
        } = *self;
        if nonsecure && nonsecure_events >> config.event & 1 == 0 {
            let fix = "take an event whose bit is set, or make the manager Secure";
            return Err(Error::Setting {
                name: "pl330's CR3 register",
                value: u64::from(nonsecure_events),
                fix,
            });
        }
        Ok(Core { bus_bytes, buffer_words, nonsecure, coherent, barriers, event: config.event })
    }
}
