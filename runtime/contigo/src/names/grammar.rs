//! How a name is parsed: `KIND`, `KIND:ARGUMENT`, `KIND:ARGUMENT@MORE`.

use super::error::{Form, NameError, NameRule};
use super::kinds::Argument;
use super::text::Text;

/// A text that is a name, and where its parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Parsed {
    text: Text,
    /// Where the argument begins, and where it ends.
    argument: (u8, u8),
}

/// The longest name of a file here, as `linux/os/fd.rs` has it.
const FILE_MAX_BYTES: usize = 63;

impl Parsed {
    /// The whole.
    pub(super) fn text(&self) -> &str {
        self.text.as_str()
    }

    /// The text after the kind's colon, as far as `@`; "" where there is none.
    pub(super) fn argument(&self) -> &str {
        self.text().get(self.argument.0.into()..self.argument.1.into()).unwrap_or("")
    }

    /// The text after `@`, if the kind allows one.
    pub(super) fn more(&self) -> Option<&str> {
        self.text().get(self.argument.1.into()..)?.strip_prefix('@')
    }

    /// The argument, or the text after `@`, as a number.
    pub(super) fn number(text: &str) -> Option<u64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    }
}

/// The kind that `text` begins with.
pub(super) fn kind(text: &str) -> &str {
    text.split(':').next().unwrap_or(text)
}

/// Parses `text`, whose kind has `argument`. `syntax` is for errors.
pub(super) fn parse(
    text: &str,
    argument: Argument,
    syntax: &'static str,
) -> Result<Parsed, NameError> {
    let refused =
        |rule, at: usize| NameError { rule, at, len_bytes: text.len(), form: Form::Of(syntax) };
    let start = kind(text).len();
    let rest = text.get(start..).unwrap_or("");
    let (begin, rest) = match rest.strip_prefix(':') {
        Some(rest) => (start + 1, rest),
        None => (start, rest),
    };
    let given = begin > start;
    let mut end = begin + rest.len();
    match argument {
        Argument::Nothing if given => return Err(refused(NameRule::NothingMore, start)),
        Argument::Nothing => {}
        Argument::Number { .. } | Argument::FileOrNothing if !given => {}
        _ if rest.is_empty() => return Err(refused(NameRule::Argument, end)),
        Argument::File | Argument::FileOrNothing => {
            file(rest).map_err(|(rule, at)| refused(rule, begin + at))?
        }
        Argument::FileOf(joint) => {
            if let Some(at) = rest.rfind(joint) {
                let name = rest.get(at + joint.len()..).unwrap_or("");
                file(name).map_err(|(rule, more)| refused(rule, text.len() - name.len() + more))?;
                end = begin + at;
            } else if let Some(at) =
                rest.rfind('@').filter(|at| rest.get(*at..).is_some_and(|rest| rest.contains(':')))
            {
                // The name of a node has an @ too, and no colon after it.
                return Err(refused(NameRule::Device, begin + at + 1));
            }
            let name = text.get(begin..end).unwrap_or("");
            file(name).map_err(|(rule, at)| refused(rule, begin + at))?;
        }
        Argument::Pci => {
            if !is_pci(rest) {
                return Err(refused(NameRule::PciAddress, begin));
            }
        }
        Argument::Number { max } => number(rest, max).map_err(|rule| refused(rule, begin))?,
        Argument::WordAndSeed => {
            if let Some(at) = rest.find('@') {
                let seed = rest.get(at + 1..).unwrap_or("");
                number(seed, u64::MAX).map_err(|rule| refused(rule, begin + at + 1))?;
                end = begin + at;
            }
            let word = text.get(begin..end).unwrap_or("");
            file(word).map_err(|(rule, at)| refused(rule, begin + at))?;
        }
    }
    let too_long = refused(NameRule::Length { max_bytes: Text::MAX_BYTES }, 0);
    let (Some(text), Ok(begin), Ok(end)) =
        (Text::new(text), u8::try_from(begin), u8::try_from(end))
    else {
        return Err(too_long);
    };
    Ok(Parsed { text, argument: (begin, end) })
}

/// Checks that it is the name of one file, as a user can type it: the broken rule, and where.
fn file(name: &str) -> Result<(), (NameRule, usize)> {
    if let Some(at) = name.bytes().position(|byte| !byte.is_ascii_graphic() || byte == b'/') {
        return Err((NameRule::Letter, at));
    }
    match name {
        "" => Err((NameRule::Argument, 0)),
        "." | ".." => Err((NameRule::Letter, 0)),
        name if name.len() > FILE_MAX_BYTES => {
            Err((NameRule::Length { max_bytes: FILE_MAX_BYTES }, FILE_MAX_BYTES))
        }
        _ => Ok(()),
    }
}

fn number(text: &str, max: u64) -> Result<(), NameRule> {
    match Parsed::number(text) {
        Some(number) if number <= max => Ok(()),
        _ => Err(NameRule::Number { max }),
    }
}

/// Domain, bus, device and function (Linux `Documentation/PCI/sysfs-pci.rst`): `0000:01:00.0`. Some
/// host bridges have domains of up to 8 digits.
pub(super) fn is_pci(address: &str) -> bool {
    let hexadecimal =
        |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = address.split(':');
    let (Some(domain), Some(bus), Some(slot), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Some((device, function)) = slot.split_once('.') else { return false };
    let lengths = (4..=8).contains(&domain.len())
        && bus.len() == 2
        && device.len() == 2
        && function.len() == 1;
    lengths
        && [domain, bus, device].into_iter().all(hexadecimal)
        && matches!(function.as_bytes(), [b'0'..=b'7'])
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::super::kinds::{MEMORIES, syntaxes};
    use super::super::{DeviceName, MemoryName};
    use super::NameRule;
    use contigo_core::types::Error;
    use std::format;
    use std::string::{String, ToString};

    #[test]
    fn wrong_name_tells_rule_and_place() {
        let long = format!("u-dma-buf:{}", "a".repeat(64));
        let longest = format!("dma-heap:{}@contigo:{}", "h".repeat(63), "g".repeat(63));
        assert!(
            longest.parse::<MemoryName>().is_ok(),
            "two names of files, as long as they can be"
        );
        let number = |max| NameRule::Number { max };
        for (text, rule, at) in [
            ("", NameRule::Kind, 0),
            (":", NameRule::Kind, 0),
            ("udmabuf0", NameRule::Kind, 0),
            ("UIO:x", NameRule::Kind, 0),
            ("hugetlb ", NameRule::Kind, 0),
            ("u-dma-buf", NameRule::Argument, 9),
            ("u-dma-buf:", NameRule::Argument, 10),
            ("u-dma-buf:a/b", NameRule::Letter, 11),
            ("u-dma-buf:a b", NameRule::Letter, 11),
            ("u-dma-buf:nul\0", NameRule::Letter, 13),
            ("u-dma-buf:\u{e9}", NameRule::Letter, 10),
            ("u-dma-buf:..", NameRule::Letter, 10),
            (&long, NameRule::Length { max_bytes: 63 }, 73),
            ("dma-heap:.", NameRule::Letter, 9),
            ("dma-heap:@contigo:f8003000", NameRule::Argument, 9),
            ("dma-heap:cma@contigo:", NameRule::Argument, 21),
            ("dma-heap:cma@contigo:a/b", NameRule::Letter, 22),
            ("dma-heap:cma@vfio:0000:01:00.0", NameRule::Device, 13),
            ("dma-heap:cma@:x", NameRule::Device, 13),
            ("hugetlb:2M", NameRule::NothingMore, 7),
            ("hugetlb:", NameRule::NothingMore, 7),
            ("vfio", NameRule::Argument, 4),
            ("vfio:0000:01:00", NameRule::PciAddress, 5),
            ("vfio:0000:01:00.8", NameRule::PciAddress, 5),
            ("vfio:0000:01:00.0 ", NameRule::PciAddress, 5),
            ("vfio:000:01:00.0", NameRule::PciAddress, 5),
            ("vfio:0000:01:00.0:1", NameRule::PciAddress, 5),
            ("vfio:0000:0G:00.0", NameRule::PciAddress, 5),
            ("cuda:", NameRule::Argument, 5),
            ("cuda:4294967296", number(u64::from(u32::MAX)), 5),
            ("cuda:-1", number(u64::from(u32::MAX)), 5),
            ("cuda:+1", number(u64::from(u32::MAX)), 5),
            ("sim:18446744073709551616", number(u64::MAX), 4),
            ("sim:0x7", number(u64::MAX), 4),
            ("sim:zdma", number(u64::MAX), 4),
        ] {
            let refused = text.parse::<MemoryName>().unwrap_err();
            assert_eq!(
                (refused.rule, refused.at, refused.len_bytes),
                (rule, at, text.len()),
                "{text:?}"
            );
            let Error::BadName { len_bytes, .. } = refused.into() else { panic!("{text:?}") };
            assert_eq!(len_bytes, text.len());
        }
        let unknown = "ddr:0".parse::<MemoryName>().unwrap_err().to_string();
        assert!(syntaxes(&MEMORIES).all(|(syntax, _)| unknown.contains(syntax)), "{unknown}");
    }

    /// A text that parses displays as it was read, and nothing panics: random letters of the
    /// grammar.
    #[cfg(feature = "sim")]
    #[test]
    fn junk_is_a_name_or_an_error() {
        const PIECES: &str = "u-dma-buf dma-heap hugetlb vfio cuda sim uio contigo pci : : : @ @ \
            . .. / 0000 01 0 7 \u{10FFFF} zdma linux,cma";
        let pieces: std::vec::Vec<&str> = PIECES.split(' ').collect();
        let mut rng = fastrand::Rng::with_seed(13);
        let mut names = 0;
        for _ in 0..100_000 {
            let text: String =
                (0..rng.usize(..12)).map(|_| pieces[rng.usize(..pieces.len())]).collect();
            match text.parse::<MemoryName>() {
                Ok(name) => {
                    assert_eq!(
                        (name.to_string(), name.to_string().parse()),
                        (text.clone(), Ok(name))
                    );
                    assert!(
                        name.device().is_none_or(|device| device.to_string().parse() == Ok(device))
                    );
                    names += 1;
                }
                Err(error) => {
                    assert!(error.at <= text.len() && !error.to_string().is_empty(), "{text:?}")
                }
            }
            if let Ok(device) = text.parse::<DeviceName>() {
                assert_eq!(device.to_string(), text);
            }
        }
        assert!(names > 500, "{names}");
    }
}
