//! The last test program: the tests that were skipped, by what they need. Cargo runs the programs
//! of a package in the order of their names, and this package after all others that skip tests.
#![allow(clippy::print_stdout, reason = "it is its purpose")]

use std::collections::BTreeMap;

/// So many tests of one reason are named.
const NAMED: usize = 3;

fn main() {
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let mut reasons = BTreeMap::<String, Vec<String>>::new();
    for (test, why) in contigo_testkit::take_skipped() {
        reasons.entry(why).or_default().push(test);
    }
    let count: usize = reasons.values().map(Vec::len).sum();
    println!("\n{count} tests were skipped{}", if count == 0 { "." } else { ":" });
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    for (why, tests) in reasons {
        let more = if tests.len() > NAMED { ", …" } else { "" };
        println!(
            "{:5}  {why}\n       {}{more}",
            tests.len(),
            tests.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ")
        );
    }
}
