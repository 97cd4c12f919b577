//! A kernel's map under construction, and the rules that it must meet.

use super::argument::{BadRule, Length, Pointer, Scalar};
use super::error::{MapError, MapRule};
use super::map::{ARGUMENTS, KernelMap, List, MAX_RESULTS, MAX_SCALARS, Protocol};
use super::name::{Name, same};
use contigo_core::job::{MAX_OPERANDS, OperandSpec};
use contigo_core::types::near::Near;
use contigo_core::types::{Align, Direction};

/// The most arguments, of all kinds.
const MAX_ARGUMENTS: usize = MAX_OPERANDS + MAX_SCALARS + MAX_RESULTS;

/// A kernel's map under construction, from a table in Rust or a file. Nothing is checked before
/// [`build`](Self::build).
///
/// Files are incomplete: `x<name>_hw.h` and `.hwh` have neither directions nor lengths. The program
/// adds them by the argument's name.
///
/// ```
/// use contigo::{Direction, design::kernel::header};
/// # let text: &[u8] = b"// control\n// 0x00 : Control signals\n// 0x10 : Data signal of src\n//        bit 31~0 - src[31:0] (Read/Write)\n\
/// # // 0x14 : Data signal of src\n//        bit 31~0 - src[63:32] (Read/Write)\n// 0x1c : Data signal of n\n//        bit 31~0 - n[31:0] (Read/Write)\n";
/// let map = header::map(text)?.direction("src", Direction::ToDevice).length("src", "4*n").build()?;
/// assert_eq!(map.operands()[0].direction, Direction::ToDevice);
/// # Ok::<(), contigo::design::kernel::MapError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "`build` makes the map"]
pub struct MapBuilder<'a> {
    name: &'a str,
    protocol: Protocol,
    /// 0: as long as the arguments need.
    window_bytes: u32,
    interrupt: bool,
    arguments: List<Argument<'a>, MAX_ARGUMENTS>,
    /// The first mistake.
    error: Option<MapError>,
    /// The byte of the next argument in `source`.
    pub(super) at: u32,
    /// The file, to find the line of a byte; empty for a table.
    pub(super) source: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Argument<'a> {
    pub(super) name: &'a str,
    pub(super) offset: u32,
    pub(super) bits: u32,
    pub(super) kind: Kind<'a>,
    at: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    /// An operand and the rule for its length.
    Pointer(OperandSpec, &'a str),
    Scalar,
    Result,
}

/// The default of a pointer: the device may read and write it. The alignment is what HLS assumes of
/// the argument of a Vitis kernel (UG1399, `m_axi_alignment_byte_size`): a wide port drops the low
/// bits of a less aligned address.
pub(super) const UNKNOWN: OperandSpec = OperandSpec::in_out().aligned(Align::LINE);

impl KernelMap {
    /// The start of a table: no arguments yet, no interrupt, and a window as long as the arguments
    /// need.
    pub const fn named(name: &str, protocol: Protocol) -> MapBuilder<'_> {
        let filler = Argument { name: "", offset: 0, bits: 0, kind: Kind::Scalar, at: 0 };
        MapBuilder {
            name,
            protocol,
            window_bytes: 0,
            interrupt: false,
            arguments: List::new(filler),
            error: None,
            at: 0,
            source: &[],
        }
    }
}

impl<'a> MapBuilder<'a> {
    /// The kernel's name.
    pub(crate) const fn name(mut self, name: &'a str) -> Self {
        self.name = name;
        self
    }

    /// How it is controlled.
    pub(crate) const fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Its register window, in bytes. 0: as long as the arguments need.
    pub const fn window(mut self, window_bytes: u32) -> Self {
        self.window_bytes = window_bytes;
        self
    }

    /// Whether it has GIE, IER and ISR.
    pub const fn interrupt(mut self, interrupt: bool) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// A pointer of 64 bits whose low word is at `offset` bytes. `length`: the rule for its
    /// operand's bytes, as `4*n`; an empty one leaves the length to the program's claim.
    pub const fn pointer(
        self,
        name: &'a str,
        offset: u32,
        spec: OperandSpec,
        length: &'a str,
    ) -> Self {
        self.argument(name, offset, 64, Kind::Pointer(spec, length))
    }

    /// As [`pointer`](Self::pointer), of 32 bits and one register.
    pub const fn pointer32(
        self,
        name: &'a str,
        offset: u32,
        spec: OperandSpec,
        length: &'a str,
    ) -> Self {
        self.argument(name, offset, 32, Kind::Pointer(spec, length))
    }

    /// A number of `bits` bits, 1 to 64, that each job passes.
    pub const fn scalar(self, name: &'a str, offset: u32, bits: u32) -> Self {
        self.argument(name, offset, bits, Kind::Scalar)
    }

    /// A number that a job returns: the return value, or an output.
    pub const fn result(self, name: &'a str, offset: u32, bits: u32) -> Self {
        self.argument(name, offset, bits, Kind::Result)
    }

    pub(super) const fn argument(
        mut self,
        name: &'a str,
        offset: u32,
        bits: u32,
        kind: Kind<'a>,
    ) -> Self {
        let at = self.at;
        if !self.arguments.push(Argument { name, offset, bits, kind, at }) {
            return self.broken(too_many("arguments", MAX_ARGUMENTS, Name::clipped(name)));
        }
        self
    }

    /// The direction of the pointer `name`.
    pub fn direction(self, name: &str, direction: Direction) -> Self {
        self.change_pointer(name, |spec, _| spec.direction = direction)
    }

    /// The alignment of the pointer `name`.
    pub fn align(self, name: &str, align: Align) -> Self {
        self.change_pointer(name, |spec, _| *spec = spec.aligned(align))
    }

    /// The rule for the length of the pointer `name` in bytes, as `4*n` or `4*n+120`.
    pub fn length(self, name: &str, rule: &'a str) -> Self {
        self.change_pointer(name, |_, length| *length = rule)
    }

    fn change_pointer(self, name: &str, act: impl FnOnce(&mut OperandSpec, &mut &'a str)) -> Self {
        self.change(name, |argument| match &mut argument.kind {
            Kind::Pointer(spec, length) => {
                act(spec, length);
                true
            }
            _ => false,
        })
    }

    /// The argument `name` is a pointer, which a file does not show if it has 32 bits.
    pub fn as_pointer(self, name: &str) -> Self {
        self.change(name, |argument| {
            argument.kind = Kind::Pointer(UNKNOWN, "");
            true
        })
    }

    /// The argument `name` is a number, which a file does not show if it has 64 bits.
    pub fn as_scalar(self, name: &str) -> Self {
        self.change(name, |argument| {
            argument.kind = Kind::Scalar;
            true
        })
    }

    fn change(mut self, name: &str, act: impl FnOnce(&mut Argument<'a>) -> bool) -> Self {
        let argument =
            self.arguments.as_mut_slice().iter_mut().find(|argument| argument.name == name);
        if argument.is_some_and(act) {
            self
        } else {
            self.broken(MapError::of(self.no_such(name), Name::clipped(name), 0))
        }
    }

    /// No argument is called `name`, or it is of another kind.
    pub(super) fn no_such(&self, name: &str) -> MapRule {
        let others = self
            .arguments
            .as_slice()
            .iter()
            .map(|argument| argument.name)
            .filter(|other| *other != name);
        MapRule::NoSuchArgument { near: Near::of(name, others) }
    }

    const fn broken(mut self, error: MapError) -> Self {
        if self.error.is_none() {
            self.error =
                Some(MapError { byte: self.at, line: line_of(self.source, self.at), ..error });
        }
        self
    }

    /// The argument that was added last.
    pub(super) fn last(&mut self) -> Option<&mut Argument<'a>> {
        self.arguments.as_mut_slice().last_mut()
    }

    /// The argument at `offset`.
    pub(super) fn at_offset(&mut self, offset: u32) -> Option<&mut Argument<'a>> {
        self.all().find(|argument| argument.offset == offset)
    }

    /// The argument of this name, in capitals or not.
    pub(super) fn named_alike(&mut self, name: &str) -> Option<&mut Argument<'a>> {
        self.all().find(|argument| argument.name.eq_ignore_ascii_case(name))
    }

    /// Every argument.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Argument<'a>> {
        self.arguments.as_mut_slice().iter_mut()
    }

    /// The map.
    ///
    /// # Errors
    /// [`MapError`]: the rule that is broken, the argument, and its line in the file.
    pub const fn build(self) -> Result<KernelMap, MapError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        match self.compared() {
            Ok(map) => Ok(map),
            Err((error, at)) => Err(MapError { byte: at, line: line_of(self.source, at), ..error }),
        }
    }

    /// The map, or what is wrong and where.
    const fn compared(&self) -> Result<KernelMap, (MapError, u32)> {
        let Some(name) = Name::new(self.name) else {
            return Err((MapError::of(MapRule::Name, Name::clipped(self.name), 0), 0));
        };
        let mut map = KernelMap {
            name,
            protocol: self.protocol,
            window_bytes: self.window_bytes,
            interrupt: self.interrupt,
            pointers: List::new(Pointer::FILLER),
            operands: List::new(UNKNOWN),
            scalars: List::new(Scalar::FILLER),
            results: List::new(Scalar::FILLER),
        };
        let mut end = ARGUMENTS;
        let mut left = self.arguments.as_slice();
        while let [argument, rest @ ..] = left {
            match self.place(argument, rest) {
                Ok(behind) if behind > end => end = behind,
                Ok(_) => {}
                Err(error) => return Err((error, argument.at)),
            }
            left = rest;
        }
        if map.window_bytes == 0 {
            map.window_bytes = end;
        }
        if let Err(failed) = self.numbers(&mut map) {
            return Err(failed);
        }
        let mut left = self.arguments.as_slice();
        while let [argument, rest @ ..] = left {
            if let Err(error) = operand(argument, &mut map) {
                return Err((error, argument.at));
            }
            left = rest;
        }
        Ok(map)
    }

    /// The end of an argument's registers, checked against the window and later arguments.
    const fn place(
        &self,
        argument: &Argument<'_>,
        others: &[Argument<'_>],
    ) -> Result<u32, MapError> {
        let name = Name::clipped(argument.name);
        if Name::new(argument.name).is_none() {
            return Err(MapError::of(MapRule::Name, name, 0));
        }
        let Argument { offset, bits, .. } = *argument;
        let wide = match argument.kind {
            Kind::Pointer(..) => bits == 32 || bits == 64,
            Kind::Scalar | Kind::Result => 1 <= bits && bits <= 64,
        };
        if !wide {
            return Err(MapError::of(MapRule::Width, name, bits as u64));
        }
        if !offset.is_multiple_of(4) {
            return Err(MapError::of(MapRule::Offset, name, offset as u64));
        }
        if offset < ARGUMENTS {
            return Err(MapError::of(MapRule::Reserved, name, offset as u64));
        }
        let end = argument.end();
        if end > u32::MAX as u64 || self.window_bytes != 0 && end > self.window_bytes as u64 {
            let rule = MapRule::OutsideWindow { window_bytes: self.window_bytes };
            return Err(MapError::of(rule, name, end));
        }
        let mut left = others;
        while let [other, rest @ ..] = left {
            if same(other.name, argument.name) {
                return Err(MapError::of(MapRule::SameName, name, 0));
            }
            if (offset as u64) < other.end() && (other.offset as u64) < end {
                let at = if offset > other.offset { offset } else { other.offset };
                let rule = MapRule::Overlaps(Name::clipped(other.name));
                return Err(MapError::of(rule, name, at as u64));
            }
            left = rest;
        }
        #[allow(clippy::cast_possible_truncation, reason = "compared above")]
        Ok(end as u32)
    }

    /// The scalars and results.
    const fn numbers(&self, map: &mut KernelMap) -> Result<(), (MapError, u32)> {
        let mut words = 0;
        let mut left = self.arguments.as_slice();
        while let [argument, rest @ ..] = left {
            let Argument { offset, bits, at, .. } = *argument;
            let name = Name::clipped(argument.name);
            let scalar = Scalar { name, offset, bits };
            match argument.kind {
                Kind::Scalar if !map.scalars.push(scalar) => {
                    return Err((too_many("scalars", MAX_SCALARS, name), at));
                }
                Kind::Result => {
                    words += scalar.words();
                    if words > MAX_RESULTS || !map.results.push(scalar) {
                        return Err((too_many("words of results", MAX_RESULTS, name), at));
                    }
                }
                _ => {}
            }
            left = rest;
        }
        Ok(())
    }
}

impl Argument<'_> {
    /// The byte after its last register.
    const fn end(&self) -> u64 {
        self.offset as u64 + if self.bits > 32 { 8 } else { 4 }
    }
}

/// There are more than `most` of `what`.
const fn too_many(what: &'static str, most: usize, name: Name) -> MapError {
    MapError::of(MapRule::TooMany { what, most: most as u64 }, name, 0)
}

/// Adds a pointer to the map, whose scalars are known.
const fn operand(argument: &Argument<'_>, map: &mut KernelMap) -> Result<(), MapError> {
    let Kind::Pointer(spec, rule) = argument.kind else { return Ok(()) };
    let name = Name::clipped(argument.name);
    if !spec.align_bytes.is_power_of_two() {
        return Err(MapError::of(MapRule::Limits, name, spec.align_bytes as u64));
    }
    if spec.min_bytes == 0 || spec.min_bytes > spec.max_bytes {
        return Err(MapError::of(MapRule::Limits, name, spec.min_bytes as u64));
    }
    let length = match Length::parse(rule, map.scalars.as_slice()) {
        Ok(length) => length,
        Err(BadRule::Form) => return Err(MapError::of(MapRule::Length, name, 0)),
        Err(BadRule::NoSuch(scalar)) => {
            return Err(MapError::of(MapRule::NoSuchScalar(Name::clipped(scalar)), name, 0));
        }
    };
    let pointer = Pointer { name, offset: argument.offset, bits: argument.bits, length };
    if !map.pointers.push(pointer) || !map.operands.push(spec) {
        return Err(too_many("pointers", MAX_OPERANDS, name));
    }
    Ok(())
}

/// The line of a byte, from 1; 0 if there is no file.
pub(super) const fn line_of(source: &[u8], byte: u32) -> u32 {
    if source.is_empty() {
        return 0;
    }
    let (mut line, mut at, mut left) = (1, 0, source);
    while let [one, rest @ ..] = left {
        if at == byte {
            return line;
        }
        if *one == b'\n' {
            line += 1;
        }
        at += 1;
        left = rest;
    }
    line
}
