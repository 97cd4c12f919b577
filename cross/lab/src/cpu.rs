//! The two processor architectures, and everybody's name for each.

use object::Architecture;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cpu {
    /// armv7, hard float.
    Arm,
    /// arm64.
    Arm64,
}

impl Cpu {
    pub(crate) const ALL: [Self; 2] = [Self::Arm, Self::Arm64];

    pub(crate) const fn linux(self) -> &'static str {
        match self {
            Self::Arm => "arm",
            Self::Arm64 => "arm64",
        }
    }

    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::Arm => "armhf",
            Self::Arm64 => "arm64",
        }
    }

    pub(crate) const fn target(self) -> &'static str {
        match self {
            Self::Arm => "armv7-unknown-linux-gnueabihf",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The prefix of the cross tools' names.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Arm => "arm-linux-gnueabihf-",
            Self::Arm64 => "aarch64-linux-gnu-",
        }
    }

    /// The compressed kernel that QEMU boots: make's target, and its path in the build tree.
    pub(crate) const fn image(self) -> (&'static str, &'static str) {
        match self {
            Self::Arm => ("zImage", "arch/arm/boot/zImage"),
            Self::Arm64 => ("Image.gz", "arch/arm64/boot/Image.gz"),
        }
    }

    pub(crate) const fn qemu(self) -> &'static str {
        match self {
            Self::Arm => "qemu-system-arm",
            Self::Arm64 => "qemu-system-aarch64",
        }
    }

    /// The processor in the header of its ELF files.
    pub(crate) const fn elf(self) -> Architecture {
        match self {
            Self::Arm => Architecture::Arm,
            Self::Arm64 => Architecture::Aarch64,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Arm => "armv7",
            Self::Arm64 => "arm64",
        }
    }
}

/// The processor of a foreign ELF file, in the words of [`Cpu::name`] where there is one.
pub(crate) fn elf_name(architecture: Architecture) -> String {
    match architecture {
        Architecture::Arm => Cpu::Arm.name().into(),
        Architecture::Aarch64 => Cpu::Arm64.name().into(),
        Architecture::X86_64 => "x86-64".into(),
        other => format!("{other:?}"),
    }
}
