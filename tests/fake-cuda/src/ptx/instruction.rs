//! One instruction: its name, its types, its operands.

use super::{
    Address, Comparison, Compute, Op, Operand, Register, Special, Type,
    parse::{Names, Parsed, Refused, Text},
    types::{self, Kind, PREDICATE, ty},
};

/// Of amounts of a shift, positions and lengths of a field.
const AMOUNT: Type = Type { kind: Kind::Unsigned, bits: 32 };
/// Of positions and lengths that are numbers.
const FIELD_MAX: i128 = 255;

/// How many bits a register has to have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fits {
    Exactly(u32),
    AtLeast(u32),
}

impl Fits {
    const fn takes(self, bits: u32) -> bool {
        match self {
            Self::Exactly(wanted) => bits == wanted,
            Self::AtLeast(wanted) => bits >= wanted,
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Exactly(bits) | Self::AtLeast(bits) => bits,
        }
    }
}

impl<'t> Text<'t> {
    pub(super) fn instruction(&mut self, mnemonic: &'t str, names: &mut Names<'t>, step: usize) -> Parsed<Op> {
        let mut parts = mnemonic.split('.');
        let name = parts.next().unwrap_or_default();
        let mut modifiers: Vec<&str> = parts.collect();
        let unknown = |text: &Self| text.error(&format!("Not a name of any known instruction: '{mnemonic}'"));
        if ["ret", "exit"].contains(&name) && modifiers.is_empty() {
            return Ok(Op::Return);
        }
        if name == "bra" && matches!(modifiers[..], [] | ["uni"]) {
            let label = self.word()?;
            names.branches.push((step, label, self.line()));
            return Ok(Op::Branch(usize::MAX));
        }
        let ty = modifiers.pop().and_then(ty).ok_or_else(|| unknown(self))?;
        let untyped = mnemonic.rsplit_once('.').map_or(mnemonic, |(untyped, _)| untyped);
        self.instruction = if ["mul", "mad", "cvta"].contains(&name) { untyped } else { name };
        match (name, &modifiers[..]) {
            ("ld" | "st", _) if !ty.suits(name) => Err(self.types()),
            ("st", ["global", "nc", ..]) => Err(self.error("Illegal modifier '.nc' for instruction 'st'")),
            ("ld", ["param"]) => {
                let to = self.register(names, Fits::AtLeast(ty.bits))?;
                self.expect(",")?;
                self.expect("[")?;
                let param = self.word()?;
                self.expect("]")?;
                let index = names.params.iter().position(|(name, bytes)| *name == param && *bytes == ty.bytes());
                Ok(Op::Param { to, ty, index: index.ok_or_else(|| self.error(&format!("Unknown symbol '{param}'")))? })
            }
            ("ld" | "st", ["volatile", "global"] | ["global", "nc", "v2" | "v4"] | ["global", "nc" | "v2" | "v4"] | ["global"]) => {
                let count = modifiers.last().and_then(|last| last.strip_prefix('v')).map_or(1, |count| if count == "2" { 2 } else { 4 });
                if count * ty.bytes() > 16 {
                    return Err(self.error("Feature '256 bit wide load/store' requires PTX ISA .version 8.8 or later"));
                }
                if name == "ld" {
                    let to = self.list(count, |text| text.register(names, Fits::AtLeast(ty.bits)))?;
                    self.expect(",")?;
                    return Ok(Op::Load { ty, to, at: self.address(names)? });
                }
                let at = self.address(names)?;
                self.expect(",")?;
                Ok(Op::Store { ty, from: self.list(count, |text| text.operand(names, Fits::AtLeast(ty.bits)))?, at })
            }
            _ => self.compute(name, &modifiers, ty, names, &unknown),
        }
    }

    fn compute(&mut self, name: &str, modifiers: &[&str], ty: Type, names: &Names<'t>, unknown: &dyn Fn(&Self) -> Refused) -> Parsed<Op> {
        use Compute as C;
        let wide = Type { bits: 2 * ty.bits, ..ty };
        // What it does, the type of its result, and those of its operands.
        let (what, result, operands): (C, Type, &[Type]) = match (name, modifiers) {
            ("mov", []) => (C::Move, ty, &[ty]),
            ("cvta", ["to", "global"]) => (C::Move, ty, &[ty]),
            // The result's type comes first, the operand's is the last.
            ("cvt", [to]) => (C::Move, types::ty(to).ok_or_else(|| unknown(self))?, &[ty]),
            ("and", []) => (C::And, ty, &[ty, ty]),
            ("or", []) => (C::Or, ty, &[ty, ty]),
            ("xor", []) => (C::Xor, ty, &[ty, ty]),
            ("not", []) => (C::Not, ty, &[ty]),
            ("setp", [how]) => (C::Compare(comparison(how).ok_or_else(|| unknown(self))?), PREDICATE, &[ty, ty]),
            ("selp", []) => (C::Select, ty, &[ty, ty, PREDICATE]),
            ("shl", []) => (C::ShiftLeft, ty, &[ty, AMOUNT]),
            ("shr", []) => (C::ShiftRight, ty, &[ty, AMOUNT]),
            ("bfe", []) => (C::Extract, ty, &[ty, AMOUNT, AMOUNT]),
            ("add", []) => (C::Add, ty, &[ty, ty]),
            ("sub", []) => (C::Sub, ty, &[ty, ty]),
            ("mul", ["lo"]) => (C::Mul, ty, &[ty, ty]),
            ("mul", ["wide"]) => (C::Mul, wide, &[ty, ty]),
            ("mad", ["lo"]) => (C::Mad, ty, &[ty, ty, ty]),
            ("mad", ["wide"]) => (C::Mad, wide, &[ty, ty, wide]),
            ("div", []) => (C::Div, ty, &[ty, ty]),
            ("rem", []) => (C::Rem, ty, &[ty, ty]),
            ("min", []) => (C::Min, ty, &[ty, ty]),
            ("max", []) => (C::Max, ty, &[ty, ty]),
            _ => return Err(unknown(self)),
        };
        if !ty.suits(self.instruction) || (name == "cvt" && !result.suits(name)) {
            return Err(self.types());
        }
        if ty.kind == Kind::Bits && matches!(what, C::Compare(how) if ![Comparison::Eq, Comparison::Ne].contains(&how)) {
            return Err(self.error("Mismatch between instruction type and comparison qualifier"));
        }
        // Only a conversion takes a wider register.
        let fits = |ty: Type| if name == "cvt" { Fits::AtLeast(ty.bits) } else { Fits::Exactly(ty.bits) };
        let to = self.register(names, fits(result))?;
        let mut found = Vec::new();
        for (index, ty) in operands.iter().enumerate() {
            self.expect(",")?;
            let operand = self.operand(names, fits(*ty))?;
            if let (C::Extract, 1.., Operand::Number(number)) = (what, index, operand)
                && !(0..=FIELD_MAX).contains(&number)
            {
                let wanted = format!("value '{number}' out of range, expected to be in range [0..{FIELD_MAX}]");
                return Err(self.error(&format!("Argument {} of instruction '{name}': {wanted}", index + 1)));
            }
            found.push((operand, *ty));
        }
        Ok(Op::Compute { what, to, ty: result, operands: found })
    }

    fn types(&self) -> Refused {
        self.error(&format!("Unexpected instruction types specified for '{}'", self.instruction))
    }

    fn mismatch(&self) -> Refused {
        self.error(&format!("Arguments mismatch for instruction '{}'", self.instruction))
    }

    /// One, or so many between braces.
    fn list<T>(&mut self, count: usize, mut one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if count == 1 {
            return Ok(vec![one(self)?]);
        }
        self.expect("{")?;
        let mut all = Vec::new();
        for index in 0..count {
            if index > 0 {
                self.expect(",")?;
            }
            all.push(one(self)?);
        }
        self.expect("}")?;
        Ok(all)
    }

    fn address(&mut self, names: &Names<'t>) -> Parsed<Address> {
        self.expect("[")?;
        let base = self.register(names, Fits::Exactly(64))?;
        let offset = if self.take("+") { self.immediate()? } else { 0 };
        self.expect("]")?;
        Ok(Address { base, offset })
    }

    fn immediate(&mut self) -> Parsed<i128> {
        let sign = if self.take("-") { -1 } else { 1 };
        Ok(sign * i128::from(self.number::<u64>()?))
    }

    pub(super) fn register(&mut self, names: &Names<'t>, fits: Fits) -> Parsed<Register> {
        let name = self.word()?;
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let canonical = |number: &&str| *number == "0" || !number.starts_with('0');
        let number: Option<usize> = name.get(digits.len()..).filter(canonical).and_then(|number| number.parse().ok());
        let group = names.registers.get(digits).zip(number).filter(|((_, count, _), number)| number < count);
        let ((own, _, first), number) = group.ok_or_else(|| self.error(&format!("Unknown symbol '{name}'")))?;
        if !fits.takes(*own) {
            return Err(self.mismatch());
        }
        Ok(Register { index: first + number, bits: *own })
    }

    fn operand(&mut self, names: &Names<'t>, fits: Fits) -> Parsed<Operand> {
        let next = self.peek().unwrap_or_default();
        if next == "-" || next.starts_with(|c: char| c.is_ascii_digit()) {
            let number = self.immediate()?;
            // Which of the others are true is not specified.
            let fits = fits.bits() > 1 || [0, 1].contains(&number);
            return if fits { Ok(Operand::Number(number)) } else { Err(self.mismatch()) };
        }
        let special = next.split_once('.').and_then(|(name, dimension)| {
            let special = match name {
                "%tid" => Special::Thread,
                "%ntid" => Special::Threads,
                "%ctaid" => Special::Block,
                "%nctaid" => Special::Blocks,
                _ => return None,
            };
            Some((special, ["x", "y", "z"].iter().position(|known| *known == dimension)?))
        });
        let Some((special, dimension)) = special else {
            return self.register(names, fits).map(Operand::Register);
        };
        self.at += 1;
        if !["mov", "cvt"].contains(&self.instruction) {
            return Err(self.error(&format!("Special register argument not allowed for instruction '{}'", self.instruction)));
        }
        if ![8, 16, 32].contains(&fits.bits()) {
            return Err(self.mismatch());
        }
        Ok(Operand::Special(special, dimension))
    }
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "eq" => Comparison::Eq,
        "ne" => Comparison::Ne,
        "lt" => Comparison::Lt,
        "le" => Comparison::Le,
        "gt" => Comparison::Gt,
        "ge" => Comparison::Ge,
        _ => return None,
    })
}
