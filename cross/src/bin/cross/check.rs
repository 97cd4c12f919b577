//! `cargo cross check`: what programs need of a board's image.

use crate::needs::{self, Glibc, Needs};
use clap::Args;
use contigo_cross::failure::Result;
use contigo_cross::terminal;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Images since 2018 have it or a newer one: PYNQ 2.7 and 3.0 (Ubuntu 20.04, 22.04), JetPack 4
/// (Ubuntu 18.04).
pub(crate) const BOARDS_GLIBC: &str = "2.27";

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The programs
    #[arg(required = true)]
    programs: Vec<PathBuf>,
    /// The newest glibc that they may need
    #[arg(long, value_name = "VERSION", default_value = BOARDS_GLIBC)]
    glibc: Glibc,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry<'a> {
    program: &'a Path,
    processor: String,
    r#static: bool,
    glibc: Option<Glibc>,
    runs: bool,
}

/// Prints what each needs; fails where one needs too much.
pub(crate) fn check(options: &Options) -> Result<()> {
    let mut entries = Vec::new();
    let mut refused = Vec::new();
    for program in &options.programs {
        let needs = Needs::of(program)?;
        let too_new = too_new(program, &needs, &options.glibc);
        entries.push(Entry {
            program,
            processor: needs::machine(needs.machine),
            r#static: !needs.is_dynamic,
            glibc: needs.glibc,
            runs: too_new.is_none(),
        });
        refused.extend(too_new);
    }
    if options.json {
        terminal::json(&entries)?;
    } else {
        let mut table = terminal::table(&["program", "processor", "C library"]);
        for entry in &entries {
            table.add_row([
                entry.program.display().to_string(),
                entry.processor.clone(),
                library(entry.r#static, entry.glibc.as_ref()),
            ]);
        }
        terminal::print(table)?;
    }
    if refused.is_empty() { Ok(()) } else { Err(anyhow::anyhow!("{}", refused.join("\n"))) }
}

/// Why a program does not start where there is no newer glibc than `limit`.
pub(crate) fn too_new(program: &Path, needs: &Needs, limit: &Glibc) -> Option<String> {
    let needed = needs.glibc.as_ref().filter(|needed| *needed > limit)?;
    Some(format!(
        "{} needs glibc {needed}, and a board may have no newer one than {limit}",
        program.display()
    ))
}

/// The C library of a program, in a word.
pub(crate) fn library(is_static: bool, glibc: Option<&Glibc>) -> String {
    match glibc {
        _ if is_static => "inside (static)".into(),
        None => "any".into(),
        Some(version) => format!("glibc {version} or newer"),
    }
}
