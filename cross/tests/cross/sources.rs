//! Files that are packed beside the programs: the repository's own, and a wheel that a script
//! makes.

use super::machine::{Machine, Outcome};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{fs, io};

/// Programs of this machine that lay out the files: make's recipes are lines for a shell.
pub(crate) const TOOLS: [&str; 14] = [
    "make", "dtc", "readelf", "python3", "sh", "install", "ln", "sed", "tr", "echo", "cat",
    "mkdir", "rm", "uname",
];

/// Makefiles, module, overlays, manual pages: all that is packed of the sources.
const FOLDERS: [&str; 4] = ["boards", "bindings/c", "kernel-helpers", "cross/packaging"];

impl Machine {
    /// The sources, of Contigo 9.8.7, and a wheel whose library is `fixtures/<triple>.2.27` too.
    /// False: a tool is missing on this machine.
    pub(crate) fn with_sources(&self) -> Result<bool, Box<dyn std::error::Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no parent")?;
        for folder in FOLDERS {
            copy(&root.join(folder), &self.path("sources").join(folder))?;
        }
        fs::write(self.path("sources/Cargo.toml"), "[workspace.package]\nversion = \"9.8.7\"\n")?;
        fs::create_dir_all(self.path("sources/bindings/python"))?;
        let fixtures = self.path("fixtures").display().to_string();
        let script = format!(
            r#"exec python3 - "$2" "$3" <<'END'
import sys, zipfile
out, triple = sys.argv[1:]
with zipfile.ZipFile(out + "/contigo-9.8.7-cp39-abi3-any.whl", "w") as wheel:
    wheel.write("{fixtures}/" + triple + ".2.27", "contigo/_contigo.abi3.so")
    wheel.writestr("contigo/__init__.py", "from . import _contigo\n")
    for name, text in [("METADATA", "Metadata-Version: 2.1\nName: contigo\nVersion: 9.8.7\n"), ("RECORD", ""), ("licenses/LICENSE-MIT", "")]:
        wheel.writestr("contigo-9.8.7.dist-info/" + name, text)
END"#
        );
        self.program("sources/bindings/python/build-wheels", &script)?;
        self.with_maturin()?;
        self.link(&TOOLS)
    }

    /// maturin is there, as after `cargo cross setup --packages`.
    pub(crate) fn with_maturin(&self) -> Outcome {
        fs::create_dir_all(self.path("cache/maturin/1.16.0/bin"))?;
        self.program("cache/maturin/1.16.0/bin/maturin", "")
    }
}

/// Copies a folder, without what was built in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, into) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&path, &into)?;
        } else {
            fs::write(&into, fs::read(&path)?)?;
            let is_program = entry.metadata()?.permissions().mode() & 0o100 != 0;
            fs::set_permissions(
                into,
                fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }),
            )?;
        }
    }
    Ok(())
}
