//! A core's clocks.

use super::budget::ONE_PASS;
use super::text::hertz;
use super::{Core, Design, MAX_INSTANCES};
use heapless::Vec;

/// A clock of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock<'a> {
    /// The core's pin: `s_axi_aclk`.
    pub pin: &'a str,
    /// Its frequency in Hz, as the design was built; 0 if the file has none, or one that is not a
    /// rate.
    pub hz: u64,
    /// The file's text for it: `1e+08`. Empty if there is none.
    pub said: &'a str,
    /// The processor's fabric clock that it comes from: FCLK 0 to 3, PL 0 to 3. `None` if it comes
    /// from a pin of the chip, or the file does not say.
    pub fabric: Option<u8>,
    /// The last instance that it comes from: the processor itself, or a `clk_wiz`. Empty for a pin.
    pub from: &'a str,
}

/// The input pins of clock generators; the first that exists is used.
const INPUTS: [&str; 4] = ["clk_in1", "CLK_IN1", "BUFG_I", "BUFGCE_I"];

impl<'a> Core<'_, 'a> {
    /// Its clocks, in the file's order.
    pub fn clocks(&self) -> impl Iterator<Item = Clock<'a>> {
        let pins = self
            .module
            .pins(ONE_PASS)
            .filter(|pin| pin.tag.text("SIGIS").eq_ignore_ascii_case("clk"));
        let mut sources = Sources::of(self.design);
        pins.filter(|pin| pin.tag.get("DIR") == Some("I")).map(move |pin| {
            let source = pin.connections(ONE_PASS).next().unwrap_or_default();
            let said = pin.tag.text("CLKFREQUENCY").trim_ascii();
            Clock {
                pin: pin.name(),
                hz: hertz(said).unwrap_or(0),
                said,
                fabric: sources.fabric_clock(source),
                from: source.0,
            }
        })
    }
}

/// The sources of clock generators. Each generator is read once, however many clocks it has.
struct Sources<'d, 'a> {
    design: &'d Design<'a>,
    /// The processor's clock behind each instance, by the instance's index.
    known: [Behind; MAX_INSTANCES],
}

#[derive(Clone, Copy)]
enum Behind {
    /// Not read yet.
    Unseen,
    /// This clock, or none.
    Clock(Option<u8>),
}

impl<'d, 'a> Sources<'d, 'a> {
    const fn of(design: &'d Design<'a>) -> Self {
        Self { design, known: [Behind::Unseen; MAX_INSTANCES] }
    }

    /// The processor's clock that is behind `source`, a pin of an instance.
    fn fabric_clock(&mut self, mut source: (&'a str, &'a str)) -> Option<u8> {
        let processor = self.design.processor_index()?;
        let mut way = Vec::<usize, MAX_INSTANCES>::new();
        let found = loop {
            let Some(index) = self.design.index_of(source.0) else { break None };
            if index == processor {
                break self.design.soc.clock_pin(source.1);
            }
            match self.known.get_mut(index) {
                Some(Behind::Clock(clock)) => break *clock,
                // A cycle ends here, which also bounds the length of the path.
                Some(unseen) => *unseen = Behind::Clock(None),
                None => break None,
            }
            let _ = way.push(index);
            let Some(next) = self.input_of(index) else { break None };
            source = next;
        };
        for index in way {
            if let Some(place) = self.known.get_mut(index) {
                *place = Behind::Clock(found);
            }
        }
        found
    }

    /// The source of a generator's clock; it has one input.
    fn input_of(&self, index: usize) -> Option<(&'a str, &'a str)> {
        let maker = self
            .design
            .module_at(index)
            .filter(|module| matches!(module.ip(), "clk_wiz" | "util_ds_buf"))?;
        let mut best = None;
        for pin in maker.pins(ONE_PASS) {
            let rank = INPUTS.iter().position(|name| *name == pin.name());
            if let Some(rank) = rank.filter(|rank| best.is_none_or(|(known, _)| *rank < known)) {
                best = Some((rank, pin));
            }
        }
        best?.1.connections(ONE_PASS).next()
    }
}
