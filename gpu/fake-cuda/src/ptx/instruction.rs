//! One instruction: its name, its types, its operands.

use super::{
    Address, Comparison, Compute, Op, Operand, Register, Special, Type,
    parse::{Names, Parsed, Refused, Text},
    types::{self, Kind, PREDICATE, ty},
};

/// Of amounts of a shift, positions and lengths of a field.
const AMOUNT: Type = Type { kind: Kind::Unsigned, bits: 32 };
impl<'t> Text<'t> {
    pub(super) fn instruction(
        &mut self,
        mnemonic: &'t str,
        names: &mut Names<'t>,
        step: usize,
    ) -> Parsed<Op> {
        let mut parts = mnemonic.split('.');
        let name = parts.next().unwrap_or_default();
        let mut modifiers: Vec<&str> = parts.collect();
        let unknown =
            |text: &Self| text.error(&format!("Not a name of any known instruction: '{mnemonic}'"));
        if ["ret", "exit"].contains(&name) && modifiers.is_empty() {
            return Ok(Op::Return);
        }
        if name == "bra" && matches!(modifiers[..], [] | ["uni"]) {
            let label = self.word()?;
            names.branches.push((step, label, self.line()));
            return Ok(Op::Branch(usize::MAX));
        }
        let ty = modifiers.pop().and_then(ty).ok_or_else(|| unknown(self))?;
        match (name, &modifiers[..]) {
            ("ld", ["param"]) => {
                let to = self.register(names)?;
                self.expect(",")?;
                self.expect("[")?;
                let param = self.word()?;
                self.expect("]")?;
                let index = names
                    .params
                    .iter()
                    .position(|(name, bytes)| *name == param && *bytes == ty.bytes());
                Ok(Op::Param {
                    to,
                    ty,
                    index: index.ok_or_else(|| self.error(&format!("Unknown symbol '{param}'")))?,
                })
            }
            (
                "ld" | "st",
                ["volatile", "global"]
                | ["global", "nc", "v2" | "v4"]
                | ["global", "nc" | "v2" | "v4"]
                | ["global"],
            ) => {
                let count = modifiers
                    .last()
                    .and_then(|last| last.strip_prefix('v'))
                    .map_or(1, |count| if count == "2" { 2 } else { 4 });
                if name == "ld" {
                    let to = self.list(count, |text| text.register(names))?;
                    self.expect(",")?;
                    return Ok(Op::Load { ty, to, at: self.address(names)? });
                }
                let at = self.address(names)?;
                self.expect(",")?;
                Ok(Op::Store { ty, from: self.list(count, |text| text.operand(names))?, at })
            }
            _ => self.compute(name, &modifiers, ty, names, &unknown),
        }
    }

    fn compute(
        &mut self,
        name: &str,
        modifiers: &[&str],
        ty: Type,
        names: &Names<'t>,
        unknown: &dyn Fn(&Self) -> Refused,
    ) -> Parsed<Op> {
        use Compute as C;
        let wide = Type { bits: 2 * ty.bits, ..ty };
        // The operation, the type of its result, and those of its operands.
        let (what, result, operands): (C, Type, &[Type]) = match (name, modifiers) {
            ("mov", []) => (C::Move, ty, &[ty]),
            ("cvta", ["to", "global"]) => (C::Move, ty, &[ty]),
            // The result's type comes first, the operand's is the last.
            ("cvt", [to]) => (C::Move, types::ty(to).ok_or_else(|| unknown(self))?, &[ty]),
            ("and", []) => (C::And, ty, &[ty, ty]),
            ("or", []) => (C::Or, ty, &[ty, ty]),
            ("setp", [how]) => {
                (C::Compare(comparison(how).ok_or_else(|| unknown(self))?), PREDICATE, &[ty, ty])
            }
            ("selp", []) => (C::Select, ty, &[ty, ty, PREDICATE]),
            ("shl", []) => (C::ShiftLeft, ty, &[ty, AMOUNT]),
            ("shr", []) => (C::ShiftRight, ty, &[ty, AMOUNT]),
            ("bfe", []) => (C::Extract, ty, &[ty, AMOUNT, AMOUNT]),
            ("add", []) => (C::Add, ty, &[ty, ty]),
            ("sub", []) => (C::Sub, ty, &[ty, ty]),
            ("mul", ["lo"]) => (C::Mul, ty, &[ty, ty]),
            ("mul", ["wide"]) => (C::Mul, wide, &[ty, ty]),
            ("mad", ["lo"]) => (C::Mad, ty, &[ty, ty, ty]),
            ("div", []) => (C::Div, ty, &[ty, ty]),
            ("rem", []) => (C::Rem, ty, &[ty, ty]),
            ("min", []) => (C::Min, ty, &[ty, ty]),
            ("max", []) => (C::Max, ty, &[ty, ty]),
            _ => return Err(unknown(self)),
        };
        let to = self.register(names)?;
        let mut found = Vec::new();
        for ty in operands {
            self.expect(",")?;
            found.push((self.operand(names)?, *ty));
        }
        Ok(Op::Compute { what, to, ty: result, operands: found })
    }

    /// One, or so many between braces.
    fn list<T>(
        &mut self,
        count: usize,
        mut one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
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
        let base = self.register(names)?;
        let offset = if self.take("+") { self.immediate()? } else { 0 };
        self.expect("]")?;
        Ok(Address { base, offset })
    }

    fn immediate(&mut self) -> Parsed<i128> {
        let sign = if self.take("-") { -1 } else { 1 };
        Ok(sign * i128::from(self.number::<u64>()?))
    }

    pub(super) fn register(&mut self, names: &Names<'t>) -> Parsed<Register> {
        let name = self.word()?;
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<usize> = name.get(digits.len()..).and_then(|number| number.parse().ok());
        let group = names
            .registers
            .get(digits)
            .zip(number)
            .filter(|((_, count, _), number)| number < count);
        let ((bits, _, first), number) =
            group.ok_or_else(|| self.error(&format!("Unknown symbol '{name}'")))?;
        Ok(Register { index: first + number, bits: *bits })
    }

    fn operand(&mut self, names: &Names<'t>) -> Parsed<Operand> {
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
            Some(Operand::Special(
                special,
                ["x", "y", "z"].iter().position(|known| *known == dimension)?,
            ))
        });
        let Some(special) = special else { return self.register(names).map(Operand::Register) };
        self.at += 1;
        Ok(special)
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
