//! A controller, as its own registers describe it.

use super::{Pl330Config, fault, microcode::Core, regs};
use crate::{
    hw::Device,
    types::{Error, Result},
};

/// A DMA-330 that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) all_channels: u32,
    /// How many of them have drivers.
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
    /// Is it a DMA-330? Only reads.
    pub(super) fn at(device: &impl Device) -> Result<Self> {
        if device.len_bytes() < regs::WINDOW_BYTES {
            let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
            return Err(Error::RegisterWindow { device: fault::DEVICE, need_bytes, have_bytes });
        }
        let wrong = |register, expected, found| Error::WrongDevice { device: fault::DEVICE, register, expected, found };
        let (periph_id, pcell_id) = (regs::id(regs::PERIPH_ID, device), regs::id(regs::PCELL_ID, device));
        if periph_id & regs::PERIPH_ID_MASK != regs::PERIPH_ID_VALUE {
            let expected = regs::PERIPH_ID_VALUE | periph_id & !regs::PERIPH_ID_MASK;
            return Err(wrong("periph_id", expected, periph_id));
        }
        if pcell_id != regs::PCELL_ID_VALUE {
            return Err(wrong("pcell_id", regs::PCELL_ID_VALUE, pcell_id));
        }
        let (cr0, crd) = (regs::CR0.read(device), regs::CRD.read(device));
        Ok(Self {
            all_channels: regs::channels(cr0),
            channels: regs::channels(cr0),
            events: regs::events(cr0),
            bus_bytes: regs::bus_bytes(crd).ok_or(Error::Unexpected { name: "pl330's CRD register", value: crd.into() })?,
            buffer_words: regs::buffer_words(crd),
            nonsecure: regs::DSR.read(device) & regs::DSR_NONSECURE != 0,
            nonsecure_events: regs::CR3.read(device),
            barriers: regs::revision(periph_id) == 0,
            coherent: device.port().coherent,
        })
    }

    /// The same with an equal share of the data buffer for each channel: together their bursts must
    /// fit, or they lock up (Arm DDI 0424C, "MFIFO usage overview"). Linux shares it so
    /// (`drivers/dma/pl330.c`, `get_burst_len`). A buffer of fewer words than channels serves as
    /// many channels as it has words.
    pub(super) fn shared(self) -> Self {
        let channels = self.all_channels.min(self.buffer_words);
        Self { buffer_words: self.buffer_words.checked_div(channels).unwrap_or(1), channels, ..self }
    }

    /// The facts for the assembler, where this controller has the channel and the event of
    /// `config`.
    pub(super) fn core(&self, config: Pl330Config) -> Result<Core> {
        for (name, value, count) in [("channel", config.channel, self.channels), ("event", config.event, self.events)] {
            if u32::from(value) >= count {
                let (value, max) = (u64::from(value), u64::from(count - 1));
                return Err(Error::Argument { name, value, min: 0, max, multiple_of: 1 });
            }
        }
        let Self { bus_bytes, buffer_words, nonsecure, nonsecure_events, barriers, coherent, .. } = *self;
        if nonsecure && nonsecure_events >> config.event & 1 == 0 {
            let fix = "take an event whose bit is set, or make the manager Secure";
            return Err(Error::Setting { name: "pl330's CR3 register", value: u64::from(nonsecure_events), fix });
        }
        Ok(Core { bus_bytes, buffer_words, nonsecure, coherent, barriers, event: config.event })
    }
}
