//! A program for a guest: read, and checked to be one that can run there.

use crate::{
    board::Board,
    cpu::{self, Cpu},
};
use anyhow::{Context, bail};
use contigo_cross::failure::Result;
use object::{
    Object, ObjectKind,
    read::elf::{ElfFile32, ElfFile64, FileHeader, ProgramHeader},
};
use std::{fs, path::Path};

/// A static program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Its name in the guest's `/bin`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Program {
    /// Reads a program of the board's processor, or of `cpu`, and refuses one that the board cannot
    /// run: another processor's, or one that wants libraries.
    pub(crate) fn read(board: &Board, cpu: Cpu, name: &str, path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown = path.display();
        let Ok(file) = object::File::parse(bytes.as_slice()) else {
            bail!("{shown} is no ELF program")
        };
        let (wanted, got) = (cpu, file.architecture());
        if got != wanted.elf() {
            bail!(
                "{shown} is a program for {}, board {} runs {} ({})",
                cpu::elf_name(got),
                board.name,
                wanted.name(),
                wanted.target()
            );
        }
        if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
            bail!("{shown} is an object file, not a program");
        }
        if wants_loader(&bytes) {
            bail!(
                "{shown} wants shared libraries, and the guest has none: link it with -C target-feature=+crt-static"
            );
        }
        Ok(Self { name: name.into(), bytes })
    }
}

/// Whether the kernel would have to load a dynamic loader first (PT_INTERP).
fn wants_loader(bytes: &[u8]) -> bool {
    fn interp<H: FileHeader>(headers: &[H::ProgramHeader], endian: H::Endian) -> bool {
        headers.iter().any(|header| header.p_type(endian) == object::elf::PT_INTERP)
    }
    if let Ok(file) = ElfFile32::<object::Endianness>::parse(bytes) {
        return interp::<object::elf::FileHeader32<_>>(file.elf_program_headers(), file.endian());
    }
    ElfFile64::<object::Endianness>::parse(bytes).is_ok_and(|file| {
        interp::<object::elf::FileHeader64<_>>(file.elf_program_headers(), file.endian())
    })
}
