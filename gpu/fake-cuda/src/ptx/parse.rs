//! From a text to its kernels.

use super::{Address, Compute, Entry, FIRST_PARAM, Op, Operand, Register, SPECIAL, Step, Type};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The `Err` is the compiler's message.
type Parsed<T = ()> = Result<T, String>;

/// The text in pieces, each with its line.
struct Text<'t> {
    tokens: Vec<(usize, &'t str)>,
    at: usize,
}

/// Of one kernel; kernels that compilers make have hundreds.
const REGISTERS_MAX: usize = 1 << 12;

/// The names that a kernel's statements can use.
#[derive(Default)]
struct Names<'t> {
    registers: BTreeMap<String, Register>,
    /// Where statements begin.
    labels: BTreeMap<&'t str, usize>,
    /// Branches to labels that may come later: the statement, and the label.
    branches: Vec<(usize, &'t str)>,
}

/// The visible kernels of a text, for a GPU of this compute capability: 87 is 8.7.
///
/// # Errors
/// The message of ptxas, for a text that is no PTX, that is for a newer GPU, or that has an
/// instruction which is not here.
pub fn parse(text: &str, compute_capability: u32) -> Parsed<Vec<Entry>> {
    let mut text = Text { tokens: tokens(text), at: 0 };
    text.header(compute_capability)?;
    let mut entries = Vec::new();
    while text.peek().is_some() {
        let visible = text.take(".visible");
        text.expect(".entry")?;
        let entry = text.entry()?;
        if visible {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Words with all their dots, and single marks; comments are none.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut rest = line.split("//").next().unwrap_or_default().trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && !"_$%.".contains(c))
                .unwrap_or(rest.len());
            let (token, behind) = rest.split_at(if word == 0 { first.len_utf8() } else { word });
            tokens.push((index + 1, token));
            rest = behind.trim_start();
        }
    }
    tokens
}

impl Names<'_> {
    /// `None`: there are too many, or one of this name.
    fn declare(&mut self, name: String, bits: u32) -> Option<()> {
        let index = self.registers.len();
        (index < REGISTERS_MAX && self.registers.insert(name, Register { index, bits }).is_none())
            .then_some(())
    }
}

impl<'t> Text<'t> {
    /// As ptxas words it, about the token that was read last.
    fn wrong(&self) -> String {
        let last = self.tokens.get(self.at.saturating_sub(1)).copied();
        let end = (self.tokens.last().map_or(1, |(line, _)| *line), "");
        let (line, near) = last.unwrap_or(end);
        format!(
            "ptxas application ptx input, line {line}; fatal   : Parsing error near '{near}': \
             syntax error"
        )
    }

    fn peek(&self) -> Option<&'t str> {
        self.tokens.get(self.at).map(|(_, token)| *token)
    }

    fn word(&mut self) -> Parsed<&'t str> {
        let found = self.peek();
        self.at += 1;
        found.ok_or_else(|| self.wrong())
    }

    fn expect(&mut self, wanted: &str) -> Parsed {
        if self.word()? == wanted { Ok(()) } else { Err(self.wrong()) }
    }

    /// Goes over `wanted` where it comes next.
    fn take(&mut self, wanted: &str) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// In decimal: with a 0 before it, it would be octal.
    fn number<T: FromStr>(&mut self) -> Parsed<T> {
        let found = self.word()?;
        let decimal = Some(found).filter(|found| *found == "0" || !found.starts_with('0'));
        decimal.and_then(|found| found.parse().ok()).ok_or_else(|| self.wrong())
    }

    fn header(&mut self, compute_capability: u32) -> Parsed {
        self.expect(".version")?;
        self.word()?;
        self.expect(".target")?;
        let target = self.word()?.strip_prefix("sm_").and_then(|number| number.parse().ok());
        if target.is_none_or(|target: u32| target > compute_capability) {
            return Err(self.wrong());
        }
        if self.take(".address_size") { self.expect("64") } else { Ok(()) }
    }

    /// From its name to its closing brace.
    fn entry(&mut self) -> Parsed<Entry> {
        let (name, mut names) = (self.word()?.to_owned(), Names::default());
        for (of, dimension) in SPECIAL.iter().flat_map(|of| ["x", "y", "z"].map(|at| (of, at))) {
            names.declare(format!("{of}.{dimension}"), 32).ok_or_else(|| self.wrong())?;
        }
        let mut params = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            if !params.is_empty() {
                self.expect(",")?;
            }
            self.expect(".param")?;
            let ty = self.declared()?;
            params.push(ty.bytes());
            let name = self.word()?.to_owned();
            names.declare(name, ty.bits).ok_or_else(|| self.wrong())?;
        }
        self.expect("{")?;
        let (mut code, first) = (Vec::new(), self.at);
        while !self.take("}") {
            self.statement(&mut names, &mut code)?;
        }
        let own = self.tokens.get(first..self.at).unwrap_or_default();
        let waits = own.iter().any(|(_, token)| token.starts_with("ld.volatile"));
        for (step, label) in names.branches {
            let to = names.labels.get(label).ok_or_else(|| self.wrong())?;
            if let Some(Step { op: Op::Branch(target), .. }) = code.get_mut(step) {
                *target = *to;
            }
        }
        Ok(Entry { name, params, waits, code, registers: names.registers.len() })
    }

    /// The type of a register or a parameter.
    fn declared(&mut self) -> Parsed<Type> {
        self.word()?.strip_prefix('.').and_then(Type::named).ok_or_else(|| self.wrong())
    }

    /// A declaration of registers, a label, or an instruction.
    fn statement(&mut self, names: &mut Names<'t>, code: &mut Vec<Step>) -> Parsed {
        let first = self.word()?;
        if first == ".reg" {
            let (ty, group) = (self.declared()?, self.word()?);
            self.expect("<")?;
            for index in 0..self.number::<u32>()? {
                let name = format!("{group}{index}");
                names.declare(name, ty.bits).ok_or_else(|| self.wrong())?;
            }
            self.expect(">")?;
            return self.expect(";");
        }
        if self.take(":") {
            let known = names.labels.insert(first, code.len()).is_some();
            return if known { Err(self.wrong()) } else { Ok(()) };
        }
        let (guard, mnemonic) = if first == "@" {
            let wanted = !self.take("!");
            let predicate = self.register(names)?;
            (Some((predicate.index, wanted)), self.word()?)
        } else {
            (None, first)
        };
        let op = self.op(mnemonic, names, code.len())?;
        code.push(Step { guard, op });
        self.expect(";")
    }

    fn op(&mut self, mnemonic: &str, names: &mut Names<'t>, step: usize) -> Parsed<Op> {
        let parts: Vec<_> = mnemonic.split('.').collect();
        match parts[..] {
            ["ret" | "exit"] => return Ok(Op::Return),
            ["bra"] | ["bra", "uni"] => {
                names.branches.push((step, self.word()?));
                return Ok(Op::Branch(usize::MAX));
            }
            _ => {}
        }
        let [name, modifiers @ .., ty] = &parts[..] else { return Err(self.wrong()) };
        let ty = Type::named(ty).ok_or_else(|| self.wrong())?;
        match (*name, modifiers) {
            ("ld", ["param"]) => {
                let to = self.register(names)?;
                self.expect(",")?;
                self.expect("[")?;
                let param = self.register(names)?;
                if param.index < FIRST_PARAM || param.bits != ty.bits {
                    return Err(self.wrong());
                }
                self.expect("]")?;
                let operands = vec![(Operand::Register(param), ty)];
                Ok(Op::Compute { what: |[a, ..], _| Some(a), to, ty, operands })
            }
            (
                "ld" | "st",
                ["volatile", "global"]
                | ["global", "nc", "v4"]
                | ["global", "nc" | "v4"]
                | ["global"],
            ) => {
                let count = if modifiers.last() == Some(&"v4") { 4 } else { 1 };
                if *name == "ld" {
                    let to = self.list(count, |text| text.register(names))?;
                    self.expect(",")?;
                    return Ok(Op::Load { ty, to, at: self.address(names)? });
                }
                let at = self.address(names)?;
                self.expect(",")?;
                Ok(Op::Store { ty, from: self.list(count, |text| text.operand(names))?, at })
            }
            _ => self.compute(name, modifiers, ty, names),
        }
    }

    fn compute(
        &mut self,
        name: &str,
        modifiers: &[&str],
        ty: Type,
        names: &Names<'t>,
    ) -> Parsed<Op> {
        const PREDICATE: Type = Type::PREDICATE;
        /// Of amounts of a shift, positions and lengths of a field.
        const AMOUNT: Type = Type { signed: false, bits: 32 };
        let wide = Type { bits: 2 * ty.bits, ..ty };
        // The operation, the type of its result, and those of its operands.
        let (what, result, operands): (Compute, Type, &[Type]) = match (name, modifiers) {
            ("mov", []) | ("cvta", ["to", "global"]) => (|[a, ..], _| Some(a), ty, &[ty]),
            // The result's type comes first, the operand's is the last.
            ("cvt", [to]) => {
                (|[a, ..], _| Some(a), Type::named(to).ok_or_else(|| self.wrong())?, &[ty])
            }
            ("and", []) => (|[a, b, _], _| Some(a & b), ty, &[ty, ty]),
            ("or", []) => (|[a, b, _], _| Some(a | b), ty, &[ty, ty]),
            ("setp", ["eq"]) => (|[a, b, _], _| Some((a == b).into()), PREDICATE, &[ty, ty]),
            ("setp", ["ne"]) => (|[a, b, _], _| Some((a != b).into()), PREDICATE, &[ty, ty]),
            ("setp", ["lt"]) => (|[a, b, _], _| Some((a < b).into()), PREDICATE, &[ty, ty]),
            ("setp", ["ge"]) => (|[a, b, _], _| Some((a >= b).into()), PREDICATE, &[ty, ty]),
            ("selp", []) => {
                (|[a, b, c], _| Some(if c == 0 { b } else { a }), ty, &[ty, ty, PREDICATE])
            }
            // Amounts are clamped to the width, unlike a CPU's.
            ("shl", []) => (|[a, b, _], bits| Some(a << b.min(bits)), ty, &[ty, AMOUNT]),
            ("shr", []) => (|[a, b, _], bits| Some(a >> b.min(bits)), ty, &[ty, AMOUNT]),
            // A field of bits: value, position, length.
            ("bfe", []) => (
                |[a, b, c], bits| Some(a >> (b & 0xFF).min(bits) & !(-1 << (c & 0xFF).min(bits))),
                ty,
                &[ty, AMOUNT, AMOUNT],
            ),
            ("add", []) => (|[a, b, _], _| Some(a + b), ty, &[ty, ty]),
            ("sub", []) => (|[a, b, _], _| Some(a - b), ty, &[ty, ty]),
            // The low bits are right, whatever is lost above.
            ("mul", ["lo"]) => (|[a, b, _], _| Some(a.wrapping_mul(b)), ty, &[ty, ty]),
            ("mul", ["wide"]) => (|[a, b, _], _| Some(a.wrapping_mul(b)), wide, &[ty, ty]),
            ("mad", ["lo"]) => {
                (|[a, b, c], _| Some(a.wrapping_mul(b).wrapping_add(c)), ty, &[ty, ty, ty])
            }
            ("div", []) => (|[a, b, _], _| a.checked_div(b), ty, &[ty, ty]),
            ("rem", []) => (|[a, b, _], _| a.checked_rem(b), ty, &[ty, ty]),
            ("min", []) => (|[a, b, _], _| Some(a.min(b)), ty, &[ty, ty]),
            ("max", []) => (|[a, b, _], _| Some(a.max(b)), ty, &[ty, ty]),
            _ => return Err(self.wrong()),
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
        let mut all = Vec::new();
        for index in 0..count {
            self.expect(if index == 0 { "{" } else { "," })?;
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

    fn register(&mut self, names: &Names<'t>) -> Parsed<Register> {
        names.registers.get(self.word()?).copied().ok_or_else(|| self.wrong())
    }

    fn operand(&mut self, names: &Names<'t>) -> Parsed<Operand> {
        let is_number = |next: &str| next == "-" || next.starts_with(|c: char| c.is_ascii_digit());
        if self.peek().is_some_and(is_number) {
            self.immediate().map(Operand::Number)
        } else {
            self.register(names).map(Operand::Register)
        }
    }
}
