//! The Rust that builds for a board: the `rustc` in use where it has the target's standard library,
//! else Debian's, in a sysroot of its own in the cache.

mod debian;

pub use debian::{Installed, host_architecture, make};

use crate::cache_dir::CacheDir;
use crate::command::Tool;
use crate::failure::{Failure, Result};
use crate::packages::{self, Need};
use crate::targets::Target;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Variables for a program that is started, by name.
pub type Variables = Vec<(OsString, OsString)>;

/// Which Rust has a target's standard library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rust {
    /// The one in use; its `rustc`.
    InUse(PathBuf),
    /// The one in the cache; the folder of its wrappers `rustc` and `rustdoc`.
    Private(PathBuf),
}

/// The `rustc` that cargo would run: `$RUSTC`, else the one on the `PATH`.
#[must_use]
pub fn rustc_in_use() -> Option<PathBuf> {
    let named = env::var_os("RUSTC").filter(|value| !value.is_empty());
    packages::find(named.as_deref().and_then(|name| name.to_str()).unwrap_or("rustc"))
}

/// Which Rust there is for `target`; `None` where `cargo cross setup` has work to do.
pub fn find(cache: &CacheDir, target: &Target) -> Result<Option<Rust>> {
    if let Some(rustc) = rustc_in_use()
        && has_std(cache, &rustc, target)?
    {
        return Ok(Some(Rust::InUse(rustc)));
    }
    let folder = debian::wrappers(cache);
    let there = debian::is_current(cache)? && has_std(cache, &folder.join("rustc"), target)?;
    Ok(there.then_some(Rust::Private(folder)))
}

/// The environment that `cargo build` and `cargo test` need for `target`: nothing where the `rustc`
/// in use has its standard library, else `RUSTC` and `RUSTDOC`.
pub fn variables(cache: &CacheDir, target: &Target) -> Result<Variables> {
    match find(cache, target)? {
        Some(Rust::InUse(_)) => Ok(Vec::new()),
        Some(Rust::Private(folder)) => Ok(["rustc", "rustdoc"]
            .map(|tool| (tool.to_uppercase().into(), folder.join(tool).into()))
            .into()),
        None => Err(anyhow::anyhow!(
            "no Rust standard library for {}: `cargo cross setup` gets it",
            target.triple
        )),
    }
}

/// The environment with which `cargo build --target T` links with the C library inside, for a
/// machine that has none.
///
/// The caller takes `RUSTFLAGS` and `CARGO_ENCODED_RUSTFLAGS` out of cargo's environment: cargo
/// would use those instead.
pub fn static_build(cache: &CacheDir, target: &str) -> Result<Variables> {
    let target = Target::named(target)?;
    if let Some(Need { name, package }) =
        target.links_static().into_iter().find(|need| need.place().is_none())
    {
        return Err(Failure::MissingTool { program: name, remedy: remedy(&package) }.into());
    }
    let linker = need(&target.linker(), &target.linker_package())?;
    let mut variables = variables(cache, target)?;
    variables.push((target.variable("LINKER").into(), linker.into()));
    variables.push((target.variable("RUSTFLAGS").into(), "-Ctarget-feature=+crt-static".into()));
    Ok(variables)
}

/// Where `program` is, or the error that names its package.
pub fn need(program: &str, package: &str) -> Result<PathBuf> {
    packages::find(program).ok_or_else(|| {
        Failure::MissingTool { program: program.into(), remedy: remedy(package) }.into()
    })
}

fn remedy(package: &str) -> String {
    format!("`apt install {package}`, or `cargo cross setup` for all at once")
}

/// Has this compiler `target`'s standard library?
fn has_std(cache: &CacheDir, rustc: &Path, target: &Target) -> Result<bool> {
    if !rustc.is_file() {
        return Ok(false);
    }
    let ask = Tool::at(rustc, "asking rustc for its libraries").args([
        "--print",
        "target-libdir",
        "--target",
        target.triple,
    ]);
    // A compiler that does not even know the target has no library for it.
    Ok(ask.output(&cache.log("rustc")?).is_ok_and(|folder| has_libstd(Path::new(folder.trim()))))
}

fn has_libstd(folder: &Path) -> bool {
    let is_std = |name: &str| name.starts_with("libstd-") && name.ends_with(".rlib");
    fs::read_dir(folder).is_ok_and(|files| {
        files.flatten().any(|file| file.file_name().to_str().is_some_and(is_std))
    })
}
