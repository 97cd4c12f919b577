//! The table of cores: each core on each port of the simulated board, in calm and in hostile
//! memory, its outputs compared, its stray writes and stops counted. `tests/rtl/run` calls it.
//!
//! Exit status: 0 nothing went wrong; 1 a mismatch, a stray write, a broken rule, or a job that
//! failed; 2 wrong usage.

use contigo_rtl::table::{CASES, Case, Row, Setting};
use std::env;
use std::error::Error;
use std::process::ExitCode;

/// Jobs of each row that run to their end.
const JOBS: u64 = 200;
const USAGE: &str = "usage: rtl-table [--jobs N] [--seed S] [--core NAME] [--json]";

/// The run that was asked for.
struct Asked {
    jobs: u64,
    seed: u64,
    /// One core, also one that does not keep the rules.
    core: Option<&'static Case>,
    json: bool,
}

fn main() -> ExitCode {
    match asked() {
        Ok(asked) if run(&asked) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rtl-table: {error}");
            ExitCode::from(2)
        }
    }
}

fn asked() -> Result<Asked, Box<dyn Error>> {
    let mut asked = Asked { jobs: JOBS, seed: 1, core: None, json: false };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => asked.json = true,
            option @ ("--jobs" | "--seed" | "--core") => {
                let value =
                    words.next().ok_or_else(|| format!("{option} needs a value; {USAGE}"))?;
                match option {
                    "--jobs" => {
                        asked.jobs =
                            value.parse().map_err(|_| format!("--jobs {value}: write a number"))?
                    }
                    "--seed" => {
                        asked.seed =
                            value.parse().map_err(|_| format!("--seed {value}: write a number"))?
                    }
                    _ => asked.core = Some(case(&value)?),
                }
            }
            _ => return Err(format!("{word} is no option; {USAGE}").into()),
        }
    }
    if asked.jobs == 0 { Err("--jobs 0 tests nothing".into()) } else { Ok(asked) }
}

/// The core of this name.
fn case(name: &str) -> Result<&'static Case, String> {
    let names = CASES.iter().map(|case| case.core).collect::<Vec<_>>().join(", ");
    CASES
        .iter()
        .find(|case| case.core == name)
        .ok_or(format!("the table has no core {name}; it has {names}"))
}

/// Prints the rows as they come. Did nothing go wrong?
fn run(asked: &Asked) -> bool {
    let (mut good, mut between) = (true, "");
    if asked.json {
        print!("{{\"seed\":{},\"rows\":[", asked.seed);
    } else {
        println!("{}", Row::TITLES);
    }
    let mut skipped = Vec::new();
    for case in
        CASES.iter().filter(|case| asked.core.map_or(case.keeps, |asked| asked.core == case.core))
    {
        if let Some(why) = Row::skipped(case) {
            skipped.push((case.core, why));
            continue;
        }
        for setting in Setting::all(asked.seed) {
            let row = Row::run(case, &setting, asked.jobs);
            good &= row.is_good();
            if asked.json {
                print!("{between}\n{}", row.json());
                between = ",";
            } else {
                println!("{row}");
            }
        }
    }
    if asked.json {
        let names: Vec<_> = skipped
            .iter()
            .map(|(core, why)| format!("{{\"core\":\"{core}\",\"why\":\"{why}\"}}"))
            .collect();
        println!("\n],\"skipped\":[{}]}}", names.join(","));
    }
    skipped.iter().for_each(|(_, why)| eprintln!("SKIPPED: {why}"));
    good
}
