//! A kernel built from source: make's output goes beside its place in the cache and is renamed into
//! it when all of it is there.

use super::source::Source;
use super::{Kernel, NOTE, Note, config};
use crate::board::Board;
use crate::cpu::Cpu;
use anyhow::{Context, bail};
use contigo_cross::cache_dir::{CacheDir, Staging};
use contigo_cross::command::Tool;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::packages;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// For a whole build on one slow core.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
/// For a compiler to say its version, on a machine that is busy.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// The version of the steps below: a change of their result raises it.
const RECIPE: &str = "1";
/// Digits of the hash in a folder's name.
const KEY_DIGITS: usize = 16;
/// The programs that make runs on this machine, beside the cross compiler.
pub(crate) const TOOLS: &[&str] = &["make", "gcc", "flex", "bison", "bc", "tar", "xz"];

pub(super) fn kernel(
    cache: &CacheDir,
    board: &Board,
    series: &str,
    refresh: bool,
) -> Result<Kernel> {
    let cpu = board.cpu();
    let compiler = compiler(cache, cpu)?;
    let source = Source::of(cache, series, refresh)?;
    let fragments = config::fragments(board)?;
    let name = name(cpu, series, &source, &fragments, &compiler);
    let _lock = cache.lock(&name)?;
    if let Some(kernel) = whole(cache, cpu, &name, &source) {
        return Ok(kernel);
    }
    TOOLS.iter().try_for_each(|tool| packages::need(tool).map(drop))?;
    let staging = cache.stage(&format!("kernels/{name}"))?;
    build(cache, board, &source, &fragments, &staging, &name)?;
    staging.commit()?;
    whole(cache, cpu, &name, &source)
        .with_context(|| format!("the kernel {name} was built, but something is missing in it"))
}

pub(super) fn cached(cache: &CacheDir, board: &Board, series: &str) -> Result<Option<Kernel>> {
    let cpu = board.cpu();
    let compiler = compiler(cache, cpu)?;
    let fragments = config::fragments(board)?;
    Ok(Source::cached(cache, series).and_then(|source| {
        let name = name(cpu, series, &source, &fragments, &compiler);
        whole(cache, cpu, &name, &source)
    }))
}

/// The folder's name: what went into the kernel.
fn name(cpu: Cpu, series: &str, source: &Source, fragments: &str, compiler: &str) -> String {
    let mut hash = Sha256::new();
    for part in [RECIPE, cpu.linux(), &source.version, fragments, compiler] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let key: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{series}-{}", cpu.linux(), key.get(..KEY_DIGITS).unwrap_or(&key))
}

/// The cross compiler in its own words, the first line of them.
fn compiler(cache: &CacheDir, cpu: Cpu) -> Result<String> {
    let ask = Tool::new(&format!("{}gcc", cpu.prefix()), "asking the compiler for its version")?
        .arg("--version")
        .limit(ANSWER_LIMIT);
    let said = ask.output(&cache.log("compiler-version")?)?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

/// A kernel that is all there. The note is written last.
fn whole(cache: &CacheDir, cpu: Cpu, name: &str, source: &Source) -> Option<Kernel> {
    let folder = cache.path().join("kernels").join(name);
    let note: Note = serde_json::from_slice(&fs::read(folder.join(NOTE)).ok()?).ok()?;
    let image = folder.join(cpu.image().1);
    let all = [&image, &folder.join(".config"), &folder.join("Module.symvers")];
    let (release, modules, source) = (note.release, folder.clone(), Some(source.folder.clone()));
    all.iter().all(|file| file.is_file()).then_some(Kernel {
        image,
        release,
        modules,
        folder,
        source,
    })
}

fn build(
    cache: &CacheDir,
    board: &Board,
    source: &Source,
    fragments: &str,
    staging: &Staging,
    name: &str,
) -> Result<()> {
    let cpu = board.cpu();
    let out = staging.path();
    let begun = Instant::now();
    let make = |what: String| -> Result<Tool> {
        let tool = Tool::new("make", what)?.limit(BUILD_LIMIT).writes(out);
        let tool = tool.arg("-C").arg(&source.folder).arg(format!("O={}", out.display()));
        let tool = tool.arg(format!("ARCH={}", cpu.linux()));
        let tool = tool.arg(format!("CROSS_COMPILE={}", cpu.prefix())).env("LC_ALL", "C.UTF-8");
        // The same input gives the same kernel: no date, no user, no machine in it.
        Ok(tool
            .args(["KBUILD_BUILD_TIMESTAMP=@0", "KBUILD_BUILD_USER=contigo"])
            .arg("KBUILD_BUILD_HOST=lab"))
    };
    let fragment = out.join("contigo.config");
    fs::write(&fragment, fragments)
        .map_err(|error| Failure::of_io("writing the kernel's configuration", &fragment, &error))?;
    let log = cache.log(&format!("kernel-{name}-config"))?;
    make(format!("configuring Linux {} for {}", source.version, board.name))?
        .arg("allnoconfig")
        .arg(format!("KCONFIG_ALLCONFIG={}", fragment.display()))
        .run(&log)?;
    let read = |file: &Path| {
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
    };
    config::check(board, fragments, &read(&out.join(".config"))?)?;

    let log = cache.log(&format!("kernel-{name}"))?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let lines = make(format!("building Linux {} for {}", source.version, board.name))?
        .arg(format!("-j{jobs}"))
        .args([cpu.image().0, "modules"])
        .steps(board.about.kernel.steps)
        .run(&log)?;
    let release = read(&out.join("include/config/kernel.release"))?.trim().to_owned();
    slim(out).map_err(|error| Failure::of_io("deleting object files", out, &error))?;
    if !out.join(cpu.image().1).is_file() {
        let (image, out, log) = (cpu.image().1, out.display(), log.display());
        bail!("make ended well, but there is no {image} in {out}; the log is {log}");
    }
    let package = format!("linux-source {}", source.version);
    let note = Note { release, package, lines, seconds: begun.elapsed().as_secs() };
    let file = out.join(NOTE);
    fs::write(&file, serde_json::to_string_pretty(&note)?)
        .map_err(|error| Failure::of_io("noting the kernel's release", &file, &error))
}

/// Deletes what neither a boot nor a module built outside the tree needs: object files, archives of
/// them, and the kernel before it is compressed.
fn slim(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        // kbuild's own programs stay as they are: make would build them anew.
        if kind.is_dir() && entry.file_name() != "scripts" {
            slim(&path)?;
        } else if kind.is_file() && is_left_over(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn is_left_over(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(".tmp_")
        || name == "vmlinux"
        || name == "Image"
        || [".o", ".a", ".o.cmd", ".a.cmd"].iter().any(|end| name.ends_with(end))
}
