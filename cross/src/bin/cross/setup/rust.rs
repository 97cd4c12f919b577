//! Rust's standard libraries for the boards: from rustup, else from Debian.

use super::{Got, State};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::{Tool, last_lines};
use contigo_cross::failure::{Failure, Result};
use contigo_cross::packages;
use contigo_cross::targets::Target;
use contigo_cross::toolchain::{self, Installed, Rust};
use std::time::Duration;

/// For 60 MB on a slow line.
const RUSTUP_LIMIT: Duration = Duration::from_secs(1800);
/// Lines of rustup's log that are searched for what went wrong.
const LOG_LINES: usize = 50;

pub(super) fn get(cache: &CacheDir, only_say: bool, all: &[&'static Target]) -> Got {
    let missing = |cache| missing(cache, all);
    let wanted = missing(cache)?;
    if wanted.is_empty() {
        return Ok((State::Ready, from_where(cache, all)?));
    }
    let names = wanted.iter().map(|target| target.triple).collect::<Vec<_>>().join(" ");
    let rustup = packages::find("rustup");
    if only_say {
        let debian = "Debian's libraries into the cache";
        let what = if rustup.is_some() {
            format!("rustup target add {names}; failing that, {debian}")
        } else {
            format!("{debian}: {names}")
        };
        return Ok((State::Todo, what));
    }
    let no_rustup = match rustup {
        None => "rustup is not installed".to_owned(),
        Some(rustup) => {
            let log = cache.log("rustup")?;
            let add =
                Tool::at(&rustup, format!("rustup target add {names}")).args(["target", "add"]);
            match add.args(wanted.iter().map(|target| target.triple)).limit(RUSTUP_LIMIT).run(&log)
            {
                Ok(_) => "rustup's toolchain is not the one in use".to_owned(),
                Err(error) if matches!(error.downcast_ref(), Some(Failure::Interrupted)) => {
                    return Err(error);
                }
                Err(_) => format!("rustup says \"{}\"", said(&last_lines(&log, LOG_LINES))),
            }
        }
    };
    let wanted = missing(cache)?;
    if !wanted.is_empty()
        && let Err(error) = from_debian(cache, &wanted, all)
    {
        if matches!(error.downcast_ref(), Some(Failure::Interrupted)) {
            return Err(error);
        }
        // One may have been had all the same.
        let left = missing(cache)?.iter().map(|target| target.triple).collect::<Vec<_>>().join(" ");
        return Err(anyhow::anyhow!("no Rust standard library for {left}: {no_rustup}; {error:#}"));
    }
    Ok((State::Installed, from_where(cache, all)?))
}

/// The targets that no Rust here has.
fn missing(cache: &CacheDir, all: &[&'static Target]) -> Result<Vec<&'static Target>> {
    let mut missing = Vec::new();
    for &target in all {
        if toolchain::find(cache, target)?.is_none() {
            missing.push(target);
        }
    }
    Ok(missing)
}

fn from_debian(
    cache: &CacheDir,
    wanted: &[&'static Target],
    all: &[&'static Target],
) -> Result<()> {
    let installed = match toolchain::rustc_in_use() {
        Some(rustc) => Installed::of(cache, &rustc)?,
        None => None,
    };
    toolchain::make(cache, wanted, installed.as_ref())?;
    match missing(cache, all)?.as_slice() {
        [] => Ok(()),
        [target, ..] => {
            Err(anyhow::anyhow!("Debian's Rust does not find its library for {}", target.triple))
        }
    }
}

/// Which Rust has them, and how to make cargo use it where that is not the one in use.
fn from_where(cache: &CacheDir, all: &[&'static Target]) -> Result<String> {
    let mut lines: Vec<(Option<Rust>, Vec<&str>)> = Vec::new();
    for target in all {
        let found = toolchain::find(cache, target)?;
        match lines.iter_mut().find(|(rust, _)| *rust == found) {
            Some((_, triples)) => triples.push(target.triple),
            None => lines.push((found, vec![target.triple])),
        }
    }
    let line = |(rust, triples): (Option<Rust>, Vec<&str>)| {
        let of = match rust {
            Some(Rust::InUse(rustc)) => rustc.display().to_string(),
            Some(Rust::Private(folder)) => {
                let folder = folder.display();
                format!(
                    "Debian's\nfor `cargo test`: export RUSTC={folder}/rustc \
                     RUSTDOC={folder}/rustdoc"
                )
            }
            None => "none".to_owned(),
        };
        format!("{}: {of}", triples.join(", "))
    };
    Ok(lines.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn said(log: &[String]) -> &str {
    let error = log.iter().find_map(|line| line.strip_prefix("error: "));
    error.or(log.last().map(String::as_str)).unwrap_or("nothing")
}
