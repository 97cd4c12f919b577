//! Programs from Debian's packages, which apt installs on the machine as root: linkers, emulators
//! and packaging tools; and maturin, which goes into the cache.

use super::{Got, State};
use crate::package::{MATURIN, PROGRAMS};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::Result;
use contigo_cross::packages::{self, Need};
use contigo_cross::targets::{self, Target};
use std::time::Duration;

/// The emulators' package.
const EMULATORS: &str = "qemu-user-static";

fn missing_linkers() -> Missing {
    let of = |target: &Target| {
        let emulator = Need { name: target.emulator.to_owned(), package: EMULATORS.to_owned() };
        target.links_static().into_iter().chain([emulator])
    };
    let missing = targets::ALL.into_iter().flat_map(of).filter(|need| need.place().is_none());
    missing.map(|Need { name, package }| (name, package)).collect()
}

/// Cross compilers with their C libraries, and the emulators that tests run in.
pub(super) fn linkers(cache: &CacheDir, only_say: bool) -> Got {
    let ready =
        targets::ALL.map(|target| format!("{}, {}", target.linker(), target.emulator)).join(", ");
    get(cache, only_say, missing_linkers, ready)
}

fn missing_tools() -> Missing {
    let absent = PROGRAMS.iter().filter(|program| packages::find(program).is_none());
    absent.map(|program| ((*program).to_owned(), packages::of(program).to_owned())).collect()
}

/// The tools of `cargo cross package` beside those of a build: the device tree's compiler and
/// Debian's packaging tools.
pub(super) fn tools(cache: &CacheDir, only_say: bool) -> Got {
    get(cache, only_say, missing_tools, PROGRAMS.join(", "))
}

pub(super) fn maturin(cache: &CacheDir, only_say: bool) -> Got {
    if let Some(found) = MATURIN.find(cache) {
        return Ok((State::Ready, found.join(MATURIN.program).display().to_string()));
    }
    if only_say {
        return Ok((State::Todo, "pip install maturin (10 MB) into the cache".into()));
    }
    Ok((State::Installed, MATURIN.install(cache)?.join(MATURIN.program).display().to_string()))
}

/// For 200 MB of packages on a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(3600);

/// Missing programs: each with its package.
type Missing = Vec<(String, String)>;

/// Installs what is missing where this user may; else the error says what to install. Where nothing
/// is, the answer is `ready`.
fn get(cache: &CacheDir, only_say: bool, look: fn() -> Missing, ready: String) -> Got {
    let missing = look();
    if missing.is_empty() {
        return Ok((State::Ready, ready));
    }
    let mut names: Vec<_> = missing.iter().map(|(_, package)| package.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let command = format!("apt install {}", names.join(" "));
    if only_say {
        return Ok((State::Todo, command));
    }
    let wanted = missing.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if packages::find("apt-get").is_none() {
        return Err(anyhow::anyhow!("not installed: {wanted}; on Debian and Ubuntu: `{command}`"));
    }
    if !nix::unistd::Uid::effective().is_root() {
        return Err(anyhow::anyhow!("not installed: {wanted}; as root: `{command}`"));
    }
    install(cache, &names)?;
    let left = look();
    if left.is_empty() {
        return Ok((State::Installed, names.join(", ")));
    }
    let left = left.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    Err(anyhow::anyhow!("apt installed {}, and there is still no {left}", names.join(" ")))
}

/// apt's lists may be old, or missing as in a fresh container: then they are read, and it is tried
/// once more.
fn install(cache: &CacheDir, names: &[&str]) -> Result<()> {
    let apt = |what: &str| {
        Ok::<_, anyhow::Error>(
            Tool::new("apt-get", what.to_owned())?
                .env("DEBIAN_FRONTEND", "noninteractive")
                .limit(INSTALL_LIMIT),
        )
    };
    let what = format!("installing {}", names.join(" "));
    let install = || {
        apt(&what)?
            .args(["install", "--yes", "--no-install-recommends"])
            .args(names)
            .writes("/usr")
            .run(&cache.log("apt-install")?)
    };
    if install().is_ok() {
        return Ok(());
    }
    apt("reading the package lists")?.arg("update").run(&cache.log("apt-update")?)?;
    install().map(drop)
}
