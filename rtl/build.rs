//! Compiles each core of `CORES` with Verilator and a C++ compiler, and writes the list of cores
//! that `src/core.rs` has. A core that cannot be built is listed with the reason, and its tests are
//! skipped by name. `CONTIGO_RTL_CORES=gemm8,litex` builds these alone.

#[path = "build/cores.rs"]
mod cores;
#[path = "build/kept.rs"]
mod kept;
#[path = "build/ports.rs"]
mod ports;

use cores::{CORES, Core};
use kept::Kept;

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Verilator's part of a core is split into files of about so many operations, so that two
/// processors have work.
const SPLIT: &str = "8000";

/// The lint of a foreign core: inputs that its wrapper leaves open, which hold chance here, and
/// nothing of its style.
const FOREIGN_LINT: &[&str] = &["-Wno-lint", "-Wno-fatal", "-Wwarn-PINMISSING", "-Wwarn-UNDRIVEN"];
/// How these two begin.
const UNDRIVEN: [&str; 2] = ["%Warning-PINMISSING: ", "%Warning-UNDRIVEN: "];
/// A foreign core may have hundreds; these show which module it is.
const MOST_WARNINGS: usize = 8;

/// Verilator: its compiler itself, for which neither Perl nor make is needed, and its library.
struct Verilator {
    program: PathBuf,
    root: PathBuf,
    /// As it says it: another one makes other C++.
    version: Vec<u8>,
}

impl Verilator {
    /// The one of `VERILATOR_ROOT`, or Debian's.
    fn find() -> Option<Self> {
        let root = PathBuf::from(
            env::var_os("VERILATOR_ROOT").unwrap_or_else(|| "/usr/share/verilator".into()),
        );
        let programs = [root.join("bin/verilator_bin"), PathBuf::from("/usr/bin/verilator_bin")];
        let program = programs.into_iter().find(|path| path.exists())?;
        let version = Command::new(&program)
            .env("VERILATOR_ROOT", &root)
            .arg("--version")
            .output()
            .ok()?
            .stdout;
        root.join("include/verilated.cpp").exists().then_some(Self { program, root, version })
    }

    /// A C++ build of `files` into `out`, as every part of it is built.
    fn library(
        &self,
        name: &str,
        files: impl IntoIterator<Item = PathBuf>,
        include: &Path,
        out: &Path,
    ) -> Result<(), String> {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++20")
            .opt_level(1)
            .warnings(false)
            .debug(false)
            .cargo_metadata(false);
        build
            .define("VL_TIME_CONTEXT", None)
            .define("VM_TRACE", "1")
            .define("VM_COVERAGE", "0")
            .define("VM_SC", "0");
        build
            .include(include)
            .include("shim")
            .include(self.root.join("include"))
            .include(self.root.join("include/vltstd"));
        build.files(files).out_dir(out).try_compile(name).map_err(|error| error.to_string())
    }

    /// The C++ of `core`, in `folder`, and the warnings about inputs that nothing drives.
    fn translate(&self, core: &Core, folder: &Path) -> Result<Vec<String>, String> {
        let mut command = Command::new(&self.program);
        command.env("VERILATOR_ROOT", &self.root).args([
            "--cc",
            "--trace",
            "--top-module",
            "top",
            "--output-split",
            SPLIT,
        ]);
        command.args(["--x-assign", "unique", "--x-initial", "unique"]);
        // A later option overrules an earlier one. Not every bit of an address is for every core.
        let lint: &[_] = if core.foreign {
            FOREIGN_LINT
        } else {
            &["-Wall", "-Wno-DECLFILENAME", "-Wno-UNUSEDSIGNAL"]
        };
        command.args(lint);
        command.args(core.parameters.iter().map(|parameter| format!("-G{parameter}")));
        command.arg("--prefix").arg(format!("V{}", core.name)).arg("-Mdir").arg(folder);
        for file in core.files.iter().map(Path::new) {
            match (file.extension(), file.parent()) {
                (Some(ending), Some(parent)) if ending == "vh" => {
                    command.arg(format!("-I{}", parent.display()))
                }
                _ => command.arg(file),
            };
        }
        let done =
            command.output().map_err(|error| format!("{}: {error}", self.program.display()))?;
        let text = String::from_utf8_lossy(&done.stderr);
        if !done.status.success() {
            return Err(text.into_owned());
        }
        // Of what it warns about in spite of -Wno-lint these alone change results.
        let open = text
            .lines()
            .filter_map(|line| UNDRIVEN.iter().find_map(|kind| line.strip_prefix(kind)));
        let open: Vec<_> = open.collect();
        let warning = |line: &&str| {
            format!("core {}: an input that is not driven holds chance: {line}", core.name)
        };
        let more = (open.len() > MOST_WARNINGS)
            .then(|| format!("core {}: and {} more", core.name, open.len() - MOST_WARNINGS));
        Ok(open.iter().take(MOST_WARNINGS).map(warning).chain(more).collect())
    }

    /// Builds `core` into a library of its name, unless it is there already. Its warnings are shown
    /// either way: another build may have made it.
    fn build(&self, core: &Core, out: &Path) -> Result<(), String> {
        let shim = ["shim/ports.h", "shim/shim.cpp", "build.rs", "build/kept.rs", "build/ports.rs"];
        let mut hash = DefaultHasher::new();
        for file in core.files.iter().chain(&shim) {
            fs::read(file).map_err(|error| format!("{file}: {error}"))?.hash(&mut hash);
        }
        (core.files, core.parameters, core.foreign, &self.program, &self.root, &self.version)
            .hash(&mut hash);
        let kept = Kept::of(out, core.name, hash.finish());
        let said = |error: io::Error| error.to_string();
        let warnings = match kept.warnings() {
            Some(warnings) => warnings,
            None => {
                kept.begin().map_err(said)?;
                let warnings = self.compile(core, out)?;
                kept.end(&warnings).map_err(said)?;
                warnings
            }
        };
        for warning in warnings {
            println!("cargo::warning={warning}");
        }
        Ok(())
    }

    fn compile(&self, core: &Core, out: &Path) -> Result<Vec<String>, String> {
        if !core.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err("a core's name is a word of C++: letters, digits and _".to_owned());
        }
        let folder = out.join(core.name);
        let _ = fs::remove_dir_all(&folder);
        let warnings = self.translate(core, &folder)?;
        let name = core.name;
        ports::check(
            &fs::read_to_string(folder.join(format!("V{name}.h")))
                .map_err(|error| error.to_string())?,
        )?;
        let shim = folder.join(SHIM);
        let text = format!(
            "#include \"V{name}.h\"\n#define CORE {name}\n#define TOP V{name}\n#include \
             \"shim.cpp\"\n"
        );
        fs::write(&shim, text).map_err(|error| error.to_string())?;
        let files = parts(&folder).map_err(|error| error.to_string())?;
        self.library(name, files, &folder, out)?;
        Ok(warnings)
    }

    /// Builds the library that every core needs, unless it is there already.
    fn build_own(&self, out: &Path) -> Result<(), String> {
        let mut hash = DefaultHasher::new();
        (&self.root, &self.version, fs::read("build.rs").ok()).hash(&mut hash);
        let kept = Kept::of(out, OWN, hash.finish());
        if kept.warnings().is_some() {
            return Ok(());
        }
        let files = ["verilated.cpp", "verilated_threads.cpp", "verilated_vcd_c.cpp"]
            .map(|file| self.root.join("include").join(file));
        kept.begin().map_err(|error| error.to_string())?;
        self.library(OWN, files, out, out)?;
        kept.end(&[]).map_err(|error| error.to_string())
    }
}

/// Verilator's own library.
const OWN: &str = "contigo_verilated";

/// A core whose C++ has fewer bytes is compiled as one file: two would not be done sooner.
const MOST_IN_ONE: u64 = 200 << 10;

/// The last file of a core, whose macros the others must not see.
const SHIM: &str = "shim_of_core.inc";

/// The C++ of a core's folder as one file, which includes all, or as two of about one size. The
/// compiler takes longer for Verilator's header than for most files.
fn parts(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "cpp")).collect();
    files.sort_by_key(|path| size(path));
    let count = if files.iter().map(|path| size(path)).sum::<u64>() < MOST_IN_ONE { 1 } else { 2 };
    let part = |first: usize| {
        let last = (first == 0).then_some(SHIM.as_ref());
        let names =
            files.iter().skip(first).step_by(count).filter_map(|file| file.file_name()).chain(last);
        let text: String = names.map(|name| format!("#include {name:?}\n")).collect();
        let path = folder.join(format!("part_{first}.cc"));
        fs::write(&path, text).map(|()| path)
    };
    (0..count).map(part).collect()
}

fn main() {
    // One that is missing would count as changed each time.
    let outside = CORES.iter().flat_map(|core| core.files).filter(|file| file.starts_with("../"));
    for path in ["build.rs", "build", "shim", "cores", "gate"].iter().chain(outside) {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=VERILATOR_ROOT");
    println!("cargo::rerun-if-env-changed=CONTIGO_RTL_CORES");
    let asked = env::var("CONTIGO_RTL_CORES").ok();
    let is_asked = |core: &Core| {
        asked.as_ref().is_none_or(|names| names.split(',').any(|name| name.trim() == core.name))
    };
    for name in asked.iter().flat_map(|names| names.split(',')).map(str::trim) {
        if !CORES.iter().any(|core| core.name == name) {
            println!(
                "cargo::error=CONTIGO_RTL_CORES has {name:?}, which is no core of build/cores.rs"
            );
        }
    }
    let own = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // target/debug/rtl: Clippy's build and that of the tests have folders of their own, and the
    // same C++, which takes two minutes. Cargo lets one of them build at a time.
    let out = own.ancestors().nth(3).unwrap_or(&own).join("rtl");
    if let Err(error) = fs::create_dir_all(&out) {
        println!("cargo::error={}: {error}", out.display());
    }
    let verilator = Verilator::find();
    let missing = |core: &Core| {
        core.files.iter().any(|file| !Path::new(file).exists()) && !core.made_by.is_empty()
    };
    let built = |core: &Core| match &verilator {
        _ if !is_asked(core) => Err("CONTIGO_RTL_CORES does not ask for it".to_owned()),
        _ if missing(core) => {
            Err(format!("its sources are not here ({} makes them)", core.made_by))
        }
        None => Err(match env::var_os("VERILATOR_ROOT") {
            Some(root) => format!("Verilator is not below {} (VERILATOR_ROOT)", root.display()),
            None => "Verilator is not here (Debian: apt-get install verilator)".to_owned(),
        }),
        Some(verilator) => verilator.build(core, &out),
    };
    let (mut table, mut externs) = (String::new(), String::new());
    println!("cargo::rustc-link-search=native={}", out.display());
    for core in CORES {
        let name = core.name;
        match built(core) {
            Ok(()) => {
                println!("cargo::rustc-link-lib=static={name}");
                let _ = writeln!(
                    table,
                    "    (\"{name}\", Ok(Functions {{ new: {name}_new, free: {name}_free, shape: \
                     {name}_shape, step: {name}_step, trace: {name}_trace, mark: {name}_mark }})),"
                );
                let _ = writeln!(
                    externs,
                    "    fn {name}_new(fill: u32) -> *mut Sim;\n    fn {name}_free(sim: *mut Sim);\n    \
                     fn {name}_shape(sim: *const Sim, to: *mut Shape);\n    fn {name}_step(sim: *mut Sim, inputs: *const In, outputs: *mut Out);\n    \
                     fn {name}_trace(sim: *mut Sim, path: *const c_char) -> bool;\n    \
                     fn {name}_mark(sim: *mut Sim, now: u64, half: u64, marks: *const u32);"
                );
            }
            // A mistake in a core of this project's is an error; a tool that is missing is none.
            Err(why) if verilator.is_some() && !missing(core) && is_asked(core) => {
                println!("cargo::error=core {name}: {}", why.replace('\n', "\ncargo::error="));
                return;
            }
            Err(why) => {
                if is_asked(core) {
                    println!("cargo::warning=core {name} is left out: {why}");
                }
                let _ = writeln!(table, "    (\"{name}\", Err({why:?})),");
            }
        }
    }
    if let Some(verilator) = &verilator {
        if let Err(why) = verilator.build_own(&out) {
            println!("cargo::error=Verilator's library: {why}");
        }
        println!("cargo::rustc-link-lib=static={OWN}");
        println!("cargo::rustc-link-lib=stdc++\ncargo::rustc-link-lib=pthread");
    }
    let externs =
        if externs.is_empty() { externs } else { format!("unsafe extern \"C\" {{\n{externs}}}\n") };
    let text =
        format!("{externs}static CORES: &[(&str, Result<Functions, &str>)] = &[\n{table}];\n");
    if let Err(error) = fs::write(own.join("cores.rs"), text) {
        println!("cargo::error=the table of cores: {error}");
    }
}
