//! With the feature `defmt`, a program that has no logger of its own gets one that says nothing:
//! `src/trace/unheard/`.

fn main() {
    println!("cargo:rerun-if-changed=src/trace/unheard");
    let target = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if std::env::var_os("CARGO_FEATURE_DEFMT").is_some() && (target == "linux" || target == "none") {
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-search=native={folder}/src/trace/unheard");
        println!("cargo:rustc-link-lib=dylib=contigo_unheard");
    }
}
