//! A driver in one mode, over its model.

use super::Sight;
use contigo::sim::stream::StreamCounts;
use contigo::sim::{Model, SimBoard, SimWindow};
use contigo::{CpuBuf, Driver, Error, Port, Result};
use contigo_exerciser::Limits;

/// The work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It copies operand 0, all of it, to the beginning of operand 1.
    Copy,
    /// It reads operand 0, and writes no memory. The model's stream is a sink that gets it as one
    /// packet ([`Subject::stream`]), or a completion has the result ([`Subject::words_expected`]).
    Send,
    /// It receives one packet into operand 0. The model's stream is a source, and its packets are
    /// not longer than [`Subject::packet_bytes`].
    Receive,
}

/// The way to the board's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A port that does not see the CPU's caches.
    Plain,
    /// One that does.
    Coherent,
    /// One that does not, and the CPU does not cache the driver's own memory.
    Uncached,
}

impl Way {
    /// Its port on `board`.
    #[must_use]
    pub fn port(self, board: &SimBoard) -> Port {
        match self {
            Self::Plain | Self::Uncached => board.port(),
            Self::Coherent => board.coherent_port(),
        }
    }
}

/// A driver in one mode, over its model.
pub trait Subject {
    /// The model of its core.
    type Model: Model;

    /// For messages: the core and the mode.
    fn name(&self) -> &'static str;

    /// The work of its jobs.
    fn kind(&self) -> Kind;

    /// A new core, whose stream is as [`Kind`] says.
    fn model(&self) -> Self::Model;

    /// The same, with the faults of real cores that the seed draws: switches of a model that has
    /// some.
    fn drawn(&self, _seed: u64) -> Self::Model {
        self.model()
    }

    /// The counts of the core's stream; `None` where it has none. Those of a sink have the hash of
    /// all that it got, which the suite compares.
    fn stream(&self, _model: &Self::Model) -> Option<StreamCounts> {
        None
    }

    /// Faults of the core that the model itself saw, such as rules of its bus that it broke. The
    /// suite fails with them, and has them beside a failure of its own.
    fn findings(&self, _model: &Self::Model) -> Vec<String> {
        Vec::new()
    }

    /// How many bytes of memory the driver itself gets, at the beginning of a page. 0: none.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// The addresses and lengths of operands that the driver takes.
    fn limits(&self) -> Limits {
        Limits::NONE
    }

    /// How many waits a job costs at most on a board without faults, also where the model wakes its
    /// driver at each burst, because it does not know when its interrupt comes: the most of any
    /// driver with an interrupt is 16. A level interrupt that stays high makes hundreds.
    fn waits_most(&self) -> u64 {
        24
    }

    /// The longest packet that a source sends; at most [`SLOT_BYTES`](super::SLOT_BYTES).
    fn packet_bytes(&self) -> usize {
        0
    }

    /// Has the core a register that says that a job failed?
    fn tells_failures(&self) -> bool {
        true
    }

    /// May a job, or its channel, fail with this error where the board makes faults? The suite
    /// takes every other error for the driver's mistake. One that a completion has in words is an
    /// [`Error::Fault`] with these words here. [`Error::WillNotStop`] is a fault's of every core.
    fn may_fail(&self, error: &Error) -> bool;

    /// What its core, or the model, never does. The suite fails where it saw something else that
    /// never happened, and where one of these did: a check that had nothing to see is no check.
    fn never(&self) -> &'static [Sight] {
        &[]
    }

    /// The argument words of a job whose operand 0 has `len_bytes`.
    fn words(&self, _len_bytes: usize) -> Vec<u32> {
        Vec::new()
    }

    /// The [`words`](contigo::Completion::words) of a job that read `bytes` and ended well: a
    /// result in registers. The suite compares them. `None`, the default: they are not compared. A
    /// [`Kind::Receive`] reads nothing, and is not asked.
    ///
    /// The suite refuses a [`Kind::Send`] that has neither these nor a [`stream`](Self::stream):
    /// nothing would show that its core read the right bytes.
    fn words_expected(&self, _bytes: &[u8]) -> Option<[u32; 4]> {
        None
    }

    /// Opens the driver and runs `act` with it. A core that channels share may live on this
    /// function's stack.
    ///
    /// # Errors
    /// The error of the driver's own function.
    fn open<R>(
        &self,
        window: SimWindow<Self::Model>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R>;
}
