//! A machine that has only what a test gives it: a `PATH` of its own, a cache of its own, and
//! sources to build.

use contigo_testkit::emulated;
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The processors, and their numbers in an ELF header.
pub(crate) const ARMV7: (&str, u16) = ("armv7-unknown-linux-gnueabihf", 40);
pub(crate) const AARCH64: (&str, u16) = ("aarch64-unknown-linux-gnu", 183);
pub(crate) const X86_64: (&str, u16) = ("x86_64-unknown-linux-gnu", 62);

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// It succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }

    /// It failed, and standard error has each of these.
    #[track_caller]
    pub(crate) fn failed_with(&self, parts: &[&str]) {
        assert_eq!(self.status, Some(1), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part} is not in {}", self.stderr);
        }
    }

    pub(crate) fn json(&self) -> Result<Value, Box<dyn Error>> {
        serde_json::from_str(&self.stdout).map_err(|error| format!("{error} in {self:?}").into())
    }
}

pub(crate) struct Machine {
    folder: TempDir,
}

impl Machine {
    /// With a cargo that says where the sources are, and builds by copying `fixtures/<triple>` to
    /// where the program would be.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let machine = Self { folder: TempDir::new()? };
        for name in ["bin", "cache", "sources", "fixtures", "std", "home"] {
            fs::create_dir(machine.path(name))?;
        }
        for paper in ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            fs::write(machine.path("sources").join(paper), format!("{paper} of a test\n"))?;
        }
        let sources = machine.path("sources");
        let metadata = serde_json::json!({
            "workspace_root": sources, "target_directory": sources.join("target"),
            "packages": [{"name": "contigo-cli", "version": "9.8.7"}],
        });
        let root = machine.folder.path().display().to_string();
        // It goes by the arguments, as cargo does, and stops where cargo would take flags from
        // somewhere else.
        let builds = format!(
            r#"[ -z "$RUSTFLAGS$CARGO_ENCODED_RUSTFLAGS" ] || {{ echo 'error: RUSTFLAGS is set'; exit 1; }}
while [ $# -gt 0 ]; do case $1 in
--target) triple=$2;; --profile) profile=$2;; --bin) programs="$programs $2";; --lib) programs="libcontigo_c.so libcontigo_c.a";;
esac; shift; done
plain=${{triple%.2.27}}
/bin/mkdir -p "{root}/sources/target/$plain/$profile"
for program in $programs; do /bin/cp "{root}/fixtures/$triple" "{root}/sources/target/$plain/$profile/$program"; done"#
        );
        machine.program(
            "bin/cargo",
            &format!("if [ \"$1\" = metadata ]; then echo '{metadata}'; exit; fi\n{builds}"),
        )?;
        machine.program("zigbuild", &builds)?;
        // A compiler that has the libraries that are in `std`.
        machine.program("bin/rustc", &format!("for word; do :; done; echo '{root}/std/'$word"))?;
        Ok(machine)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn program(&self, name: &str, text: &str) -> Result<(), Box<dyn Error>> {
        let file = self.path(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n"))?;
        Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
    }

    /// The compiler gets a standard library for each of `triples`.
    pub(crate) fn with_std(&self, triples: &[&str]) -> Outcome {
        for triple in triples {
            fs::create_dir_all(self.path("std").join(triple))?;
            fs::write(self.path("std").join(triple).join("libstd-0123.rlib"), "")?;
        }
        Ok(())
    }

    /// cargo-zigbuild is there, as after `cargo cross setup`.
    pub(crate) fn with_zigbuild(&self) -> Outcome {
        let bin = self.path("cache/zigbuild/0.24.0-0.17.0/bin");
        fs::create_dir_all(&bin)?;
        Ok(fs::rename(self.path("zigbuild"), bin.join("cargo-zigbuild"))?)
    }

    /// The result of a build for `triple`: with `.2.27` the one for the boards' C library, without
    /// the static one.
    pub(crate) fn builds(&self, triple: &str, program: &[u8]) -> Outcome {
        Ok(fs::write(self.path("fixtures").join(triple), program)?)
    }

    /// Programs of this machine that are also on the test's.
    pub(crate) fn link(&self, names: &[&str]) -> Result<bool, Box<dyn Error>> {
        for name in names {
            let places = ["/bin", "/usr/bin", "/sbin", "/usr/sbin"]
                .map(|folder| Path::new(folder).join(name));
            let Some(place) = places.into_iter().find(|place| place.is_file()) else {
                return Ok(false);
            };
            std::os::unix::fs::symlink(place, self.path("bin").join(name))?;
        }
        Ok(true)
    }

    pub(crate) fn cross(&self, args: &[&str]) -> Result<Run, Box<dyn Error>> {
        self.cross_with(args, &[])
    }

    pub(crate) fn cross_with(
        &self,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Run, Box<dyn Error>> {
        let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo-cross"));
        command.args(args).env_clear().env("PATH", self.path("bin")).env("HOME", self.path("home"));
        command
            .env("CONTIGO_CACHE", self.path("cache"))
            .env("CARGO", self.path("bin/cargo"))
            .current_dir(self.path("sources"));
        let output = command.envs(variables.iter().copied()).output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Ok(Run { status: output.status.code(), stdout, stderr })
    }
}

/// The smallest 64-bit program file for `machine` that needs a version of the C library: headers,
/// `.dynstr`, `.gnu.version_r`. The reader takes the class from the file, so a processor of 32 bits
/// may be in it too.
pub(crate) fn program(machine: u16, needs: Option<&str>, is_dynamic: bool) -> Vec<u8> {
    const HEADER: u64 = 64;
    const PART: u64 = 56;
    let strings = format!("\0libc.so.6\0{}\0", needs.unwrap_or_default());
    let versions = HEADER + PART;
    let names = versions + 32;
    let sections = (names + strings.len() as u64).next_multiple_of(8);
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, values: &[u16]| {
        file.extend(values.iter().flat_map(|v| v.to_le_bytes()))
    };
    let word = |file: &mut Vec<u8>, values: &[u32]| {
        file.extend(values.iter().flat_map(|v| v.to_le_bytes()))
    };
    let long = |file: &mut Vec<u8>, values: &[u64]| {
        file.extend(values.iter().flat_map(|v| v.to_le_bytes()))
    };
    half(&mut file, &[3, machine]);
    word(&mut file, &[1]);
    long(&mut file, &[0, HEADER, sections]);
    word(&mut file, &[0]);
    half(&mut file, &[64, 56, 1, 64, if needs.is_some() { 3 } else { 2 }, 1]);
    // One part: PT_INTERP, or PT_NOTE.
    word(&mut file, &[if is_dynamic { 3 } else { 4 }, 4]);
    long(&mut file, &[0; 6]);
    // Elf64_Verneed { version 1, one entry, file "libc.so.6", aux at 16 }, Elf64_Vernaux { hash,
    // flags, other, name at 11, no next }.
    half(&mut file, &[1, 1]);
    word(&mut file, &[1, 16, 0]);
    word(&mut file, &[0]);
    half(&mut file, &[0, 2]);
    word(&mut file, &[11, 0]);
    file.extend(strings.as_bytes());
    file.resize(usize::try_from(sections).unwrap_or(0), 0);
    // Section headers: none; SHT_STRTAB; SHT_GNU_verneed with its strings in section 1, and one
    // library.
    let section = |file: &mut Vec<u8>, kind: u32, at: u64, size: u64, link: u32, info: u32| {
        word(file, &[0, kind]);
        long(file, &[0, 0, at, size]);
        word(file, &[link, info]);
        long(file, &[1, 0]);
    };
    section(&mut file, 0, 0, 0, 0, 0);
    section(&mut file, 3, names, strings.len() as u64, 0, 0);
    section(&mut file, 0x6fff_fffe, versions, 32, 1, 1);
    file
}
