//! Cross compilers with their C libraries, and the emulators that tests run in.

use super::{
    Got,
    apt::{self, Missing},
};
use contigo_cross::{
    cache_dir::CacheDir,
    packages::Need,
    targets::{self, Target},
};

/// The emulators' package.
const EMULATORS: &str = "qemu-user-static";

fn missing() -> Missing {
    let of = |target: &Target| {
        let emulator = Need { name: target.emulator.to_owned(), package: EMULATORS.to_owned() };
        target.links_static().into_iter().chain([emulator])
    };
    let missing = targets::ALL.into_iter().flat_map(of).filter(|need| need.place().is_none());
    missing.map(|Need { name, package }| (name, package)).collect()
}

/// Installs what is missing where this user may; else the error says what to install.
pub(super) fn get(cache: &CacheDir, only_say: bool) -> Got {
    let ready =
        targets::ALL.map(|target| format!("{}, {}", target.linker(), target.emulator)).join(", ");
    apt::get(cache, only_say, missing, ready)
}
