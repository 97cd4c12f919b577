//! Debian's Rust for the boards: its standard libraries for foreign processors, unpacked beside its
//! own compiler.
//!
//! Debian builds one standard library for each of its architectures, and a `rustc` can only use
//! what it was built together with. So the version must be the same to the letter. Where the
//! `rustc` in use is Debian's, its libraries are added; where it is not, Debian's `rustc` comes
//! along. Nothing is installed: `rust/` in the cache has
//!
//! | folder | content |
//! |---|---|
//! | `host/` | Debian's compiler and what it needs, where the machine's own will not do |
//! | `std-armhf/`, `std-arm64/` | one processor's standard library |
//! | `sysroot/` | links to all of these as a compiler looks for them; its wrappers in `bin/` |

use crate::cache_dir::CacheDir;
use crate::command::Tool;
use crate::download::Packages;
use crate::failure::{Failure, Result};
use crate::packages;
use crate::targets::{self, Target};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The oldest Rust that builds Contigo: `rust-version` in `Cargo.toml`.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Debian's packages of the compiler, and of the standard library beside each. The first is newer
/// on stable releases: it is kept up with the browsers.
const COMPILERS: [(&str, &str); 2] =
    [("rustc-web", "libstd-rust-web-dev"), ("rustc", "libstd-rust-dev")];

/// The packages that every machine that can link has, and that must agree with the machine's own
/// loader.
const NOT_UNPACKED: [&str; 3] = ["libc6", "libgcc-s1", "libstdc++6"];

/// A file of `sysroot/` and of the folders beside it: which version they are.
const VERSION: &str = "version";

/// Debian's compiler where it is installed and in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    rustc: PathBuf,
    std_package: &'static str,
    version: String,
}

impl Installed {
    /// Is this `rustc` one of Debian's packages?
    pub fn of(cache: &CacheDir, rustc: &Path) -> Result<Option<Self>> {
        let Some(dpkg) = packages::find("dpkg-query") else { return Ok(None) };
        let log = cache.log("dpkg-query")?;
        let owner =
            Tool::at(&dpkg, "asking dpkg").arg("-S").arg(rustc).output(&log).unwrap_or_default();
        let Some((package, std_package)) =
            COMPILERS.into_iter().find(|(package, _)| owner.split(':').next() == Some(package))
        else {
            return Ok(None);
        };
        let version =
            Tool::at(&dpkg, "asking dpkg").args(["-W", "-f=${Version}", package]).output(&log)?;
        Ok(Some(Self { rustc: rustc.into(), std_package, version: version.trim().to_owned() }))
    }
}

/// The compiler that the libraries go with.
struct Compiler {
    rustc: PathBuf,
    rustdoc: PathBuf,
    /// Where its shared libraries are, where the loader would not find them.
    libraries: Option<PathBuf>,
    /// The folder that has `rustlib/`.
    lib: PathBuf,
    std_package: &'static str,
    version: String,
}

/// The folder of the wrappers, which need not be there.
pub(super) fn wrappers(cache: &CacheDir) -> PathBuf {
    cache.path().join("rust/sysroot/bin")
}

/// Is the compiler behind the wrapper still the one that the sysroot was made for?
pub(super) fn is_current(cache: &CacheDir) -> Result<bool> {
    let rustc = wrappers(cache).join("rustc");
    let Ok(made_for) = fs::read_to_string(cache.path().join("rust/sysroot").join(VERSION)) else {
        return Ok(false);
    };
    Ok(rustc.is_file() && said_by(cache, &rustc).is_ok_and(|said| said == made_for))
}

/// Makes the sysroot for these targets, from what Debian has. `installed` is the compiler in use,
/// where that is Debian's.
///
/// The error says which package cannot be had, and for which architecture.
pub fn make(
    cache: &CacheDir,
    wanted: &[&Target],
    installed: Option<&Installed>,
) -> Result<PathBuf> {
    let _lock = cache.lock("rust")?;
    let compiler = match installed {
        Some(installed) => Compiler {
            rustc: installed.rustc.clone(),
            rustdoc: installed.rustc.with_file_name("rustdoc"),
            libraries: None,
            lib: PathBuf::from("/usr/lib"),
            std_package: installed.std_package,
            version: installed.version.clone(),
        },
        None => host(cache)?,
    };
    // The packages that could be had are of use, also where another could not.
    let unpacked: Vec<Result<()>> =
        wanted.iter().map(|target| std_of(cache, &compiler, target)).collect();
    let folder = compose(cache, &compiler)?;
    unpacked.into_iter().collect::<Result<()>>()?;
    Ok(folder)
}

/// Debian's compiler in a folder of its own: unpacked now, or by an earlier run.
fn host(cache: &CacheDir) -> Result<Compiler> {
    let architecture = host_architecture(cache)?;
    let from = Packages::new(cache, &architecture);
    let (package, std_package, version) = newest(&from, &architecture)?;
    let name = "rust/host";
    let mut place = cache.path().join(name);
    if fs::read_to_string(place.join(VERSION)).ok().as_deref() != Some(&version) {
        let staging = cache.stage(name)?;
        let mut all = vec![package.to_owned()];
        all.extend(from.with_all_it_needs(std_package)?);
        all.retain(|name| {
            !(NOT_UNPACKED.contains(&name.as_str())
                || name.starts_with("gcc-") && name.ends_with("-base"))
        });
        for name in &all {
            from.unpack(name, staging.path())?;
        }
        note(staging.path(), VERSION, &version)?;
        place = staging.commit()?;
    }
    let libraries = driver(&place)
        .ok_or_else(|| anyhow::anyhow!("Debian's {package} {version} has no librustc_driver"))?;
    let bin = place.join("usr/bin");
    let (rustc, rustdoc, lib) = (bin.join("rustc"), bin.join("rustdoc"), place.join("usr/lib"));
    Ok(Compiler { rustc, rustdoc, libraries: Some(libraries), lib, std_package, version })
}

/// The first of Debian's compilers that is new enough.
fn newest(from: &Packages<'_>, architecture: &str) -> Result<(&'static str, &'static str, String)> {
    let mut seen = Vec::new();
    for (package, std_package) in COMPILERS {
        match from.version(package)? {
            Some(version) if new_enough(&version) => return Ok((package, std_package, version)),
            Some(version) => seen.push(format!("{package} is {version}")),
            None => seen.push(format!("{package} is not there")),
        }
    }
    let reason =
        format!("Rust {OLDEST} or newer is needed, and of Debian's packages {}", seen.join(", "));
    Err(Failure::NoPackage { package: "rustc".into(), architecture: architecture.into(), reason }
        .into())
}

/// Unpacks the standard library of `target`, in the version of `compiler`, where an earlier run has
/// not.
fn std_of(cache: &CacheDir, compiler: &Compiler, target: &Target) -> Result<()> {
    let name = format!("rust/std-{}", target.debian);
    if fs::read_to_string(cache.path().join(&name).join(VERSION))
        .is_ok_and(|version| version == compiler.version)
    {
        return Ok(());
    }
    let from = Packages::new(cache, target.debian);
    let found = from.version(compiler.std_package)?;
    let package = match &found {
        // An older version may still be there beside the newest.
        Some(version) if *version != compiler.version => {
            format!("{}={}", compiler.std_package, compiler.version)
        }
        _ => compiler.std_package.to_owned(),
    };
    let staging = cache.stage(&name)?;
    from.unpack(&package, staging.path()).map_err(|error| match found {
        Some(version) if version != compiler.version => Failure::NoPackage {
            package: compiler.std_package.into(),
            architecture: target.debian.into(),
            reason: format!(
                "apt has {version} for {}, and the compiler is {}: put {}_{}_{}.deb into {}",
                target.debian,
                compiler.version,
                compiler.std_package,
                compiler.version,
                target.debian,
                cache.path().join("packages").display()
            ),
        }
        .into(),
        _ => error,
    })?;
    note(staging.path(), VERSION, &compiler.version)?;
    staging.commit().map(drop)
}

/// Puts together what is there for `compiler`, in the layout that a compiler looks for.
fn compose(cache: &CacheDir, compiler: &Compiler) -> Result<PathBuf> {
    let staging = cache.stage("rust/sysroot")?;
    let failed = |error| Failure::of_io("making the sysroot", staging.path(), &error);
    let (bin, rustlib) = (staging.path().join("bin"), staging.path().join("lib/rustlib"));
    for folder in [&bin, &rustlib] {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    for entry in fs::read_dir(compiler.lib.join("rustlib")).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        symlink(entry.path(), rustlib.join(entry.file_name())).map_err(failed)?;
    }
    for target in targets::ALL {
        let std = cache.path().join(format!("rust/std-{}", target.debian));
        let (folder, link) =
            (std.join("usr/lib/rustlib").join(target.triple), rustlib.join(target.triple));
        let fits =
            fs::read_to_string(std.join(VERSION)).is_ok_and(|version| version == compiler.version);
        if fits && folder.is_dir() && !link.exists() {
            symlink(folder, link).map_err(failed)?;
        }
    }
    let sysroot = cache.place("rust/sysroot")?;
    for (name, program) in [("rustc", &compiler.rustc), ("rustdoc", &compiler.rustdoc)] {
        let file = bin.join(name);
        note(&bin, name, &wrapper(&sysroot, program, compiler.libraries.as_deref()))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    note(staging.path(), VERSION, &said_by(cache, &bin.join("rustc"))?)?;
    Ok(staging.commit()?.join("bin"))
}

/// A program that runs `program` with the sysroot. The folders that cargo puts into LD_LIBRARY_PATH
/// stay there.
fn wrapper(sysroot: &Path, program: &Path, libraries: Option<&Path>) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let found = libraries.map(|folder| {
        let folder = quoted(folder);
        format!(
            "LD_LIBRARY_PATH={folder}\"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n\
             export LD_LIBRARY_PATH\n"
        )
    });
    format!(
        "#!/bin/sh\n# Made by `cargo cross setup`: Debian's compiler, and beside its own standard \
         library those for the boards.\n{}exec {} --sysroot {} \"$@\"\n",
        found.unwrap_or_default(),
        quoted(program),
        quoted(sysroot)
    )
}

/// All that this compiler says of its version.
fn said_by(cache: &CacheDir, rustc: &Path) -> Result<String> {
    Tool::at(rustc, "asking rustc for its version").arg("-vV").output(&cache.log("rustc-version")?)
}

/// Where the compiler's own shared library is: in a folder named by Debian's multiarch.
fn driver(host: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(host.join("usr/lib")).ok()?.flatten().map(|entry| entry.path());
    let has_driver = |folder: &PathBuf| {
        let is_driver = |name: &str| name.starts_with("librustc_driver-");
        fs::read_dir(folder).is_ok_and(|files| {
            files.flatten().any(|file| file.file_name().to_str().is_some_and(is_driver))
        })
    };
    folders.into_iter().find(has_driver)
}

/// Debian's name of this machine's processor.
pub fn host_architecture(cache: &CacheDir) -> Result<String> {
    let dpkg = packages::find("dpkg").ok_or_else(|| {
        anyhow::anyhow!("there is no dpkg here, so Debian's packages are no help")
    })?;
    let answer = Tool::at(&dpkg, "asking dpkg for the architecture")
        .arg("--print-architecture")
        .output(&cache.log("dpkg")?)?;
    Ok(answer.trim().to_owned())
}

/// `1.96.0+dfsg1-1` is new enough where 1.88 is the oldest.
fn new_enough(version: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        let plain = text
            .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .next()
            .unwrap_or_default();
        plain.split('.').map_while(|number| number.parse().ok()).collect()
    };
    numbers(version) >= numbers(OLDEST)
}

fn note(folder: &Path, name: &str, text: &str) -> Result<()> {
    let file = folder.join(name);
    fs::write(&file, text).map_err(|error| Failure::of_io("writing", &file, &error))
}

#[cfg(test)]
mod tests {
    use super::{new_enough, wrapper};
    use std::path::Path;

    #[test]
    fn a_version_is_compared_by_its_numbers() {
        for new in ["1.88.0", "1.88", "1.96.0+dfsg1-1~deb12u2", "1.100.0-1", "2.0"] {
            assert!(new_enough(new), "{new}");
        }
        for old in ["1.85.0+dfsg3-1~deb12u3", "1.9.0", "1.87.99", "0.99", "", "dfsg"] {
            assert!(!new_enough(old), "{old}");
        }
    }

    #[test]
    fn a_folder_of_any_name_is_quoted() {
        let text = wrapper(Path::new("/it's here"), Path::new("/a b/rustc"), None);
        assert!(text.contains(r#"exec '/a b/rustc' --sysroot '/it'\''s here' "$@""#), "{text}");
    }
}
