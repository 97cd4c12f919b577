//! Compiles each core of `CORES` with Verilator and a C++ compiler, and writes the list of cores
//! that `src/core.rs` has. A core that cannot be built is listed with the reason, and its tests are
//! skipped by name.

#[path = "build/ports.rs"]
mod ports;

use std::{
    env,
    fmt::Write,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    process::Command,
};

/// A core: a folder of `cores/` whose `top.v` has the module `top`, with the ports of README.md.
struct Core {
    name: &'static str,
    /// Its sources, from this folder. One that ends in `vh` is included by others.
    files: &'static [&'static str],
    /// The parameters of `top`.
    parameters: &'static [&'static str],
    /// A tool wrote it: no lint.
    foreign: bool,
    /// The program that makes sources which are not there.
    made_by: &'static str,
}

const OWN: Core = Core { name: "", files: &[], parameters: &[], foreign: false, made_by: "" };

const GEMM8: &[&str] = &[
    "cores/gemm8/top.v",
    "../examples/gemm8/rtl/gemm8.v",
    "../examples/gemm8/rtl/gemm8_array.v",
    "../examples/gemm8/rtl/gemm8_bursts.v",
    "../examples/gemm8/rtl/gemm8_control.v",
    "../examples/gemm8/rtl/gemm8_drain.v",
    "../examples/gemm8/rtl/gemm8_feed.v",
    "../examples/gemm8/rtl/gemm8_job.v",
    "../examples/gemm8/rtl/gemm8_read.v",
    "../examples/gemm8/rtl/gemm8_regs.vh",
    "../examples/gemm8/rtl/gemm8_requantize.v",
    "../examples/gemm8/rtl/gemm8_row.v",
    "../examples/gemm8/rtl/gemm8_times.v",
    "../examples/gemm8/rtl/gemm8_walk.v",
    "../examples/gemm8/rtl/gemm8_write.v",
    "gate/axi_gate.v",
    "gate/axi_gate_owed.v",
    "gate/axi_gate_registers.v",
];

const GATE: &[&str] = &["cores/gated/top.v", "gate/axi_gate.v", "gate/axi_gate_owed.v", "gate/axi_gate_registers.v"];

const MADE: Core = Core { foreign: true, made_by: "rtl/cores/get", ..OWN };

const NNGEN: Core = Core {
    files: &["cores/nngen/top.v", "cores/nngen/made/mlp.v", "gate/axi_gate.v", "gate/axi_gate_owed.v", "gate/axi_gate_registers.v"],
    ..MADE
};

const LITEX: Core = Core {
    files: &["cores/litex/top.v", "cores/litex/made/dma.v", "gate/axi_gate.v", "gate/axi_gate_owed.v", "gate/axi_gate_registers.v"],
    ..MADE
};

const CORES: &[Core] = &[
    Core { name: "scratch", files: &["cores/scratch/top.v"], ..OWN },
    Core { name: "broken32", files: &["cores/broken/top.v"], parameters: &["DATA_BITS=32"], ..OWN },
    Core { name: "broken512", files: &["cores/broken/top.v"], parameters: &["DATA_BITS=512"], ..OWN },
    Core { name: "gated", files: GATE, parameters: &["GATED=1"], ..OWN },
    Core { name: "ungated", files: GATE, parameters: &["GATED=0"], ..OWN },
    Core { name: "gemm8", files: GEMM8, parameters: &["GATED=0"], ..OWN },
    Core { name: "gemm8_gated", files: GEMM8, parameters: &["GATED=1"], ..OWN },
    Core { name: "litex", parameters: &["GATED=0"], ..LITEX },
    Core { name: "litex_gated", parameters: &["GATED=1"], ..LITEX },
    Core { name: "nngen", parameters: &["GATED=0"], ..NNGEN },
    Core { name: "nngen_gated", parameters: &["GATED=1"], ..NNGEN },
    Core { name: "passes", files: &["cores/passes/top.v"], ..OWN },
    Core {
        name: "s2mm",
        files: &["cores/s2mm/top.v", "cores/s2mm/s2mm_intake.v", "cores/s2mm/s2mm_writer.v"],
        parameters: &["FAULTS=1"],
        ..OWN
    },
];

/// Verilator's part of a core is split into files of about so many operations, so that two
/// processors have work.
const SPLIT: &str = "8000";

/// Verilator: its compiler itself, for which neither Perl nor make is needed, and its library.
struct Verilator {
    program: PathBuf,
    root: PathBuf,
}

impl Verilator {
    /// The one of `VERILATOR_ROOT`, or Debian's.
    fn find() -> Option<Self> {
        let root = PathBuf::from(env::var_os("VERILATOR_ROOT").unwrap_or_else(|| "/usr/share/verilator".into()));
        let programs = [root.join("bin/verilator_bin"), PathBuf::from("/usr/bin/verilator_bin")];
        let program = programs.into_iter().find(|path| path.exists())?;
        root.join("include/verilated.cpp").exists().then_some(Self { program, root })
    }

    /// A C++ build of `files` into `out`, as every part of it is built.
    fn library(&self, name: &str, files: impl IntoIterator<Item = PathBuf>, include: &Path, out: &Path) -> Result<(), String> {
        let mut build = cc::Build::new();
        build.cpp(true).std("c++20").opt_level(1).warnings(false).debug(false).cargo_metadata(false);
        build.define("VL_TIME_CONTEXT", None).define("VM_TRACE", "1").define("VM_COVERAGE", "0").define("VM_SC", "0");
        build.include(include).include("shim").include(self.root.join("include")).include(self.root.join("include/vltstd"));
        build.files(files).out_dir(out).try_compile(name).map_err(|error| error.to_string())
    }

    /// The C++ of `core`, in `folder`.
    fn translate(&self, core: &Core, folder: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.env("VERILATOR_ROOT", &self.root).args(["--cc", "--trace", "--top-module", "top", "--output-split", SPLIT]);
        command.args(["--x-assign", "unique", "--x-initial", "unique"]);
        // A later option overrules an earlier one. Not every bit of an address is for every core.
        let lint: &[_] = if core.foreign { &["-Wno-lint", "-Wno-fatal"] } else { &["-Wall", "-Wno-DECLFILENAME", "-Wno-UNUSEDSIGNAL"] };
        command.args(lint);
        command.args(core.parameters.iter().map(|parameter| format!("-G{parameter}")));
        command.arg("--prefix").arg(format!("V{}", core.name)).arg("-Mdir").arg(folder);
        for file in core.files.iter().map(Path::new) {
            match (file.extension(), file.parent()) {
                (Some(ending), Some(parent)) if ending == "vh" => command.arg(format!("-I{}", parent.display())),
                _ => command.arg(file),
            };
        }
        let done = command.output().map_err(|error| format!("{}: {error}", self.program.display()))?;
        if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
    }

    /// Builds `core` into a library of its name, unless it is there already.
    fn build(&self, core: &Core, out: &Path) -> Result<(), String> {
        let folder = out.join(core.name);
        let stamp = out.join(format!("{}.stamp", core.name));
        let shim = ["shim/ports.h", "shim/shim.cpp", "build.rs", "build/ports.rs"];
        let mut hash = DefaultHasher::new();
        for file in core.files.iter().chain(&shim) {
            fs::read(file).map_err(|error| format!("{file}: {error}"))?.hash(&mut hash);
        }
        (core.parameters, &self.program).hash(&mut hash);
        let hash = hash.finish().to_string();
        if fs::read_to_string(&stamp).is_ok_and(|built| built == hash) {
            return Ok(());
        }
        if !core.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err("a core's name is a word of C++: letters, digits and _".to_owned());
        }
        let _ = fs::remove_dir_all(&folder);
        self.translate(core, &folder)?;
        let name = core.name;
        ports::check(&fs::read_to_string(folder.join(format!("V{name}.h"))).map_err(|error| error.to_string())?)?;
        let shim = folder.join(SHIM);
        let text = format!("#include \"V{name}.h\"\n#define CORE {name}\n#define TOP V{name}\n#include \"shim.cpp\"\n");
        fs::write(&shim, text).map_err(|error| error.to_string())?;
        let files = halves(&folder).map_err(|error| error.to_string())?;
        self.library(name, files, &folder, out)?;
        fs::write(&stamp, hash).map_err(|error| error.to_string())
    }
}

/// The last file of a core, whose macros the others must not see.
const SHIM: &str = "shim_of_core.inc";

/// The C++ of a core's folder as two files of about one size, which include the others. Verilator's
/// header takes the compiler longer than most of its files.
fn halves(folder: &Path) -> io::Result<[PathBuf; 2]> {
    let files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "cpp")).collect();
    files.sort_by_key(|path| fs::metadata(path).map_or(0, |file| file.len()));
    let half = |first: usize, name: &str| {
        let last = (first == 0).then_some(SHIM.as_ref());
        let names = files.iter().skip(first).step_by(2).filter_map(|file| file.file_name()).chain(last);
        let text: String = names.map(|name| format!("#include {name:?}\n")).collect();
        let path = folder.join(name);
        fs::write(&path, text).map(|()| path)
    };
    Ok([half(0, "half_0.cc")?, half(1, "half_1.cc")?])
}

fn main() {
    // One that is missing would count as changed each time.
    let outside = CORES.iter().flat_map(|core| core.files).filter(|file| file.starts_with("../"));
    for path in ["build.rs", "build", "shim", "cores", "gate"].iter().chain(outside) {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=VERILATOR_ROOT");
    let own = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // target/debug/rtl: Clippy's build and that of the tests have folders of their own, and the
    // same C++, which takes two minutes. Cargo lets one of them build at a time.
    let out = own.ancestors().nth(3).unwrap_or(&own).join("rtl");
    if let Err(error) = fs::create_dir_all(&out) {
        println!("cargo::error={}: {error}", out.display());
    }
    let verilator = Verilator::find();
    let missing = |core: &Core| core.files.iter().any(|file| !Path::new(file).exists()) && !core.made_by.is_empty();
    let built = |core: &Core| match &verilator {
        _ if missing(core) => Err(format!("its sources are not here ({} makes them)", core.made_by)),
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
                    "    (\"{name}\", Ok(Functions {{ new: {name}_new, free: {name}_free, shape: {name}_shape, step: {name}_step, trace: {name}_trace, mark: {name}_mark }})),"
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
            Err(why) if verilator.is_some() && !missing(core) => {
                println!("cargo::error=core {name}: {}", why.replace('\n', "\ncargo::error="));
                return;
            }
            Err(why) => {
                println!("cargo::warning=core {name} is left out: {why}");
                let _ = writeln!(table, "    (\"{name}\", Err({why:?})),");
            }
        }
    }
    if let Some(verilator) = &verilator {
        let files = ["verilated.cpp", "verilated_threads.cpp", "verilated_vcd_c.cpp"].map(|file| verilator.root.join("include").join(file));
        let built = out.join("libcontigo_verilated.a");
        let newer = |file: &Path| fs::metadata(file).and_then(|file| file.modified()).ok();
        let is_built = files.iter().map(PathBuf::as_path).chain([Path::new("build.rs")]).all(|file| newer(file) < newer(&built));
        if !is_built && let Err(why) = verilator.library("contigo_verilated", files, &out, &out) {
            println!("cargo::error=Verilator's library: {why}");
        }
        println!("cargo::rustc-link-lib=static=contigo_verilated");
        println!("cargo::rustc-link-lib=stdc++\ncargo::rustc-link-lib=pthread");
    }
    let externs = if externs.is_empty() { externs } else { format!("unsafe extern \"C\" {{\n{externs}}}\n") };
    let text = format!("{externs}static CORES: &[(&str, Result<Functions, &str>)] = &[\n{table}];\n");
    if let Err(error) = fs::write(own.join("cores.rs"), text) {
        println!("cargo::error=the table of cores: {error}");
    }
}
