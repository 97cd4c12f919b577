//! Apt's facts about a package, without downloading it.

use super::Packages;
use crate::{command::Tool, failure::Result};

/// Only what a package cannot do without.
const NEEDED_ONLY: [&str; 7] = [
    "--recurse",
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
];

impl Packages<'_> {
    /// The version that [`unpack`](Self::unpack) would take; `None` where there is no such package.
    pub fn version(&self, package: &str) -> Result<Option<String>> {
        if let Some((_, file)) =
            self.by_hand(package)?.into_iter().rfind(|(name, _)| name == package)
        {
            let log = self.log(package)?;
            let version = Tool::new("dpkg-deb", format!("reading {}", file.display()))?
                .arg("-f")
                .arg(&file)
                .arg("Version")
                .output(&log)?;
            return Ok(Some(version.trim().to_owned()));
        }
        self.update(package)?;
        let log = self.log("policy")?;
        let answer = self
            .apt("apt-cache", format!("looking for {package}"))?
            .args(["policy", package])
            .output(&log)?;
        let candidate = answer.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.filter(|version| *version != "(none)").map(str::to_owned))
    }

    /// `package` and all that it needs, and what that needs in turn. Where apt has no lists,
    /// everything that the user put into the cache's `packages/` for this architecture.
    pub fn with_all_it_needs(&self, package: &str) -> Result<Vec<String>> {
        if let Err(error) = self.update(package) {
            let by_hand: Vec<_> = self.by_hand("")?.into_iter().map(|(name, _)| name).collect();
            return if by_hand.iter().any(|name| name == package) {
                Ok(by_hand)
            } else {
                Err(error)
            };
        }
        let log = self.log("depends")?;
        let ask = self.apt("apt-cache", format!("looking for what {package} needs"))?;
        let answer = ask.arg("depends").args(NEEDED_ONLY).arg(package).output(&log)?;
        // Names begin their lines; the needs of each are indented. `<name>` is not a package:
        // several packages offer to be it.
        Ok(answer
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()))
            .map(str::to_owned)
            .collect())
    }
}
