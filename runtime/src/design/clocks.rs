//! A core's clocks.

use super::{Core, text::number};

/// How many clock generators a clock goes through at most.
const MAX_STEPS: usize = 4;

/// A clock of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock<'a> {
    /// The core's pin: `s_axi_aclk`.
    pub pin: &'a str,
    /// Its frequency in Hz, as the design was built; 0: the file does not say it.
    pub hz: u64,
    /// Which of the processor's clocks for the fabric it comes from: FCLK 0 to 3, PL 0 to 3.
    /// `None`: from a pin of the chip, or the file does not say it.
    pub fabric: Option<u8>,
    /// The instance that it comes from last: the processor itself, or a `clk_wiz`. Empty: a pin.
    pub from: &'a str,
}

impl<'a> Core<'_, 'a> {
    /// Its clocks, in the file's order.
    pub fn clocks(&self) -> impl Iterator<Item = Clock<'a>> {
        let pins = self.module.pins().filter(|pin| pin.tag.text("SIGIS").eq_ignore_ascii_case("clk"));
        pins.filter(|pin| pin.tag.get("DIR") == Some("I")).map(|pin| {
            let source = pin.connections().next().unwrap_or_default();
            let hz = pin.tag.get("CLKFREQUENCY").and_then(number).unwrap_or(0);
            Clock { pin: pin.name(), hz, fabric: self.fabric_clock(source), from: source.0 }
        })
    }

    /// The processor's clock that is behind `source`, a pin of an instance.
    fn fabric_clock(&self, mut source: (&'a str, &'a str)) -> Option<u8> {
        let processor = self.design.processor()?;
        for _ in 0..MAX_STEPS {
            if source.0 == processor.name() {
                return self.design.soc().clock_pin(source.1);
            }
            // A generator has one clock that is called so.
            let maker = self.design.module(source.0).filter(|module| matches!(module.ip(), "clk_wiz" | "util_ds_buf"))?;
            let pin = ["clk_in1", "CLK_IN1", "BUFG_I", "BUFGCE_I"].into_iter().find_map(|name| maker.pin(name))?;
            source = pin.connections().next()?;
        }
        None
    }
}
