//! One instruction: its name, its types, its operands.

use super::{
    Address, Comparison, Compute, Op, Operand, Register, Special, Type,
    parse::{Names, Parsed, Refused, Text},
};

const PREDICATE: Type = Type { bits: 1, signed: false };
/// Of amounts of a shift, positions and lengths of a field.
const AMOUNT: Type = Type { bits: 32, signed: false };

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
        let ty = modifiers.pop().and_then(self::ty).ok_or_else(|| unknown(self))?;
        match (name, &modifiers[..]) {
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
        let integer = ty.bits > 1;
        // What it does, the type of its result, and those of its operands.
        let (what, result, operands): (C, Type, &[Type]) = match (name, modifiers) {
            ("mov", []) => (C::Move, ty, &[ty]),
            ("cvta", ["to", "global"]) if ty.bits == 64 => (C::Move, ty, &[ty]),
            // The result's type comes first, the operand's is the last.
            ("cvt", [to]) => (C::Move, self::ty(to).ok_or_else(|| unknown(self))?, &[ty]),
            ("and", []) => (C::And, ty, &[ty, ty]),
            ("or", []) => (C::Or, ty, &[ty, ty]),
            ("xor", []) => (C::Xor, ty, &[ty, ty]),
            ("not", []) => (C::Not, ty, &[ty]),
            ("setp", [how]) if integer => (C::Compare(comparison(how).ok_or_else(|| unknown(self))?), PREDICATE, &[ty, ty]),
            ("selp", []) if integer => (C::Select, ty, &[ty, ty, PREDICATE]),
            ("shl", []) if integer => (C::ShiftLeft, ty, &[ty, AMOUNT]),
            ("shr", []) if integer => (C::ShiftRight, ty, &[ty, AMOUNT]),
            ("bfe", []) if ty.bits >= 32 && !ty.signed => (C::Extract, ty, &[ty, AMOUNT, AMOUNT]),
            ("add", []) if integer => (C::Add, ty, &[ty, ty]),
            ("sub", []) if integer => (C::Sub, ty, &[ty, ty]),
            ("mul", ["lo"]) if integer => (C::Mul, ty, &[ty, ty]),
            ("mul", ["wide"]) if integer && ty.bits < 64 => (C::Mul, wide, &[ty, ty]),
            ("mad", ["lo"]) if integer => (C::Mad, ty, &[ty, ty, ty]),
            ("mad", ["wide"]) if integer && ty.bits < 64 => (C::Mad, wide, &[ty, ty, wide]),
            ("div", []) if integer => (C::Div, ty, &[ty, ty]),
            ("rem", []) if integer => (C::Rem, ty, &[ty, ty]),
            ("min", []) if integer => (C::Min, ty, &[ty, ty]),
            ("max", []) if integer => (C::Max, ty, &[ty, ty]),
            _ => return Err(unknown(self)),
        };
        let mismatch = |text: &Self| text.error(&format!("Arguments mismatch for instruction '{name}'"));
        // Only a conversion takes a wider register.
        let fits = |ty: Type| if name == "cvt" { Fits::AtLeast(ty.bits) } else { Fits::Exactly(ty.bits) };
        let to = self.register(names, fits(result)).map_err(|_| mismatch(self))?;
        let mut found = Vec::new();
        for ty in operands {
            self.expect(",")?;
            found.push((self.operand(names, fits(*ty)).map_err(|_| mismatch(self))?, *ty));
        }
        Ok(Op::Compute { what, to, ty: result, operands: found })
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
        let number: Option<usize> = name.get(digits.len()..).and_then(|number| number.parse().ok());
        let group = names.registers.get(digits).zip(number).filter(|((_, count, _), number)| number < count);
        let ((own, _, first), number) = group.ok_or_else(|| self.error(&format!("Unknown symbol '{name}'")))?;
        if !fits.takes(*own) {
            return Err(self.error("Arguments mismatch"));
        }
        Ok(Register { index: first + number, bits: *own })
    }

    fn operand(&mut self, names: &Names<'t>, fits: Fits) -> Parsed<Operand> {
        let next = self.peek().unwrap_or_default();
        if next == "-" || next.starts_with(|c: char| c.is_ascii_digit()) {
            return self.immediate().map(Operand::Number);
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
        let Some((special, dimension)) = special.filter(|_| fits.takes(32)) else {
            return self.register(names, fits).map(Operand::Register);
        };
        self.at += 1;
        Ok(Operand::Special(special, dimension))
    }
}

/// `u32`, `s8`, `b64`, `pred`.
pub(super) fn ty(name: &str) -> Option<Type> {
    if name == "pred" {
        return Some(PREDICATE);
    }
    let (kind, bits) = name.split_at_checked(1)?;
    let signed = match kind {
        "s" => true,
        "u" | "b" => false,
        _ => return None,
    };
    ["8", "16", "32", "64"].contains(&bits).then(|| Type { bits: bits.parse().unwrap_or(8), signed })
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
