//! The shared library's name in programs that are linked with it: `libcontigo.so.2`, where 2 is
//! `CONTIGO_ABI_VERSION`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcontigo.so.2");
}
