//! The facts that a kernel module states about itself.

use anyhow::{Context, Result, bail};
use liblzma::read::XzDecoder;
use object::{Architecture, Object, ObjectSection};
use std::{fs, io::Read, path::Path};

/// A module's bytes, uncompressed, and its `.modinfo`.
#[derive(Debug)]
pub(super) struct Ko {
    pub(super) bytes: Vec<u8>,
    pub(super) architecture: Architecture,
    /// The kernel that it was built for, `uname -r`: the first word of `vermagic`.
    pub(super) release: String,
    /// Names of the modules that must be loaded first.
    pub(super) depends: Vec<String>,
}

impl Ko {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let raw = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = if path.extension().is_some_and(|extension| extension == "xz") {
            let mut plain = Vec::new();
            XzDecoder::new(raw.as_slice())
                .read_to_end(&mut plain)
                .with_context(|| format!("cannot unpack {}", path.display()))?;
            plain
        } else {
            raw
        };
        let Ok(file) = object::File::parse(bytes.as_slice()) else {
            bail!("{} is no kernel module: not an ELF file", path.display())
        };
        let section = file.section_by_name(".modinfo").with_context(|| {
            format!("{} is no kernel module: it has no .modinfo", path.display())
        })?;
        let info = section
            .data()
            .with_context(|| format!("{}: its .modinfo cannot be read", path.display()))?;
        let value = |key: &str| field(info, key);
        let release = value("vermagic")
            .and_then(|magic| magic.split_whitespace().next().map(str::to_owned))
            .unwrap_or_default();
        let depends = value("depends").unwrap_or_default();
        let depends =
            depends.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let architecture = file.architecture();
        Ok(Self { bytes, architecture, release, depends })
    }
}

/// One `key=value` of a `.modinfo`, whose entries end with a zero byte.
fn field(info: &[u8], key: &str) -> Option<String> {
    info.split(|byte| *byte == 0).find_map(|entry| {
        let entry = String::from_utf8_lossy(entry);
        entry.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')).map(str::to_owned)
    })
}
