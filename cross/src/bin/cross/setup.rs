//! `cargo cross setup`: everything that building and testing for the boards needs, or what keeps it
//! from being had.

mod apt;
mod rust;

use crate::pip::Zigbuild;
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::{targets, terminal};
use serde::Serialize;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Also what `cargo cross package` needs: debhelper, lintian, dtc, maturin
    #[arg(long)]
    packages: bool,
    /// Only say what is there and what would be done
    #[arg(long)]
    print: bool,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ready,
    Installed,
    Todo,
    Missing,
}

#[derive(Debug, Serialize)]
struct Part {
    part: &'static str,
    state: State,
    detail: String,
}

/// Gets what is missing, or says what it would do. The parts do not depend on each other: what can
/// be had is got, whatever else is missing.
pub(crate) fn setup(options: &Options) -> Result<()> {
    let cache = CacheDir::open()?;
    let mut parts = vec![
        ("linkers and emulators", apt::linkers(&cache, options.print)),
        (
            "Rust's standard libraries",
            rust::get(
                &cache,
                options.print,
                if options.packages { &targets::PACKAGED } else { &targets::ALL },
            ),
        ),
        ("cargo-zigbuild", zigbuild(&cache, options.print)),
    ];
    if options.packages {
        parts.push(("packaging tools", apt::tools(&cache, options.print)));
        parts.push(("maturin", apt::maturin(&cache, options.print)));
    }
    let mut report = Vec::new();
    let mut errors = Vec::new();
    for (part, got) in parts {
        let (state, detail) = match got {
            Ok(got) => got,
            Err(error) if matches!(error.downcast_ref(), Some(Failure::Interrupted)) => {
                return Err(error);
            }
            Err(error) => {
                errors.push(format!("{error:#}"));
                (State::Missing, format!("{error:#}").lines().next().unwrap_or_default().to_owned())
            }
        };
        report.push(Part { part, state, detail });
    }
    if options.json {
        terminal::json(&report)?;
    } else {
        let mut table = terminal::table(&["part", "state", "what"]);
        for Part { part, state, detail } in &report {
            let state = match state {
                State::Ready => "ready",
                State::Installed => "installed",
                State::Todo => "to do",
                State::Missing => "missing",
            };
            // The missing programs are named below, where lines are not folded.
            table.add_row([*part, state, if state == "missing" { "" } else { detail }]);
        }
        terminal::print(table)?;
    }
    if errors.is_empty() { Ok(()) } else { Err(anyhow::anyhow!("{}", errors.join("\n"))) }
}

/// A part's state, and a line about it.
type Got = Result<(State, String)>;

fn zigbuild(cache: &CacheDir, only_say: bool) -> Got {
    if let Some(found) = Zigbuild::find(cache) {
        return Ok((State::Ready, found.program().display().to_string()));
    }
    if only_say {
        return Ok((
            State::Todo,
            "pip install cargo-zigbuild and ziglang (100 MB) into the cache".into(),
        ));
    }
    let program = Zigbuild::install(cache)?.program();
    Ok((State::Installed, program.display().to_string()))
}
