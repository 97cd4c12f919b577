//! A world of its own for `cargo lab`: a cache, boards, and a PATH with only scripts that a test
//! wrote.

use object::write::{Object, StandardSegment};
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::error::Error;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};
use tempfile::TempDir;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The programs that the scripts themselves need.
const REAL: &[&str] = &["cat", "cp", "mkdir", "sleep", "touch", "ln", "dd", "rm"];
/// Longer than any of these runs takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The kernel of the boards that have Debian's own.
pub(crate) const RELEASE: &str = "6.12.1+deb12-arm64";

pub(crate) struct World {
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) fn bare() -> Result<Self, Box<dyn Error>> {
        let world = Self { folder: TempDir::new()? };
        for folder in ["bin", "cache", "boards", "modules"] {
            fs::create_dir(world.path(folder))?;
        }
        for name in REAL {
            let place = ["/bin", "/usr/bin"]
                .map(|bin| Path::new(bin).join(name))
                .into_iter()
                .find(|path| path.exists());
            symlink(place.ok_or("this machine lacks a basic tool")?, world.path("bin").join(name))?;
        }
        Ok(world)
    }

    /// A machine on which an arm64 board with Debian's kernel runs, in an emulator that is this
    /// script.
    pub(crate) fn with_emulator(script: &str) -> Result<Self, Box<dyn Error>> {
        let world = Self::bare()?;
        world.program("qemu-system-aarch64", script)?;
        world.toolchain("aarch64-linux-gnu", "aarch64-unknown-linux-gnu")?;
        let kernel = "[kernel]\nstock = \"6.12\"\n";
        world.board("virtual", &format!("architecture = \"arm64\"\n{REST}{kernel}"))?;
        let kernel = world.path("cache/kernels/debian-arm64-6.12");
        write(&kernel.join(format!("boot/vmlinuz-{RELEASE}")), b"a kernel")?;
        let built_in = kernel.join(format!("lib/modules/{RELEASE}/modules.builtin"));
        write(&built_in, b"kernel/drivers/uio/uio.ko\n")?;
        let note =
            format!(r#"{{"release":"{RELEASE}","package":"linux-image","lines":0,"seconds":0}}"#);
        write(&kernel.join("contigo-kernel.json"), note.as_bytes())?;
        world.elf("cache/busybox/arm64/bin/busybox", Elf::static_program(Architecture::Aarch64))?;
        world.elf("tests", Elf::static_program(Architecture::Aarch64))?;
        Ok(world)
    }

    /// The same, which builds programs; `None` where it cannot. Cargo's environment for a static
    /// build wants the C library's archive, which is at a fixed place.
    pub(crate) fn that_builds(script: &str) -> Result<Option<Self>, Box<dyn Error>> {
        if !Path::new("/usr/aarch64-linux-gnu/lib/libc.a").is_file() {
            let why = "libc6-dev-arm64-cross is not installed";
            writeln!(std::io::stderr(), "SKIPPED: runs of cargo lab: {why}")?;
            return Ok(None);
        }
        Self::with_emulator(script).map(Some)
    }

    /// A machine that builds a kernel for an armv7 board, with a make that is this script.
    pub(crate) fn with_make(script: &str) -> Result<Self, Box<dyn Error>> {
        let world = Self::bare()?;
        world.program("make", script)?;
        for tool in ["gcc", "flex", "bison", "bc", "tar", "xz"] {
            world.program(tool, "exit 1")?;
        }
        world.program("arm-linux-gnueabihf-gcc", "echo 'gcc 99.1'")?;
        let kernel = "[kernel]\nsource = \"6.12\"\n";
        world.board("own", &format!("architecture = \"arm\"\n{REST}{kernel}"))?;
        write(&world.path("cache/sources/linux-source-6.12_6.12.1-1/Makefile"), b"")?;
        write(&world.path("cache/sources/linux-source-6.12"), b"6.12.1-1")?;
        Ok(world)
    }

    /// Cargo, rustc and the cross tools: what they build is there already.
    fn toolchain(&self, gnu: &str, target: &str) -> Outcome {
        let exit = self.path("exit");
        self.elf("exit", Elf::static_program(Architecture::Aarch64))?;
        let artifact = |name: &str, path: &Path| {
            let target = format!(r#""target":{{"name":"{name}"}}"#);
            let path = path.display();
            format!(r#"echo '{{"reason":"compiler-artifact",{target},"executable":"{path}"}}'"#)
        };
        let built = [
            artifact("contigo-lab-exit", &exit),
            artifact("contigo-pci", &self.path("bin/contigo-pci")),
        ];
        self.program("cargo", &built.join("\n"))?;
        write(&self.path("std/libstd-0.rlib"), b"")?;
        let libraries = self.path("std").display().to_string();
        self.program("rustc", &format!("[ \"$4\" = {target} ] || exit 1; echo {libraries}"))?;
        self.program(&format!("{gnu}-gcc"), "echo 'gcc 99.1'")?;
        // -o OUT IN
        self.program(&format!("{gnu}-strip"), "cp \"$3\" \"$2\"")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn program(&self, name: &str, script: &str) -> Outcome {
        let path = self.path("bin").join(name);
        write(&path, format!("#!/bin/sh\n{script}\n").as_bytes())?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
    }

    pub(crate) fn board(&self, name: &str, toml: &str) -> Outcome {
        write(&self.path(&format!("boards/{name}/lab/{name}.toml")), toml.as_bytes())
    }

    pub(crate) fn elf(&self, name: &str, bytes: Vec<u8>) -> Outcome {
        write(&self.path(name), &bytes)
    }

    pub(crate) fn lab(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_contigo-lab"));
        command.env_clear().env("PATH", self.path("bin")).env("HOME", self.folder.path());
        command.env("CONTIGO_CACHE", self.path("cache")).env("CARGO", self.path("bin/cargo"));
        command.arg("--boards").arg(self.path("boards")).args(args);
        // Its kernels are no kernels, and nothing can be built against them.
        command.arg("--kernel-helpers").arg(self.path("helpers"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Result<Said, Box<dyn Error>> {
        Ok(Said::new(&self.lab(args).output()?))
    }

    /// `cargo lab test` with the program `tests` of this world.
    pub(crate) fn test(&self, more: &[&str]) -> Result<Said, Box<dyn Error>> {
        let program = self.path("tests").display().to_string();
        self.run(&[&["test", "--program", &program], more].concat())
    }

    /// The same with these modules of the user's.
    pub(crate) fn test_with_modules(&self) -> Result<Said, Box<dyn Error>> {
        let program = self.path("tests").display().to_string();
        let mut lab = self.lab(&["test", "--program", &program]);
        Ok(Said::new(&lab.env("CONTIGO_MODULES", self.path("modules")).output()?))
    }

    /// The number that a script wrote into a file of this world, once it has.
    pub(crate) fn number(&self, file: &str) -> Result<i32, Box<dyn Error>> {
        let mut number = None;
        soon(|| {
            number = self.text(file).ok().and_then(|text| text.trim().parse().ok());
            number.is_some()
        });
        number.ok_or_else(|| format!("{file} did not appear").into())
    }

    /// The text of a file of this world.
    pub(crate) fn text(&self, file: &str) -> Result<String, Box<dyn Error>> {
        Ok(fs::read_to_string(self.path(file))?)
    }

    /// The files under a folder of the cache, which may be missing.
    pub(crate) fn cached(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache").join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

const REST: &str = r#"
about = "a board of a test"
memory = "1M"
console = "ttyS0"
engines = []
memories = []
qemu = { machine = "none" }
"#;

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// It succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }

    /// Standard output has each of these.
    #[track_caller]
    pub(crate) fn printed(&self, expected: &[&str]) {
        for text in expected {
            assert!(self.out.contains(text), "no {text} in\n{}", self.out);
        }
    }

    pub(crate) fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    pub(crate) fn failed_with(&self, expected: &[&str]) {
        assert_eq!(self.status, Some(1), "{self:?}");
        for text in expected {
            assert!(self.err.contains(text), "no \"{text}\" in:\n{}", self.err);
        }
    }
}

/// ELF files, made here: there is no cross compiler on every machine.
pub(crate) struct Elf;

impl Elf {
    /// The header of a 64-bit program and nothing else, which is all that is looked at; with
    /// `interpreter` one program header.
    pub(crate) fn program(architecture: Architecture, interpreter: bool) -> Vec<u8> {
        let machine: u16 = if architecture == Architecture::Aarch64 { 183 } else { 62 };
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let mut halves = |halves: &[u16]| bytes.extend(halves.iter().flat_map(|h| h.to_le_bytes()));
        halves(&[2, machine, 1, 0]);
        // Entry, program headers, section headers, flags.
        halves(&[0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        halves(&[64, 56, u16::from(interpreter), 64, 0, 0]);
        if interpreter {
            // PT_INTERP, readable, everything else 0.
            halves(&[3, 0, 4, 0]);
            bytes.extend([0; 48]);
        }
        bytes
    }

    pub(crate) fn static_program(architecture: Architecture) -> Vec<u8> {
        Self::program(architecture, false)
    }

    pub(crate) fn module(
        architecture: Architecture,
        vermagic: &str,
        depends: &str,
    ) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut file = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
        let segment = file.segment_name(StandardSegment::Data).to_vec();
        let section = file.add_section(segment, b".modinfo".to_vec(), SectionKind::ReadOnlyData);
        let info = format!("license=GPL\0depends={depends}\0vermagic={vermagic}\0");
        file.append_section_data(section, info.as_bytes(), 1);
        Ok(file.write()?)
    }
}

pub(crate) fn wait(child: Child) -> Result<Said, Box<dyn Error>> {
    Ok(Said::new(&child.wait_with_output()?))
}

/// Waits until it holds; false where it never did.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Whether a process is gone, or only waits to be reaped by its new parent.
pub(crate) fn is_gone(process: i32) -> bool {
    soon(|| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
    })
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Outcome {
    fs::create_dir_all(path.parent().ok_or("no folder")?)?;
    Ok(fs::write(path, bytes)?)
}
