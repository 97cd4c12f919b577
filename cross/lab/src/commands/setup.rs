//! `cargo lab setup`.

use super::print;
use crate::{cpu::Cpu, kernel};
use clap::Args;
use contigo_cross::{cache_dir::CacheDir, command::Tool, failure::Result, packages, table};
use std::{collections::BTreeSet, process::ExitCode, time::Duration};

/// For about 500 MB of packages on a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(3600);

/// Options of `cargo lab setup`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only print what to install
    #[arg(long)]
    print: bool,
}

/// Every program that the lab runs, and what for.
fn tools() -> Vec<(String, &'static str)> {
    let mut tools = Vec::new();
    for cpu in [Cpu::Arm, Cpu::Arm64] {
        tools.push((cpu.qemu().to_owned(), "runs the boards"));
        tools.push((format!("{}gcc", cpu.prefix()), "links the guests' programs, builds kernels"));
    }
    tools.extend(kernel::TOOLS.iter().map(|tool| ((*tool).to_owned(), "builds kernels")));
    tools.extend(kernel::CHECKERS.iter().map(|tool| ((*tool).to_owned(), "checks the kernel module")));
    tools.extend(["cpp", "dtc"].map(|tool| (tool.to_owned(), "compiles device trees")));
    tools.extend(["apt-get", "dpkg-deb"].map(|tool| (tool.to_owned(), "downloads sources and packages")));
    tools
}

pub(crate) fn setup(options: &Options) -> Result<ExitCode> {
    let missing = missing();
    if !options.print && !missing.is_empty() && nix::unistd::geteuid().is_root() && packages::find("apt-get").is_some() {
        install(&missing)?;
    }
    let mut table = table::new(&["program", "what for", "where"]);
    for (tool, purpose) in tools() {
        let place =
            packages::find(&tool).map_or_else(|| format!("missing: package {}", packages::of(&tool)), |path| path.display().to_string());
        table.add_row([tool, purpose.to_owned(), place]);
    }
    print(table)?;
    let missing = self::missing();
    if missing.is_empty() {
        print("Everything is there. Next: `cargo lab test`, which builds the kernels once (`cargo lab kernel` does only that).")?;
        return Ok(ExitCode::SUCCESS);
    }
    let list = missing.into_iter().collect::<Vec<_>>().join(" ");
    print(format_args!("Install what is missing:\n    sudo apt install --no-install-recommends {list}"))?;
    Ok(ExitCode::FAILURE)
}

fn missing() -> BTreeSet<String> {
    tools().into_iter().filter(|(tool, _)| packages::find(tool).is_none()).map(|(tool, _)| packages::of(&tool).to_owned()).collect()
}

fn install(missing: &BTreeSet<String>) -> Result<()> {
    let cache = CacheDir::open()?;
    let apt = |what: &str| Tool::new("apt-get", what).map(|apt| apt.limit(INSTALL_LIMIT).env("DEBIAN_FRONTEND", "noninteractive"));
    apt("reading Debian's package lists")?.arg("update").run(&cache.log("setup-update")?)?;
    let install = apt("installing what is missing")?.args(["install", "--yes", "--no-install-recommends"]).args(missing);
    install.run(&cache.log("setup-install")?)?;
    Ok(())
}
