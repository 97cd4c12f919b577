//! The guest's programs, built here: static, for the board's processor, without any configuration
//! of the user's. Each is checked to be one that can run there.

use crate::board::Board;
use crate::cpu::{self, Cpu};
use anyhow::{Context, bail};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::download::Packages;
use contigo_cross::failure::Result;
use contigo_cross::terminal::say;
use contigo_cross::toolchain;
use object::read::elf::{ElfFile32, ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectKind};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};
use tempfile::TempDir;

/// For a first build of everything on one slow core.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Package and program: always there, for it ends the run.
const EXIT: (&str, &str) = ("contigo-lab-guest", "contigo-lab-exit");
const TOOL: (&str, &str) = ("contigo-cli", "contigo");
const TESTS: (&str, &str) = ("contigo-tests", "contigo-board-tests");
/// The C library, and the program over it that opens memory and devices by their names.
const LIBRARY: (&str, &str) = ("contigo-c", "contigo_c");
const NAMES: &str = "contigo-names";
/// The board tests in a guest whose own are 64-bit programs.
const TESTS_32_BIT: &str = "contigo-board-tests-32";

#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted<'a> {
    All,
    /// This program instead of the board tests, and no demo.
    Given(&'a Path),
}

#[derive(Debug)]
pub(crate) struct Programs {
    cpu: Cpu,
    files: Vec<(String, PathBuf)>,
    /// Where those that were built here are, for as long as this lives.
    _stripped: TempDir,
}

/// A line of cargo's `--message-format=json`, of which only the programs count.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

impl Programs {
    /// Builds them. One cargo for all, so that what they share is built once.
    pub(crate) fn build(cache: &CacheDir, cpu: Cpu, wanted: Wanted<'_>) -> Result<Self> {
        let list: &[(&str, &str)] = match wanted {
            Wanted::All => &[EXIT, TOOL, TESTS],
            Wanted::Given(_) => &[EXIT],
        };
        let log = cache.log(&format!("cargo-{}", cpu.name()))?;
        let cargo = env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
        let what = format!("building the guest's programs for {}", cpu.name());
        let mut build = Tool::at(&cargo, what).current_dir(WORKSPACE).limit(BUILD_LIMIT);
        build = build.args(["build", "--release", "--locked", "--target", cpu.target()]);
        build = build.arg("--message-format=json-render-diagnostics");
        for (package, program) in list {
            build = build.args(["--package", package, "--bin", program]);
        }
        if matches!(wanted, Wanted::All) {
            build = build.args(["--package", LIBRARY.0, "--lib"]);
        }
        for (name, value) in toolchain::static_build(cache, cpu.target())? {
            build = build.env(name, value);
        }
        // The user's own would be taken in place of the target's.
        let said =
            build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").output(&log)?;
        let built = executables(&said);
        let folder = cache.scratch()?;
        let mut files = Vec::new();
        for (_, program) in list {
            let Some((_, path)) = built.iter().find(|(name, _)| name == program) else {
                bail!("cargo built no {program}; its log is {}", log.display())
            };
            files.push(((*program).to_owned(), strip(cache, cpu, program, path, folder.path())?));
        }
        if matches!(wanted, Wanted::All) {
            files.push((NAMES.to_owned(), c_program(cache, cpu, &said, folder.path())?));
        }
        files.push(busybox(cache, cpu)?);
        if let Wanted::Given(path) = wanted {
            files.push((TESTS.1.to_owned(), path.into()));
        }
        Ok(Self { cpu, files, _stripped: folder })
    }

    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// The programs' bytes, checked to run on this board.
    pub(crate) fn read(&self, board: &Board) -> Result<Vec<Program>> {
        self.files.iter().map(|(name, path)| Program::read(board, self.cpu, name, path)).collect()
    }

    /// The board tests alone, for a board whose processor is a wider one.
    pub(crate) fn tests_32_bit(&self, board: &Board) -> Result<Program> {
        let tests = self.files.iter().find(|(name, _)| name == TESTS.1);
        let (_, path) = tests.with_context(|| format!("{} was not built", TESTS.1))?;
        Program::read(board, self.cpu, TESTS_32_BIT, path)
    }

    pub(crate) fn say_sizes(&self) -> Result<()> {
        let mut sizes = Vec::new();
        for (name, path) in self.files.iter().filter(|(name, _)| name != BUSYBOX) {
            let about = fs::metadata(path);
            let about = about.with_context(|| format!("cannot read {}", path.display()))?;
            sizes.push(format!("{name} {} KiB", about.len().div_ceil(1024)));
        }
        say(&format!("static programs for {}: {}", self.cpu.name(), sizes.join(", ")));
        Ok(())
    }
}

/// `bindings/c/examples/names.c` over the C library that cargo's messages name.
fn c_program(cache: &CacheDir, cpu: Cpu, messages: &str, folder: &Path) -> Result<PathBuf> {
    let library = artifacts(messages)
        .filter(|message| message.target.as_ref().is_some_and(|target| target.name == LIBRARY.1))
        .flat_map(|message| message.filenames)
        .find(|file| file.extension().is_some_and(|extension| extension == "a"))
        .with_context(|| format!("cargo built no static library of {}", LIBRARY.0))?;
    let capi = Path::new(WORKSPACE).join("bindings/c");
    let program = folder.join(NAMES);
    let compiler = Tool::new(&format!("{}gcc", cpu.prefix()), format!("compiling {NAMES}"))?;
    let compiler = compiler.args(["-std=c11", "-O2", "-static", "-s", "-I"]);
    let compiler = compiler.args([capi.join("include"), capi.join("examples/names.c"), library]);
    let compiler = compiler.args(["-lpthread", "-lm", "-ldl", "-o"]).arg(&program);
    compiler.writes(folder).run(&cache.log("names-c")?)?;
    Ok(program)
}

fn artifacts(messages: &str) -> impl Iterator<Item = Message> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    parsed.filter(|message| message.reason == "compiler-artifact")
}

pub(crate) fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    artifacts(messages)
        .filter_map(|message| Some((message.target?.name, message.executable?)))
        .collect()
}

/// The program without its debug information, which is most of it.
fn strip(cache: &CacheDir, cpu: Cpu, program: &str, path: &Path, folder: &Path) -> Result<PathBuf> {
    let stripped = folder.join(program);
    let strip = Tool::new(&format!("{}strip", cpu.prefix()), format!("stripping {program}"))?;
    strip.arg("-o").arg(&stripped).arg(path).writes(folder).run(&cache.log("strip")?)?;
    Ok(stripped)
}

const BUSYBOX_PACKAGE: &str = "busybox-static";
/// Debian's static busybox for the guest: its shell and its tools.
const BUSYBOX: &str = "busybox";

/// The name of busybox in the guest, and its file.
pub(crate) fn busybox(cache: &CacheDir, cpu: Cpu) -> Result<(String, PathBuf)> {
    let name = format!("busybox/{}", cpu.debian());
    let _lock = cache.lock(&name)?;
    if let Some(file) = busybox_file(&cache.path().join(&name)) {
        return Ok((BUSYBOX.into(), file));
    }
    let staging = cache.stage(&name)?;
    Packages::new(cache, cpu.debian()).unpack(BUSYBOX_PACKAGE, staging.path())?;
    let folder = staging.commit()?;
    let none = || format!("{BUSYBOX_PACKAGE} has no bin/{BUSYBOX} in {}", folder.display());
    Ok((BUSYBOX.into(), busybox_file(&folder).with_context(none)?))
}

/// Since Debian 13 it is in usr/bin.
fn busybox_file(folder: &Path) -> Option<PathBuf> {
    ["bin", "usr/bin"]
        .map(|bin| folder.join(bin).join(BUSYBOX))
        .into_iter()
        .find(|file| file.is_file())
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
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
        let got = file.architecture();
        if got != cpu.elf() {
            let (got, board) = (cpu::elf_name(got), &board.name);
            let (name, target) = (cpu.name(), cpu.target());
            bail!("{shown} is a program for {got}, board {board} runs {name} ({target})");
        }
        if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
            bail!("{shown} is an object file, not a program");
        }
        if wants_loader(&bytes) {
            bail!(
                "{shown} wants shared libraries, and the guest has none: link it with \
                 -C target-feature=+crt-static"
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
