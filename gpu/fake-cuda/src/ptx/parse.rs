//! From a text to its kernels, or to what the compiler says about it.

use super::{Entry, Op, Step, types::ty};
use crate::codes::code;
use std::collections::BTreeMap;

/// The compiler's message, and the code that the driver answers.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// For the author of the PTX.
    pub log: String,
    /// `CUresult`.
    pub code: i32,
}

pub(super) type Parsed<T = ()> = Result<T, Refused>;

/// The text in pieces, each with its line.
pub(super) struct Text<'t> {
    tokens: Vec<(usize, &'t str)>,
    pub(super) at: usize,
}

/// Of one kernel; kernels that compilers make have hundreds.
const REGISTERS_MAX: usize = 1 << 16;

/// The names that a kernel's statements can use.
#[derive(Default)]
pub(super) struct Names<'t> {
    /// Their names and bytes.
    pub(super) params: Vec<(&'t str, usize)>,
    /// Groups of registers: how many bits each has, how many there are, the first one's index.
    pub(super) registers: BTreeMap<&'t str, (u32, usize, usize)>,
    count: usize,
    /// Where statements begin.
    labels: BTreeMap<&'t str, usize>,
    /// Branches to labels that may come later: the statement, the label, the line.
    pub(super) branches: Vec<(usize, &'t str, usize)>,
}

/// The visible kernels of a text, for a GPU and a driver: 87 is compute capability 8.7, 12040 CUDA
/// 12.4.
///
/// # Errors
/// The message of ptxas for a text that is no PTX, or that is too new. A text with an instruction
/// that this module does not have is an error too.
pub fn parse(text: &str, compute_capability: u32, driver_version: i32) -> Parsed<Vec<Entry>> {
    let mut text = Text { tokens: tokens(text), at: 0 };
    text.header(compute_capability, driver_version)?;
    let mut entries = Vec::new();
    while let Some(first) = text.next() {
        let visible = first == ".visible";
        if visible {
            text.expect(".entry")?;
        } else if first != ".entry" {
            return Err(text.syntax(first));
        }
        let name = text.word()?;
        let entry = text.entry(name)?;
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

/// The newest ISA that a driver knows: the manual's release notes, from CUDA 9.0 on.
const fn newest_isa(driver_version: i32) -> (i32, i32) {
    match (driver_version / 1000, driver_version % 1000 / 10) {
        (10, minor) => (6, 3 + minor),
        // 12.6 brought none.
        (12, minor) if minor > 5 => (8, minor - 1),
        (major, minor) if major > 10 => (major - 4, minor),
        (_, minor) => (6, minor),
    }
}

fn refused(line: usize, severity: &str, what: &str) -> Refused {
    Refused {
        log: format!("ptxas application ptx input, line {line}; {severity:<8}: {what}"),
        code: code::INVALID_PTX,
    }
}

impl<'t> Text<'t> {
    fn next(&mut self) -> Option<&'t str> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    pub(super) fn peek(&self) -> Option<&'t str> {
        self.tokens.get(self.at).map(|(_, token)| *token)
    }

    /// Of the token that was read last.
    pub(super) fn line(&self) -> usize {
        let last = self.at.saturating_sub(1).min(self.tokens.len().saturating_sub(1));
        self.tokens.get(last).map_or(1, |(line, _)| *line)
    }

    pub(super) fn syntax(&self, near: &str) -> Refused {
        refused(self.line(), "fatal", &format!("Parsing error near '{near}': syntax error"))
    }

    pub(super) fn error(&self, what: &str) -> Refused {
        refused(self.line(), "error", what)
    }

    pub(super) fn word(&mut self) -> Parsed<&'t str> {
        self.next().ok_or_else(|| self.syntax(""))
    }

    pub(super) fn expect(&mut self, wanted: &str) -> Parsed {
        let found = self.word()?;
        if found == wanted { Ok(()) } else { Err(self.syntax(found)) }
    }

    /// Goes over `wanted` where it comes next.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// In decimal: with a 0 before it, it would be octal.
    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let found = self.word()?;
        let decimal = Some(found).filter(|found| *found == "0" || !found.starts_with('0'));
        decimal.and_then(|found| found.parse().ok()).ok_or_else(|| self.syntax(found))
    }

    fn header(&mut self, compute_capability: u32, driver_version: i32) -> Parsed {
        if !self.take(".version") {
            return Err(refused(
                1,
                "fatal",
                "Missing .version directive at start of file 'application ptx input'",
            ));
        }
        let version = self.word()?;
        let (major, minor) = version.split_once('.').ok_or_else(|| self.syntax(version))?;
        let parse = |digits: &str| digits.parse::<i32>().map_err(|_| self.syntax(version));
        let newest = newest_isa(driver_version);
        if (parse(major)?, parse(minor)?) > newest {
            let what = format!(
                "Unsupported .version {version}; current version is '{}.{}'",
                newest.0, newest.1
            );
            return Err(Refused {
                code: code::UNSUPPORTED_PTX_VERSION,
                ..refused(self.line(), "fatal", &what)
            });
        }
        if !self.take(".target") {
            return Err(refused(
                self.line(),
                "fatal",
                "Missing .target directive at start of file 'application ptx input'",
            ));
        }
        let target = self.word()?;
        let number: u32 = target
            .strip_prefix("sm_")
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| self.syntax(target))?;
        if number > compute_capability {
            let log = "ptxas fatal   : SM version specified by .target is higher than default SM version assumed".to_owned();
            return Err(Refused { log, code: code::INVALID_PTX });
        }
        if self.take(".address_size") { self.expect("64") } else { Ok(()) }
    }

    /// From behind its name to its closing brace.
    fn entry(&mut self, name: &str) -> Parsed<Entry> {
        let mut names = Names::default();
        self.expect("(")?;
        while !self.take(")") {
            if !names.params.is_empty() {
                self.expect(",")?;
            }
            self.expect(".param")?;
            let ty = self.word()?;
            let bits = width(ty).filter(|bits| *bits >= 8).ok_or_else(|| self.syntax(ty))?;
            names.params.push((self.word()?, bits as usize / 8));
        }
        self.expect("{")?;
        let mut code = Vec::new();
        while !self.take("}") {
            self.statement(&mut names, &mut code)?;
        }
        for (step, label, line) in names.branches {
            let to = names
                .labels
                .get(label)
                .ok_or_else(|| refused(line, "error", &format!("Unknown symbol '{label}'")))?;
            if let Some(Step { op: Op::Branch(target), .. }) = code.get_mut(step) {
                *target = *to;
            }
        }
        let name = name.to_owned();
        Ok(Entry {
            name,
            params: names.params.into_iter().map(|(_, bytes)| bytes).collect(),
            code,
            registers: names.count,
        })
    }

    /// A declaration of registers, a label, or an instruction.
    fn statement(&mut self, names: &mut Names<'t>, code: &mut Vec<Step>) -> Parsed {
        let first = self.word()?;
        if first == ".reg" {
            let ty = self.word()?;
            let bits = width(ty).ok_or_else(|| self.syntax(ty))?;
            let group = self.word()?;
            self.expect("<")?;
            let count: usize = self.number()?;
            let all = names.count.saturating_add(count);
            if all > REGISTERS_MAX {
                return Err(
                    self.error(&format!("{all} registers: there is room for {REGISTERS_MAX}"))
                );
            }
            self.expect(">")?;
            names.registers.insert(group, (bits, count, names.count));
            names.count = all;
            return self.expect(";");
        }
        if self.take(":") {
            let known = names.labels.insert(first, code.len()).is_some();
            return if known {
                Err(self.error(&format!("Duplicate definition of label '{first}'")))
            } else {
                Ok(())
            };
        }
        let (guard, mnemonic) = if first == "@" {
            let wanted = !self.take("!");
            let predicate = self.register(names)?;
            (Some((predicate.index, wanted)), self.word()?)
        } else {
            (None, first)
        };
        let op = self.instruction(mnemonic, names, code.len())?;
        code.push(Step { guard, op });
        self.expect(";")
    }
}

/// Of a register or a parameter.
fn width(directive: &str) -> Option<u32> {
    match directive.strip_prefix('.')? {
        "pred" => Some(1),
        other => ty(other).filter(|ty| ty.bits > 1).map(|ty| ty.bits),
    }
}
