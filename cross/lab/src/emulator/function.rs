//! A board's PCI function that is a model: a program beside QEMU, which serves it on a socket.

use crate::board::Board;
use crate::cpu::Cpu;
use anyhow::{Context, anyhow, bail};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::{Running, Tool, in_words, last_lines};
use contigo_cross::download::Packages;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::{interrupt, packages, toolchain};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// The identifier of the guest's memory, which QEMU and the model share.
pub(super) const MEMORY: &str = "contigo-ram";
const SERVER: (&str, &str) = ("contigo-rtl", "contigo-pci");
const VERILATOR: &str = "verilator";
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// For a first build of everything on one slow core.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
/// For its socket to appear, or its word about what it lacks, which take no second.
const PATIENCE: Duration = Duration::from_secs(10);
/// For its last line after QEMU has gone.
const LAST_WORDS: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// Lines of its output that an error shows.
const LAST_LINES: usize = 5;

/// A model, the program that serves it, and a QEMU that takes it.
#[derive(Debug)]
pub(crate) struct Function {
    model: String,
    server: PathBuf,
    qemu: Newer,
}

/// A model that is served. Dropping it ends the program.
#[derive(Debug)]
pub(crate) struct Served {
    running: Running,
    socket: PathBuf,
    log: PathBuf,
}

impl Function {
    /// The board's, where it has one. [`Failure::NoPackage`]: no QEMU here takes one, or what it is
    /// made by is missing.
    pub(crate) fn of(cache: &CacheDir, board: &Board) -> Result<Option<Self>> {
        let Some(model) = &board.about.qemu.model else { return Ok(None) };
        let (qemu, server) = (Newer::of(cache, board.cpu())?, server(cache)?);
        let asked = Tool::at(&server, format!("asking what {model} lacks here")).limit(PATIENCE);
        let missing =
            asked.args(["--model", model, "--missing"]).output(&cache.log("pci-missing")?)?;
        if !missing.trim().is_empty() {
            // Without dpkg there is no word of Debian's for it.
            let architecture =
                toolchain::host_architecture(cache).unwrap_or_else(|_| env::consts::ARCH.into());
            let (package, reason) = (VERILATOR.into(), missing.trim().into());
            return Err(Failure::NoPackage { package, architecture, reason }.into());
        }
        Ok(Some(Self { model: model.clone(), server, qemu }))
    }

    pub(super) fn qemu(&self, what: String) -> Tool {
        self.qemu.tool(what)
    }

    /// Starts the model's program, with its files in `folder`.
    pub(crate) fn serve(&self, folder: &Path) -> Result<Served> {
        let (socket, log) = (folder.join("pci"), folder.join("pci.log"));
        let server = Tool::at(&self.server, format!("serving {}", self.model));
        let (running, _) =
            server.args(["--model", &self.model, "--socket"]).arg(&socket).start(&log)?;
        let mut served = Served { running, socket, log };
        let begun = Instant::now();
        while !served.socket.exists() {
            let ended = served.running.ended()?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let why = ended.map_or_else(
                    || "has no socket".to_owned(),
                    |status| format!("ended ({})", in_words(status)),
                );
                let last = last_lines(&served.log, LAST_LINES).join("; ");
                bail!("the model {} {why}: {last}", self.model);
            }
            interrupt::check()?;
            thread::sleep(LOOK);
        }
        Ok(served)
    }
}

impl Served {
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits for its last words, which it says when QEMU has gone, and keeps its output in `log`.
    /// The trouble that it ended with, if any: a rule of its bus that it broke is such.
    pub(crate) fn end(mut self, log: &Path) -> Result<Option<String>> {
        let begun = Instant::now();
        let mut ended = self.running.ended()?;
        while ended.is_none() && begun.elapsed() < LAST_WORDS {
            thread::sleep(LOOK);
            ended = self.running.ended()?;
        }
        fs::rename(&self.log, log)
            .map_err(|error| Failure::of_io("keeping the model's log", log, &error))?;
        let why = match ended {
            Some(status) if status.success() => return Ok(None),
            Some(status) => in_words(status),
            None => "did not end".to_owned(),
        };
        Ok(Some(format!("the model: {why}: {}", last_lines(log, LAST_LINES).join("; "))))
    }
}

/// QEMU's arguments for a model on `socket`. Its memory is shared: a model would otherwise see
/// another one, silently.
pub(super) fn arguments(memory: &str, socket: &Path) -> Result<[String; 4]> {
    let path = socket.to_str().context("QEMU wants a socket's path that is a text")?;
    let device = json!({ "driver": "vfio-user-pci", "socket": { "path": path, "type": "unix" } });
    Ok([
        "-object".into(),
        format!("memory-backend-memfd,id={MEMORY},size={memory},share=on"),
        "-device".into(),
        device.to_string(),
    ])
}

/// The program, built for this machine as tests are: its C++ is then built once for both, and it is
/// optimized in either profile.
fn server(cache: &CacheDir) -> Result<PathBuf> {
    let (package, program) = SERVER;
    let log = cache.log("cargo-pci")?;
    let cargo = env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
    let build =
        Tool::at(&cargo, format!("building {program}")).current_dir(WORKSPACE).limit(BUILD_LIMIT);
    let build = build.args(["build", "--locked", "--message-format=json-render-diagnostics"]);
    let said = build.args(["--package", package, "--bin", program]).output(&log)?;
    let built = crate::guest::executables(&said).into_iter().find(|(name, _)| name == program);
    built
        .map(|(_, path)| path)
        .ok_or_else(|| anyhow!("cargo built no {program}; its log is {}", log.display()))
}

/// The release whose backports have QEMU 11.1. (10.0 has no `vfio-user-pci`.)
const RELEASE: &str = "trixie";
const PACKAGE: &str = "qemu-system-arm";

/// A QEMU that takes a model for a PCI function (`vfio-user-pci`): this machine's own where it
/// does, else one of Debian's backports, unpacked beside it with its own C library.
#[derive(Debug)]
enum Newer {
    Installed(PathBuf),
    Unpacked {
        root: PathBuf,
        /// The folder of its libraries, and its loader there.
        libraries: PathBuf,
        loader: PathBuf,
        program: PathBuf,
    },
}

impl Newer {
    /// The emulator of `cpu`. [`Failure::NoPackage`] where there is none, and none can be had.
    fn of(cache: &CacheDir, cpu: Cpu) -> Result<Self> {
        let log = cache.log("qemu-newer")?;
        if let Some(path) = packages::find(cpu.qemu()) {
            let installed = Self::Installed(path);
            if installed.takes_models(&log) {
                return Ok(installed);
            }
        }
        let name = format!("qemu/{RELEASE}");
        let _lock = cache.lock(&name)?;
        if let Some(unpacked) = Self::in_folder(&cache.path().join(&name), cpu) {
            return Ok(unpacked);
        }
        let none = |reason: String| Failure::NoPackage {
            package: PACKAGE.into(),
            architecture: RELEASE.into(),
            reason: format!("a model wants QEMU 10.1 or newer, with vfio-user-pci: {reason}"),
        };
        let architecture =
            toolchain::host_architecture(cache).map_err(|error| none(error.to_string()))?;
        let staging = cache.stage(&name)?;
        let version = Packages::backports(cache, &architecture, RELEASE)
            .unpack_with_all_it_needs(PACKAGE, staging.path())?;
        match Self::in_folder(&staging.commit()?, cpu) {
            Some(unpacked) if unpacked.takes_models(&log) => Ok(unpacked),
            _ => {
                let log = log.display();
                let why = format!("Debian's {version} has none that runs here; the log is {log}");
                Err(none(why).into())
            }
        }
    }

    fn in_folder(root: &Path, cpu: Cpu) -> Option<Self> {
        let program =
            Some(root.join("usr/bin").join(cpu.qemu())).filter(|program| program.is_file())?;
        let mut folders = fs::read_dir(root.join("usr/lib")).ok()?.flatten();
        // Named by Debian's multiarch.
        let libraries = folders.find(|folder| folder.path().join("libc.so.6").is_file())?.path();
        let is_loader =
            |file: &fs::DirEntry| file.file_name().to_string_lossy().starts_with("ld-linux");
        let loader = fs::read_dir(&libraries).ok()?.flatten().find(is_loader)?.path();
        Some(Self::Unpacked { root: root.into(), libraries, loader, program })
    }

    /// Does it have `vfio-user-pci`? Its exit status is 0 in any case.
    fn takes_models(&self, log: &Path) -> bool {
        let asked = ["-machine", "none", "-device", "vfio-user-pci,help"];
        let asked = self.tool("asking QEMU for vfio-user-pci".into()).args(asked);
        asked.output(log).is_ok_and(|said| said.contains("vfio-user-pci options"))
    }

    fn tool(&self, what: String) -> Tool {
        match self {
            Self::Installed(path) => Tool::at(path, what),
            Self::Unpacked { root, libraries, loader, program } => Tool::at(loader, what)
                .env("QEMU_MODULE_DIR", libraries.join("qemu"))
                .arg("--library-path")
                .arg(libraries)
                .arg(program)
                .arg("-L")
                .arg(root.join("usr/share/qemu")),
        }
    }
}
