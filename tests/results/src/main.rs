//! `contigo-results FILE…`: may these files go into `docs/results`?
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

use contigo_results::{FILE_MAX_BYTES, Report, Table, check, silicon};
use std::env;
use std::fs::File;
use std::io::Read;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "\
Usage: contigo-results [--emulated] FILE...

Checks what contigo-board-tests --report wrote, and prints its lines of the table in docs/results.

  --emulated  files of emulated machines, too: they are checked, and have no line in the table

Exit status: 0 all are right, 1 one is not, 2 wrong usage.";

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    if words.iter().any(|word| ["-h", "--help"].contains(&word.as_str())) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let (options, files): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.starts_with("--"));
    if files.is_empty() || options.iter().any(|option| *option != "--emulated") {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut table, mut is_right) = (Table::default(), true);
    for file in files {
        match one(file, now, options.is_empty()) {
            Ok(report) => table.add(file, &report),
            Err(wrong) => {
                is_right = false;
                wrong.iter().for_each(|line| eprintln!("{file}: {line}"));
            }
        }
    }
    if !is_right {
        return ExitCode::FAILURE;
    }
    print!("{}", table.text());
    ExitCode::SUCCESS
}

fn one(file: &str, now: u64, of_silicon: bool) -> Result<Report, Vec<String>> {
    let mut text = String::new();
    let read =
        File::open(file).and_then(|open| open.take(FILE_MAX_BYTES).read_to_string(&mut text));
    read.map_err(|error| vec![error.to_string()])?;
    let report = check(&text, now)?;
    if of_silicon {
        silicon(&report).map_err(|why| vec![why])?;
    }
    Ok(report)
}
