//! An emulator is recognised where one is, and nowhere else. The board tests start a program under
//! either.

use contigo_testkit::emulated;
use std::fs;

/// Asked in another way: a kernel of another processor family cannot run this program
/// (`/proc/sys/kernel/arch`, Linux 6.1).
#[test]
fn it_is_recognised_where_it_is_and_nowhere_else() {
    let Ok(kernel) = fs::read_to_string("/proc/sys/kernel/arch") else {
        return contigo_testkit::skipped(
            "emulated::it_is_recognised",
            "this kernel does not name its architecture",
        );
    };
    let families: [&[&str]; 2] = [&["x86", "x86_64", "i686"], &["arm", "aarch64", "armv7l"]];
    let family = |name: &str| families.iter().position(|family| family.contains(&name.trim()));
    let (kernels, own) = (family(&kernel), family(std::env::consts::ARCH));
    assert!(kernels.is_some() && own.is_some(), "{kernel}");
    assert_eq!(emulated::why().is_some(), kernels != own, "{:?} on {kernel}", emulated::why());
}
