//! The one date of Debian's packages, so that the same sources give the same bytes.

use contigo_cross::{cache_dir::CacheDir, command::Tool, failure::Result, packages};
use std::{env, path::Path};

/// Its name wherever builds repeat.
const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// Seconds since 1970: `SOURCE_DATE_EPOCH` where it is set, else the newest commit's.
pub(super) fn seconds(cache: &CacheDir, root: &Path) -> Result<u64> {
    if let Some(set) = env::var_os(VARIABLE).filter(|set| !set.is_empty()) {
        let set = set.to_string_lossy();
        return set.parse().map_err(|_| {
            anyhow::anyhow!("{VARIABLE} is \"{set}\", and no number of seconds since 1970")
        });
    }
    let ask = packages::find("git").map(|git| {
        let tool = Tool::at(&git, "asking git for the newest commit's date").args([
            "log",
            "-1",
            "--format=%ct",
        ]);
        tool.current_dir(root).output(&cache.log("git")?)
    });
    let answer = ask.and_then(Result::ok).and_then(|text| text.trim().parse().ok());
    answer.ok_or_else(|| {
        anyhow::anyhow!(
            "git tells no date of these sources: set {VARIABLE} to one, in seconds since 1970"
        )
    })
}
