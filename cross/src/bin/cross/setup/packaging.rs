//! The tools of `cargo cross package`, beside those of a build: the device tree's compiler,
//! Debian's packaging tools, and maturin.

use super::{
    Got, State,
    apt::{self, Missing},
};
use crate::package::{MATURIN, PROGRAMS};
use contigo_cross::{cache_dir::CacheDir, packages};

fn missing() -> Missing {
    let absent = PROGRAMS.iter().filter(|program| packages::find(program).is_none());
    absent.map(|program| ((*program).to_owned(), packages::of(program).to_owned())).collect()
}

/// Installs the tools that are missing where this user may.
pub(super) fn tools(cache: &CacheDir, only_say: bool) -> Got {
    apt::get(cache, only_say, missing, PROGRAMS.join(", "))
}

/// Installs maturin into the cache.
pub(super) fn maturin(cache: &CacheDir, only_say: bool) -> Got {
    if let Some(found) = MATURIN.find(cache) {
        return Ok((State::Ready, found.join(MATURIN.program).display().to_string()));
    }
    if only_say {
        return Ok((State::Todo, "pip install maturin (10 MB) into the cache".into()));
    }
    Ok((State::Installed, MATURIN.install(cache)?.join(MATURIN.program).display().to_string()))
}
