//! `cargo lab setup`.

use crate::cpu::Cpu;
use crate::kernel;
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::Result;
use contigo_cross::packages::{self, Need};
use contigo_cross::targets::Target;
use contigo_cross::{terminal, toolchain};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

/// For about 500 MB of packages on a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(3600);

/// The command that gets Rust's standard libraries for the boards: no package of Debian's has them.
const CROSS_SETUP: &str = "cargo cross setup";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only print what to install
    #[arg(long)]
    print: bool,
}

/// Every program and file that the lab's commands use, and what for: those that `cargo lab test`
/// looks for, too.
fn needs() -> Result<Vec<(Need, &'static str)>> {
    let mut needs = Vec::new();
    for cpu in Cpu::ALL {
        needs.push((Need::of(cpu.qemu()), "runs the boards"));
        let linked = Target::named(cpu.target())?.links_static();
        needs.extend(linked.map(|need| (need, "links the guests' programs, builds kernels")));
        let strip = format!("{}strip", cpu.prefix());
        needs.push((Need::of(&strip), "makes the guests' programs small"));
    }
    let mut programs =
        |names: &[&str], purpose| needs.extend(names.iter().map(|name| (Need::of(name), purpose)));
    programs(kernel::TOOLS, "builds kernels");
    programs(kernel::CHECKERS, "checks the kernel module");
    programs(&["cpp", "dtc"], "compiles device trees");
    programs(&["apt-get", "apt-cache", "dpkg", "dpkg-deb"], "downloads sources and packages");
    Ok(needs)
}

pub(crate) fn setup(options: &Options) -> Result<ExitCode> {
    let missing = missing()?;
    let may_install = !options.print && nix::unistd::geteuid().is_root();
    if may_install && !missing.is_empty() && packages::find("apt-get").is_some() {
        install(&missing)?;
    }
    let mut table = terminal::table(&["program", "what for", "where"]);
    for (need, purpose) in needs()? {
        let place = need.place().map_or_else(
            || format!("missing: package {}", need.package),
            |path| path.display().to_string(),
        );
        table.add_row([need.name, purpose.to_owned(), place]);
    }
    let cache = CacheDir::open()?;
    let mut has_rust = true;
    for cpu in Cpu::ALL {
        let has = toolchain::find(&cache, Target::named(cpu.target())?)?.is_some();
        let place = if has { "there".to_owned() } else { format!("missing: {CROSS_SETUP}") };
        let rust = format!("Rust for {}", cpu.target());
        table.add_row([rust, "builds the guests' programs".to_owned(), place]);
        has_rust &= has;
    }
    terminal::print(table)?;
    let missing = self::missing()?;
    if missing.is_empty() && has_rust {
        terminal::print(
            "Everything is there. Next: `cargo lab test`, which builds the kernels once (`cargo \
             lab kernel` does only that).",
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    if !missing.is_empty() {
        let list = missing.into_iter().collect::<Vec<_>>().join(" ");
        terminal::print(format_args!(
            "Install what is missing:\n    sudo apt install --no-install-recommends {list}"
        ))?;
    }
    if !has_rust {
        terminal::print(format_args!(
            "Get Rust's standard libraries for the boards:\n    {CROSS_SETUP}"
        ))?;
    }
    Ok(ExitCode::FAILURE)
}

fn missing() -> Result<BTreeSet<String>> {
    let missing = needs()?.into_iter().filter(|(need, _)| need.place().is_none());
    Ok(missing.map(|(need, _)| need.package).collect())
}

fn install(missing: &BTreeSet<String>) -> Result<()> {
    let cache = CacheDir::open()?;
    let apt = |what: &str| {
        Tool::new("apt-get", what)
            .map(|apt| apt.limit(INSTALL_LIMIT).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt("reading Debian's package lists")?.arg("update").run(&cache.log("setup-update")?)?;
    let install = apt("installing what is missing")?
        .args(["install", "--yes", "--no-install-recommends"])
        .args(missing);
    install.run(&cache.log("setup-install")?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

    use super::*;

    /// Only these two commands find all that is in the guests' programs.
    #[test]
    fn setup_looks_for_the_c_library_that_test_links() {
        let needs = needs().unwrap();
        for package in [
            "libc6-dev-armhf-cross",
            "libc6-dev-arm64-cross",
            "gcc-arm-linux-gnueabihf",
            "gcc-aarch64-linux-gnu",
        ] {
            assert!(needs.iter().any(|(need, _)| need.package == package), "{package}");
        }
    }
}
