//! The C library, and wheels that were built for another one.

use super::{Check, Facts, Outcome, fine, none_of, note, skipped};

/// The version that `cargo cross build` links against.
const OLDEST: (u32, u32) = (2, 27);
/// The paths of the library: in merged and split roots, in Debian's and in other folders.
const PLACES: [&str; 8] = [
    "lib/aarch64-linux-gnu",
    "lib/arm-linux-gnueabihf",
    "lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/arm-linux-gnueabihf",
    "usr/lib/x86_64-linux-gnu",
    "lib64",
    "lib",
];
/// The folders of packages; each may hold the folders of several Pythons.
const ROOTS: [&str; 4] =
    ["usr/lib", "usr/local/lib", "usr/local/share/pynq-venv/lib", "opt/venv/lib"];
/// The same in a user's folder: pip's own folder, and the usual names of an environment.
const HOMES: [&str; 4] = [".local/lib", "venv/lib", ".venv/lib", "env/lib"];
/// The most users whose folders are searched: a board has a few.
const USERS_MAX: usize = 16;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "glibc-old",
        title: "the C library is 2.27 or newer",
        cause: "Contigo's programs for boards are linked against 2.27, and older ones say GLIBC \
                not found.",
        cure: "cargo cross build --board BOARD --static, or a newer image",
        source: "https://github.com/lief-project/LIEF/issues/904",
        look: old,
    },
    Check {
        id: "wheel-glibc",
        title: "the wheel's C library is not newer than the machine's",
        cause: "The wheel was installed by hand or copied, and its import says GLIBC not found.",
        cure: "pip install --force-reinstall the wheel with manylinux_2_27 in its name",
        source: "https://github.com/sighingnow/libclang/issues/59",
        look: wheel,
    },
];

/// The library has its version in a text: "stable release version 2.36."
fn version(facts: &Facts<'_>) -> Option<(u32, u32)> {
    let mark = b"stable release version ";
    PLACES.iter().find_map(|place| {
        let bytes = facts.machine.bytes(format!("{place}/libc.so.6"))?;
        let at = bytes.windows(mark.len()).position(|window| window == mark)?;
        let text: Vec<_> = bytes.iter().skip(at + mark.len()).take(8).copied().collect();
        numbers(&String::from_utf8_lossy(&text))
    })
}

/// 2.27 or 2_27, at the beginning of `text`.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

fn old(facts: &Facts<'_>) -> Outcome {
    match version(facts) {
        None => skipped("no glibc"),
        Some((major, minor)) if (major, minor) < OLDEST => note(format!("{major}.{minor}")),
        Some((major, minor)) => fine(format!("{major}.{minor}")),
    }
}

fn wheel(facts: &Facts<'_>) -> Outcome {
    let Some(own) = version(facts) else { return skipped("no glibc") };
    let mut tags = Vec::new();
    let users = facts
        .machine
        .folders("home")
        .into_iter()
        .take(USERS_MAX)
        .map(|user| format!("home/{user}"));
    let homes = users
        .chain(["root".to_owned()])
        .flat_map(|home| HOMES.map(|folder| format!("{home}/{folder}")));
    for root in homes.chain(ROOTS.map(str::to_owned)) {
        for python in facts.machine.list(&root).iter().filter(|name| name.starts_with("python3")) {
            for packages in ["dist-packages", "site-packages"] {
                let folder = format!("{root}/{python}/{packages}");
                let ours =
                    facts.machine.list(&folder).into_iter().filter(|name| {
                        name.starts_with("contigo-") && name.ends_with(".dist-info")
                    });
                let text =
                    ours.filter_map(|name| facts.machine.text(format!("{folder}/{name}/WHEEL")));
                tags.extend(text.flat_map(|text| {
                    text.lines()
                        .filter_map(|line| Some(line.strip_prefix("Tag: ")?.to_owned()))
                        .collect::<Vec<_>>()
                }));
            }
        }
    }
    if tags.is_empty() {
        return skipped("no wheel of Contigo");
    }
    let newer = |tag: &&String| {
        tag.split_once("manylinux_")
            .and_then(|(_, rest)| numbers(rest))
            .is_some_and(|wants| wants > own)
    };
    let bad: Vec<_> = tags
        .iter()
        .filter(newer)
        .map(|tag| format!("{tag}, the machine has {}.{}", own.0, own.1))
        .collect();
    none_of(&bad, tags.join(", "))
}
