//! Puts the linker script where `-Tcontigo-log.x` finds it, for this package's own programs and for
//! packages that depend on it.

use std::path::Path;

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rerun-if-changed=contigo-log.x");
    if std::env::var_os("CARGO_FEATURE_WRITE").is_some() {
        println!("cargo:rustc-link-search=native={folder}");
        // A package of the registry has neither.
        for programs in ["examples", "tests"]
            .into_iter()
            .filter(|programs| Path::new(&folder).join(programs).is_dir())
        {
            println!("cargo:rustc-link-arg-{programs}=-Tcontigo-log.x");
        }
    }
}
