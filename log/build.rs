//! Puts the linker script where `-Tcontigo-log.x` finds it, for this package's own programs and for
//! everybody who depends on it.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rerun-if-changed=contigo-log.x");
    if std::env::var_os("CARGO_FEATURE_WRITE").is_some() {
        println!("cargo:rustc-link-search=native={folder}");
        for programs in ["examples", "tests"] {
            println!("cargo:rustc-link-arg-{programs}=-Tcontigo-log.x");
        }
    }
}
