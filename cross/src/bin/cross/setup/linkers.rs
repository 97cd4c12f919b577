//! Cross compilers with their C libraries, and the emulators that tests run in.

use super::{
    Got,
    apt::{self, Missing},
};
use contigo_cross::{
    cache_dir::CacheDir,
    packages,
    targets::{self, Target},
};

/// The emulators' package.
const EMULATORS: &str = "qemu-user-static";

fn missing() -> Missing {
    let of = |target: &Target| {
        let libc = target.static_libc();
        [
            packages::find(&target.linker()).is_none().then(|| (target.linker(), target.linker_package())),
            (!libc.is_file()).then(|| (libc.display().to_string(), target.libc_package())),
            packages::find(target.emulator).is_none().then(|| (target.emulator.to_owned(), EMULATORS.to_owned())),
        ]
    };
    targets::ALL.into_iter().flat_map(of).flatten().collect()
}

/// Installs what is missing where this user may; else the error says what to install.
pub(super) fn get(cache: &CacheDir, only_say: bool) -> Got {
    let ready = targets::ALL.map(|target| format!("{}, {}", target.linker(), target.emulator)).join(", ");
    apt::get(cache, only_say, missing, ready)
}
