//! The processors of the boards, and what building and testing for them needs on this machine.

use crate::failure::Result;
use crate::packages::Need;
use std::path::PathBuf;

/// One processor, as Rust, Debian and QEMU name it.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// Rust's name, for `--target`.
    pub triple: &'static str,
    /// Debian's name of the architecture.
    pub debian: &'static str,
    /// GNU's name: what the programs of its cross compiler begin with, and the folder in `/usr`
    /// that has its C library.
    pub gnu: &'static str,
    /// The program that runs its programs on another processor.
    pub emulator: &'static str,
    /// The processor in an ELF header (`e_machine`, System V ABI: 40 is ARM, 62 is x86-64, 183 is
    /// AArch64).
    pub machine: u16,
}

/// Zynq-7000, Cyclone V: Cortex-A9.
pub const ARMV7: Target = Target {
    triple: "armv7-unknown-linux-gnueabihf",
    debian: "armhf",
    gnu: "arm-linux-gnueabihf",
    emulator: "qemu-arm-static",
    machine: 40,
};

/// Zynq UltraScale+, Jetson: Cortex-A53 and newer.
pub const AARCH64: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    debian: "arm64",
    gnu: "aarch64-linux-gnu",
    emulator: "qemu-aarch64-static",
    machine: 183,
};

/// The boards'.
pub const ALL: [&Target; 2] = [&ARMV7, &AARCH64];

/// A PC, where programs for boards are written: for packages alone.
pub const X86_64: Target = Target {
    triple: "x86_64-unknown-linux-gnu",
    debian: "amd64",
    gnu: "x86_64-linux-gnu",
    emulator: "qemu-x86_64-static",
    machine: 62,
};

/// Those that packages are made for.
pub const PACKAGED: [&Target; 3] = [&ARMV7, &AARCH64, &X86_64];

impl Target {
    /// The one with this triple, or the error that lists them.
    pub fn named(triple: &str) -> Result<&'static Self> {
        let known = || PACKAGED.map(|target| target.triple).join(", ");
        PACKAGED.into_iter().find(|target| target.triple == triple).ok_or_else(|| {
            anyhow::anyhow!("no target \"{triple}\"; Contigo is built for {}", known())
        })
    }

    /// The cross compiler, which links its programs.
    #[must_use]
    pub fn linker(&self) -> String {
        format!("{}-gcc", self.gnu)
    }

    /// Debian's package of the cross compiler.
    #[must_use]
    pub fn linker_package(&self) -> String {
        format!("gcc-{}", self.gnu)
    }

    /// A file of the C library that programs are linked against, for a static program too.
    #[must_use]
    pub fn static_libc(&self) -> PathBuf {
        PathBuf::from(format!("/usr/{}/lib/libc.a", self.gnu))
    }

    /// Debian's package of that library, which brings the one that programs are run with.
    #[must_use]
    pub fn libc_package(&self) -> String {
        format!("libc6-dev-{}-cross", self.debian)
    }

    /// All that a static program for it is linked with. Each command that builds one asks for
    /// these, and so does each `setup`. apt installs no C library with the compiler, which only
    /// recommends it.
    #[must_use]
    pub fn links_static(&self) -> [Need; 2] {
        let libc = self.static_libc().display().to_string();
        [
            Need { name: self.linker(), package: self.linker_package() },
            Need { name: libc, package: self.libc_package() },
        ]
    }

    /// The variable that sets cargo's `key` for this target: `CARGO_TARGET_<TRIPLE>_LINKER`,
    /// say.
    #[must_use]
    pub fn variable(&self, key: &str) -> String {
        format!("CARGO_TARGET_{}_{key}", self.triple.to_uppercase().replace('-', "_"))
    }
}
