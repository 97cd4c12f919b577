//! Packages of another release of Debian's than this machine's, with its backports.

use super::Packages;
use crate::cache_dir::CacheDir;
use crate::failure::{Failure, Result};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Debian's keys, of all releases, where Debian puts them.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The file with the sources, in the private state.
const SOURCES: &str = "sources.list";

impl<'c> Packages<'c> {
    /// Packages of the release of this name, those of its backports first, from the mirror that
    /// this machine has. They are for programs that bring their own libraries.
    pub fn backports(cache: &'c CacheDir, architecture: &str, release: &str) -> Self {
        Self { release: Some(release.into()), ..Self::new(cache, architecture) }
    }

    /// The newest version of a package and of all that it needs, unpacked into the folder `into`.
    /// The answer is its own version.
    pub fn unpack_with_all_it_needs(&self, package: &str, into: &Path) -> Result<String> {
        let (by_hand, mut wanted) = (self.by_hand("")?, self.with_all_it_needs(package)?);
        let folder = self.cache.scratch()?;
        let mut files = Vec::new();
        wanted.retain(|name| match by_hand.iter().rfind(|(given, _)| given == name) {
            Some((_, file)) => {
                files.push(file.clone());
                false
            }
            None => true,
        });
        if !wanted.is_empty() {
            files.extend(self.download(package, &wanted, &folder)?);
        }
        let mut version = None;
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.split('_').next().unwrap_or_default();
            let unpacked = self.unpack_file(name, &file, into)?;
            version = version.or_else(|| (name == package).then_some(unpacked.version));
        }
        version.ok_or_else(|| self.cannot_be_had(package, "apt-get did not download it".into()))
    }

    /// The options that keep this machine's own sources out.
    pub(super) fn sources(&self, home: &Path) -> Vec<OsString> {
        let Some(release) = &self.release else { return Vec::new() };
        let mut list = OsString::from("Dir::Etc::sourcelist=");
        list.push(home.join(SOURCES));
        let plain = [
            "-o",
            "Dir::Etc::sourceparts=/dev/null",
            "-o",
            &format!("APT::Default-Release={release}-backports"),
            "-o",
        ];
        plain.into_iter().map(OsString::from).chain([list]).collect()
    }

    /// Writes the list of sources: this machine's mirror of Debian, with another release.
    pub(super) fn choose_sources(&self) -> Result<()> {
        let Some(release) = &self.release else { return Ok(()) };
        let here = Packages::new(self.cache, &self.architecture);
        here.update(release)?;
        let asked = here.apt("apt-get", "looking for Debian's mirror".into())?.args([
            "indextargets",
            "--format",
            "$(ORIGIN) $(RELEASE) $(REPO_URI)",
        ]);
        let answer = asked.output(&here.log("mirror")?)?;
        let mirror = answer
            .lines()
            .find_map(mirror)
            .ok_or_else(|| self.cannot_be_had(release, "apt has no mirror of Debian".into()))?;
        let keys =
            if Path::new(KEYS).is_file() { format!("[signed-by={KEYS}] ") } else { String::new() };
        let text = [release.clone(), format!("{release}-backports")]
            .map(|suite| format!("deb {keys}{mirror} {suite} main\n"))
            .concat();
        let file = self.cache.place(format!("apt/{}/{SOURCES}", self.own()))?;
        fs::write(&file, text)
            .map_err(|error| Failure::of_io("writing apt's sources", &file, &error))
    }
}

/// The mirror in a line `ORIGIN RELEASE URI`, where that is Debian's, and not that of its security
/// updates.
fn mirror(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let (origin, release, uri) = (words.next()?, words.next()?, words.next()?);
    (origin == "Debian" && !release.ends_with("-security")).then_some(uri)
}

#[cfg(test)]
mod tests {
    use super::mirror;

    #[test]
    fn mirror_is_debians_not_securitys() {
        assert_eq!(mirror("Debian bookworm http://mirror/debian/"), Some("http://mirror/debian/"));
        for other in [
            "Debian bookworm-security http://mirror/security/",
            "Another bookworm http://other/",
            "",
            "Debian bookworm",
        ] {
            assert_eq!(mirror(other), None, "{other}");
        }
    }
}
