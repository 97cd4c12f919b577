//! A kernel as data for its driver: its arguments, and how it is controlled.

use super::argument::{Pointer, Scalar};
use super::name::Name;
use contigo_core::job::{MAX_OPERANDS, OperandSpec};
use contigo_core::types::Direction;
use core::fmt;

/// The first argument's register: the four of the control block are before it (UG1399,
/// "S_AXILITE Control Register Map").
pub(crate) const ARGUMENTS: u32 = 0x10;
/// The most scalars of a kernel.
pub const MAX_SCALARS: usize = 16;
/// The most results: a completion has four words.
pub const MAX_RESULTS: usize = 4;

/// How a kernel is started and signals its end (UG1399, "Block-Level Control Protocols").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Protocol {
    /// `ap_ctrl_hs`: one job at a time.
    Hs,
    /// `ap_ctrl_chain`: it takes a job while the previous one runs, two at a time here.
    Chain,
}

impl Protocol {
    /// Its name in HLS.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Hs => "ap_ctrl_hs",
            Self::Chain => "ap_ctrl_chain",
        }
    }
}

/// A kernel's register map: its pointers, scalars and results, and how it is controlled. It needs
/// no heap and has no lifetime: it holds up to 16 pointers, 16 scalars and 4 words of results.
///
/// It is consistent: no two arguments share a register, and all lie in the window. The program
/// guarantees that it is this core's (`ApCtrl::open`).
///
/// It comes from a table in Rust, as here, or from a file. Its text
/// is JSON, which [`json`](super::json) reads again.
///
/// ```
/// use contigo::{Align, OperandSpec, design::kernel::{KernelMap, Protocol}};
///
/// /// `int vadd(const int *a, const int *b, int *sum, int n)`, by HLS' own `xvadd_hw.h`.
/// const VADD: KernelMap = {
///     let read = OperandSpec::to_device().aligned(Align::LINE);
///     let map = KernelMap::named("vadd", Protocol::Hs)
///         .window(0x50)
///         .interrupt(true)
///         .result("ap_return", 0x10, 32)
///         .pointer("a", 0x18, read, "4*n")
///         .pointer("b", 0x24, read, "4*n")
///         .pointer("sum", 0x30, OperandSpec::from_device().aligned(Align::LINE), "4*n")
///         .scalar("n", 0x3C, 32);
///     match map.build() {
///         Ok(map) => map,
///         Err(_) => panic!("the table is wrong"), // when this is compiled
///     }
/// };
/// assert_eq!(VADD.operands().len(), 3);
/// assert!(VADD.to_string().starts_with(r#"{"name":"vadd","protocol":"ap_ctrl_hs","window":80,"#));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KernelMap {
    /// The kernel's name.
    pub name: Name,
    /// How it is controlled.
    pub protocol: Protocol,
    pub(super) window_bytes: u32,
    /// Whether it has the interrupt registers GIE, IER and ISR.
    pub interrupt: bool,
    pub(super) pointers: List<Pointer, MAX_OPERANDS>,
    /// One for each pointer.
    pub(super) operands: List<OperandSpec, MAX_OPERANDS>,
    pub(super) scalars: List<Scalar, MAX_SCALARS>,
    pub(super) results: List<Scalar, MAX_RESULTS>,
}

impl KernelMap {
    /// The least size of its register window, in bytes.
    #[must_use]
    pub const fn window_bytes(&self) -> usize {
        self.window_bytes as usize
    }

    /// The specification of each operand, in the order of the pointers.
    #[must_use]
    pub const fn operands(&self) -> &[OperandSpec] {
        self.operands.as_slice()
    }

    /// Its pointers.
    #[must_use]
    pub const fn pointers(&self) -> &[Pointer] {
        self.pointers.as_slice()
    }

    /// The scalars that a job passes, in the order of its argument words.
    #[must_use]
    pub const fn scalars(&self) -> &[Scalar] {
        self.scalars.as_slice()
    }

    /// The results of a job, in the order of the completion's words.
    #[must_use]
    pub const fn results(&self) -> &[Scalar] {
        self.results.as_slice()
    }

    /// How many argument words a job takes: one for each scalar, or two if it has more than 32
    /// bits.
    #[must_use]
    pub fn words(&self) -> usize {
        self.scalars().iter().map(Scalar::words).sum()
    }

    /// The width of the narrowest pointer, in bits.
    #[must_use]
    pub fn addr_bits(&self) -> u32 {
        self.pointers().iter().map(|pointer| pointer.bits).min().unwrap_or(u64::BITS)
    }

    /// The numbers that a kernel's registers must match: name, index within that name, value.
    pub fn layout(&self) -> impl Iterator<Item = (&'static str, usize, u64)> + '_ {
        let (pointers, scalars) = (self.pointers(), self.scalars());
        let chain = u64::from(matches!(self.protocol, Protocol::Chain));
        let counts = [
            ("the map's protocol (0: ap_ctrl_hs, 1: ap_ctrl_chain)", 0, chain),
            ("the count of pointers in the map", 0, pointers.len() as u64),
            ("the count of scalars in the map", 0, scalars.len() as u64),
        ];
        let pointers = pointers
            .iter()
            .enumerate()
            .map(|(nth, pointer)| ("a pointer's offset in the map", nth, pointer.offset as u64));
        let at = scalars
            .iter()
            .enumerate()
            .map(|(nth, scalar)| ("a scalar's offset in the map", nth, scalar.offset as u64));
        let bits = scalars
            .iter()
            .enumerate()
            .map(|(nth, scalar)| ("a scalar's bits in the map", nth, scalar.bits.into()));
        let results = self
            .results()
            .iter()
            .enumerate()
            .map(|(nth, result)| (Self::RESULT, nth, result.offset as u64));
        counts.into_iter().chain(pointers).chain(at).chain(bits).chain(results)
    }

    /// A number of [`layout`](Self::layout) that a map may leave out.
    pub const RESULT: &'static str = "a result's offset in the map";

    /// How many bytes the operand of `pointer` must have for these values of the scalars: at least
    /// 1, and `u64::MAX` if it exceeds 64 bits.
    pub fn need_bytes(&self, pointer: usize, scalars: &[u64]) -> u64 {
        let least = self.operands().get(pointer).map_or(1, |spec| spec.min_bytes as u64);
        self.pointers().get(pointer).map_or(0, |pointer| pointer.length.bytes(scalars)).max(least)
    }

    /// How many bytes the rule of `pointer` gives for these values of the scalars; `None` without a
    /// rule.
    #[must_use]
    pub fn len_bytes(&self, pointer: usize, scalars: &[u64]) -> Option<u64> {
        let length = self.pointers().get(pointer)?.length;
        length.is_known().then(|| length.bytes(scalars))
    }

    /// The scalars' values in a job's argument words. `None` if there are more or fewer words.
    pub fn values(&self, mut words: &[u32]) -> Option<[u64; MAX_SCALARS]> {
        let mut values = [0; MAX_SCALARS];
        for (scalar, value) in self.scalars().iter().zip(&mut values) {
            (*value, words) = match words {
                [low, high, rest @ ..] if scalar.words() == 2 => {
                    (u64::from(*high) << 32 | u64::from(*low), rest)
                }
                [word, rest @ ..] if scalar.words() == 1 => (u64::from(*word), rest),
                _ => return None,
            };
        }
        words.is_empty().then_some(values)
    }
}

/// The directions and their names in JSON.
pub(super) const DIRECTIONS: [(&str, Direction); 3] = [
    ("in", Direction::ToDevice),
    ("out", Direction::FromDevice),
    ("inout", Direction::Bidirectional),
];

impl fmt::Display for KernelMap {
    /// As JSON, in one line; `{:#}` puts each argument into a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, end) = if f.alternate() { ("\n    ", "\n") } else { ("", "") };
        let Self { name, protocol, window_bytes, interrupt, .. } = self;
        write!(
            f,
            "{{\"name\":\"{name}\",\"protocol\":\"{}\",\"window\":{window_bytes},\"interrupt\":{interrupt},",
            protocol.as_str()
        )?;
        write!(f, "{end}\"pointers\":[")?;
        let mut comma = "";
        for (Pointer { name, offset, bits, length }, spec) in
            self.pointers().iter().zip(self.operands())
        {
            let direction = DIRECTIONS
                .iter()
                .find(|(_, each)| *each == spec.direction)
                .map_or("inout", |(word, _)| word);
            write!(
                f,
                "{comma}{line}{{\"name\":\"{name}\",\"offset\":{offset},\"bits\":{bits},\"direction\":\"{direction}\""
            )?;
            write!(f, ",\"align\":{},\"min\":{}", spec.align_bytes, spec.min_bytes)?;
            if spec.max_bytes != usize::MAX {
                write!(f, ",\"max\":{}", spec.max_bytes)?;
            }
            if length.is_known() {
                f.write_str(",\"bytes\":\"")?;
                length.write(self.scalars(), f)?;
                f.write_str("\"")?;
            }
            f.write_str("}")?;
            comma = ",";
        }
        for (what, scalars) in [("scalars", self.scalars()), ("results", self.results())] {
            write!(f, "],{end}\"{what}\":[")?;
            let mut comma = "";
            for Scalar { name, offset, bits } in scalars {
                write!(
                    f,
                    "{comma}{line}{{\"name\":\"{name}\",\"offset\":{offset},\"bits\":{bits}}}"
                )?;
                comma = ",";
            }
        }
        f.write_str("]}")
    }
}

impl fmt::Debug for KernelMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for KernelMap {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", defmt::Display2Format(self));
    }
}

/// Up to `N` values, in place. `heapless::Vec` would do, but a constant cannot push to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct List<T, const N: usize> {
    /// After the first `len` they are all the same filler.
    all: [T; N],
    // INVARIANT: at most `N`.
    len: usize,
}

impl<T: Copy, const N: usize> List<T, N> {
    /// An empty list; `filler` fills the unused places.
    pub(super) const fn new(filler: T) -> Self {
        Self { all: [filler; N], len: 0 }
    }

    /// Appends `one` if there is room; returns whether there was.
    pub(super) const fn push(&mut self, one: T) -> bool {
        match self.all.split_at_mut_checked(self.len) {
            Some((_, [place, ..])) => {
                *place = one;
                self.len += 1;
                true
            }
            _ => false,
        }
    }

    /// The values, in order.
    pub(super) const fn as_slice(&self) -> &[T] {
        match self.all.split_at_checked(self.len) {
            Some((these, _)) => these,
            None => &[],
        }
    }

    /// The values, mutable.
    pub(super) const fn as_mut_slice(&mut self) -> &mut [T] {
        match self.all.split_at_mut_checked(self.len) {
            Some((these, _)) => these,
            None => &mut [],
        }
    }
}

impl<T: Copy + fmt::Debug, const N: usize> fmt::Debug for List<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
