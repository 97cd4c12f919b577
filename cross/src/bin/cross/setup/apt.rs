//! Debian's packages, which apt installs on the machine as root.

use super::{Got, State};
use contigo_cross::{cache_dir::CacheDir, command::Tool, failure::Result, packages};
use std::time::Duration;

/// For 200 MB of packages on a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(3600);

/// Missing programs: each with its package.
pub(super) type Missing = Vec<(String, String)>;

/// Installs what is missing where this user may; else the error says what to install. Where nothing
/// is, the answer is `ready`.
pub(super) fn get(cache: &CacheDir, only_say: bool, look: fn() -> Missing, ready: String) -> Got {
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
