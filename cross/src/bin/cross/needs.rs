//! A program's needs of the machine that runs it, read from its ELF headers: the processor, the
//! C library's version, and the libraries by name.
//!
//! A program that was linked against a newer glibc than the board's does not start there. The
//! linker notes every version that it needs in the section `.gnu.version_r` (Linux Standard Base,
//! "Symbol Versioning"; the GNU C library's names are `GLIBC_2.27`).

use contigo_cross::failure::{Failure, Result};
use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use serde::{Serialize, Serializer};
use std::path::Path;
use std::{fmt, fs};

/// A version of the GNU C library: 2.27, or 2.2.5.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glibc(Vec<u16>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// `e_machine` of the ELF header.
    pub(crate) machine: u16,
    /// Does it name a program that loads it? One that does not has its libraries inside.
    pub(crate) is_dynamic: bool,
    /// The highest version that it needs, where it needs any.
    pub(crate) glibc: Option<Glibc>,
    /// The libraries that it names, in its own order (`DT_NEEDED`).
    pub(crate) libraries: Vec<String>,
}

impl Needs {
    pub(crate) fn of(file: &Path) -> Result<Self> {
        let bytes =
            fs::read(file).map_err(|error| Failure::of_io("reading a program", file, &error))?;
        let read = match object::FileKind::parse(&*bytes) {
            Ok(object::FileKind::Elf32) => read::<FileHeader32<Endianness>>(&bytes),
            Ok(object::FileKind::Elf64) => read::<FileHeader64<Endianness>>(&bytes),
            _ => return Err(anyhow::anyhow!("{} is no ELF program", file.display())),
        };
        read.map_err(|error| {
            anyhow::anyhow!("the needs of {} cannot be read: {error:#}", file.display())
        })
    }
}

fn read<Header: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Needs> {
    let header = Header::parse(bytes)?;
    let endian = header.endian()?;
    let is_dynamic =
        header.program_headers(endian, bytes)?.iter().any(|part| part.p_type(endian) == PT_INTERP);
    let sections = header.sections(endian, bytes)?;
    let mut glibc: Option<Glibc> = None;
    if let Some((mut libraries, strings)) = sections.gnu_verneed(endian, bytes)? {
        let strings = sections.strings(endian, bytes, strings)?;
        while let Some((_, mut versions)) = libraries.next()? {
            while let Some(version) = versions.next()? {
                let name = String::from_utf8_lossy(version.name(endian, strings)?).into_owned();
                if let Some(number) = name.strip_prefix("GLIBC_") {
                    // GLIBC_PRIVATE, say: a symbol that only the very same build of the library
                    // has.
                    let needed =
                        number.parse().map_err(|_| anyhow::anyhow!("{name} has no number"))?;
                    glibc = glibc.max(Some(needed));
                }
            }
        }
    }
    let mut libraries = Vec::new();
    if let Some((entries, strings)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, strings)?;
        for entry in
            entries.iter().filter(|entry| entry.d_tag(endian).into() == u64::from(DT_NEEDED))
        {
            let at = u32::try_from(entry.d_val(endian).into())?;
            let name = strings
                .get(at)
                .map_err(|()| anyhow::anyhow!("the name of a library is outside of its table"))?;
            libraries.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(Needs { machine: header.e_machine(endian), is_dynamic, glibc, libraries })
}

/// A processor by its number in ELF headers, as people call it.
pub(crate) fn machine(number: u16) -> String {
    match number {
        3 => "x86".into(),
        40 => "armv7".into(),
        62 => "x86-64".into(),
        183 => "arm64".into(),
        243 => "RISC-V".into(),
        other => format!("ELF machine {other}"),
    }
}

impl std::str::FromStr for Glibc {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers: Option<Vec<u16>> = text.split('.').map(|number| number.parse().ok()).collect();
        numbers.map(Self).ok_or_else(|| "a version like 2.27".to_owned())
    }
}

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(u16::to_string).collect::<Vec<_>>().join("."))
    }
}

impl Serialize for Glibc {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Glibc;

    #[test]
    fn versions_are_compared_by_their_numbers() -> std::result::Result<(), String> {
        let version = |text: &str| text.parse::<Glibc>();
        assert!(version("2.4")? < version("2.27")?);
        assert!(version("2.2.5")? < version("2.17")?);
        assert!(version("2.27")? < version("2.27.1")?);
        assert!(version("3.0")? > version("2.99")?);
        assert_eq!(version("2.27")?.to_string(), "2.27");
        for wrong in ["", "PRIVATE", "2.", "2.-1", "2.27 "] {
            assert!(version(wrong).is_err(), "{wrong:?}");
        }
        Ok(())
    }
}
