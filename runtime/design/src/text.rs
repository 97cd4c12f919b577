//! A place in a file.

/// The bytes of a file, and how far they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    source: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    pub(crate) const fn new(source: &'a [u8]) -> Self {
        Self { source, at: 0 }
    }

    /// The same file from byte `from` to before byte `to`.
    pub(super) fn part(self, from: u32, to: u32) -> Self {
        let source = self.source.get(..to as usize).unwrap_or(self.source);
        Self { source, at: (from as usize).min(source.len()) }
    }

    /// The whole file.
    pub(crate) const fn source(&self) -> &'a [u8] {
        self.source
    }

    /// How many bytes are read.
    pub(crate) fn at(&self) -> u32 {
        // A file is not longer.
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    /// The line of this place, from 1.
    pub(crate) fn line(&self) -> u32 {
        let read = self.source.get(..self.at).unwrap_or(self.source);
        #[cfg(test)]
        visits::add(read.len());
        let breaks = read.iter().filter(|byte| **byte == b'\n').count();
        u32::try_from(breaks).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The text that is not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.source.get(self.at..).unwrap_or_default()
    }

    /// Advances by `count` bytes, or to the end.
    pub(crate) fn skip(&mut self, count: usize) {
        #[cfg(test)]
        visits::add(count.min(self.rest().len()));
        self.at = self.at.saturating_add(count).min(self.source.len());
    }

    /// Skips white space.
    pub(crate) fn skip_space(&mut self) {
        self.skip(self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count());
    }

    /// Reads `word` if it is next.
    pub(crate) fn eat(&mut self, word: &str) -> bool {
        let here = self.rest().starts_with(word.as_bytes());
        if here {
            self.skip(word.len());
        }
        here
    }

    /// Reads to where `ends` matches, and returns the text before. `None` if it matches nowhere.
    pub(crate) fn until(&mut self, ends: impl Fn(u8) -> bool) -> Option<&'a [u8]> {
        let rest = self.rest();
        let found = rest.iter().position(|byte| ends(*byte));
        #[cfg(test)]
        visits::add(if found.is_none() { rest.len() } else { 0 });
        let before = rest.get(..found?)?;
        self.skip(before.len());
        Some(before)
    }

    /// Reads the next line, without its end.
    pub(crate) fn next_line(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let line = rest.split(|byte| *byte == b'\n').next()?;
        self.skip(line.len() + 1);
        Some(line)
    }
}

/// The bytes that this thread's readers have read, for tests that count instead of timing.
#[cfg(test)]
pub(crate) mod visits {
    use core::cell::Cell;

    std::thread_local!(static BYTES: Cell<u64> = const { Cell::new(0) });

    pub(crate) fn add(bytes: usize) {
        BYTES.set(BYTES.get() + bytes as u64);
    }

    /// How many bytes `act` read.
    pub(crate) fn of<R>(act: impl FnOnce() -> R) -> (R, u64) {
        let before = BYTES.replace(0);
        let answer = act();
        (answer, BYTES.replace(before))
    }
}

/// A whole number as Vivado and HLS write it: `16`, `0x10`, `1e+08`, `64.000`, `0b11`, Verilog's
/// `5'h10`, and `64K` of an address range, which is binary. `None`: no number, or a fraction.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    let based = |digits: &str, radix| {
        u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
    };
    if let Some((_, literal)) = text.split_once('\'') {
        let (base, digits) = literal.split_at_checked(1)?;
        return match base {
            "h" | "H" => based(digits, 16),
            "d" | "D" => based(digits, 10),
            "b" | "B" => based(digits, 2),
            _ => None,
        };
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return based(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0b").or_else(|| text.strip_prefix("0B")) {
        return based(digits, 2);
    }
    let shift = match text.as_bytes() {
        [.., b'K' | b'k'] => 10,
        [.., b'M'] => 20,
        [.., b'G'] => 30,
        [.., b'T'] => 40,
        _ => 0,
    };
    let Some(digits) =
        text.len().checked_sub(1).filter(|_| shift > 0).and_then(|end| text.get(..end))
    else {
        return decimal(text).and_then(|(whole, rest)| (rest == 0).then_some(whole));
    };
    based(digits, 10)?.checked_mul(1 << shift)
}

/// A rate in Hz, rounded to a whole number.
pub(crate) fn hertz(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    match decimal(text) {
        Some((whole, tenths)) => whole.checked_add(u64::from(tenths >= 5)),
        // A unit would be a guess.
        None => number(text).filter(|_| text.starts_with("0x")),
    }
}

/// A decimal number with or without a fraction and an exponent: its whole part, and the first digit
/// of its fraction. That digit is 1 instead of 0 if a later one is not 0.
fn decimal(text: &str) -> Option<(u64, u8)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let point = i64::try_from(before.len()).ok()? + i64::from(exponent);
    let (mut whole, mut tenths) = (0_u64, 0_u8);
    for (at, byte) in (0_i64..).zip(before.bytes().chain(after.bytes())) {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        if at < point {
            whole = whole.checked_mul(10)?.checked_add(digit.into())?;
        } else if at == point {
            tenths = digit;
        } else if tenths == 0 && digit > 0 {
            tenths = 1;
        }
    }
    // Zeroes that the digits do not reach. 20 of them are more than 64 bits.
    let digits = i64::try_from(before.len() + after.len()).ok()?;
    for _ in 0..point.saturating_sub(digits).clamp(0, 20) {
        whole = whole.checked_mul(10)?;
    }
    // A point before the digits: all of them are later ones.
    if point < 0 && tenths > 0 {
        tenths = 1;
    }
    Some((whole, tenths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_vivado_writes_them() {
        let whole = [
            ("16", 16),
            (" 0x10 ", 16),
            ("0XfF", 255),
            ("1e+08", 100_000_000),
            ("1.5E3", 1500),
            ("64.000", 64),
            ("0", 0),
            ("0e9", 0),
            ("12500e-2", 125),
            ("5'h1F", 31),
            ("8'd12", 12),
            ("4'b0110", 6),
            ("0b0110", 6),
            ("64K", 65_536),
            ("1M", 1 << 20),
            ("4G", 4 << 30),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, value) in whole {
            assert_eq!(number(text), Some(value), "{text}");
        }
        let none = "|x|0x|-1|+1|1.5|1e-1|1e|e8|.|1e99|18446744073709551616|0x10000000000000000|K|\
            1.5K|16 x|1e+08Hz|0x+1|'h|5'q1|1e40000|NaN|inf|\u{fc}|0.0000001| ";
        for text in none.split('|') {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn a_rate_is_rounded_to_a_hertz() {
        let rates = [
            ("1e+08", Some(100_000_000)),
            ("99999001", Some(99_999_001)),
            ("33333333.333333", Some(33_333_333)),
            ("66666666.666", Some(66_666_667)),
            ("1.25e8", Some(125_000_000)),
            ("2.4999e1", Some(25)),
            ("0.5", Some(1)),
            ("0.049", Some(0)),
            ("1e-9", Some(0)),
            ("0x5F5E100", Some(100_000_000)),
            ("100 MHz", None),
            ("100M", None),
            ("", None),
            ("-5", None),
        ];
        for (text, hz) in rates {
            assert_eq!(hertz(text), hz, "{text}");
        }
    }
}
