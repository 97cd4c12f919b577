//! The table of `docs/measured.md`: the price of a job of each driver, by count.

use super::{See, each_driver};
use contigo_testkit::skipped;
use contigo_testkit::suite::{Price, Subject, Way, per_packet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The lines of the page around the table.
const BEGIN: &str = "<!-- The counts: tests/tests/model/suite/page.rs writes them. -->\n";
const END: &str = "<!-- Their end. -->";
const HEAD: &str = "\
| driver and mode | one in flight | 8, or as many as it takes | 64, or as many as it takes |
|---|---|---|---|
";
/// Rounds of so many jobs.
const ROUNDS: usize = 20;

struct Page(String);

impl See for Page {
    fn see(&mut self, subject: &impl Subject) {
        write!(self.0, "| {} |", subject.name()).unwrap();
        let mut last = None;
        for in_flight in [1, 8, 64] {
            let price = per_packet(subject, Way::Plain, in_flight, ROUNDS).unwrap();
            let coherent = per_packet(subject, Way::Coherent, in_flight, ROUNDS).unwrap();
            assert_eq!(
                (coherent.operand_syncs, coherent.own_syncs),
                (0, 0),
                "{}: a port that snoops needs no sync",
                subject.name()
            );
            let Price { jobs_at_once, reads, writes, operand_syncs, own_syncs } = price;
            if last.replace(jobs_at_once) == Some(jobs_at_once) {
                self.0 += " |";
                continue;
            }
            let [reads, writes, operand_syncs, own_syncs] =
                [reads, writes, operand_syncs, own_syncs].map(|count| count as f64 / 100.0);
            let few = if jobs_at_once == in_flight as u64 {
                String::new()
            } else {
                format!("{jobs_at_once}: ")
            };
            write!(self.0, " {few}{reads:.2}, {writes:.2}; {operand_syncs:.2}, {own_syncs:.2} |")
                .unwrap();
        }
        self.0 += "\n";
    }
}

#[test]
fn the_page_of_counts_is_up_to_date() {
    if cfg!(target_pointer_width = "32") {
        // Jobs are drawn at random, and there a number of the same seed is another one.
        return skipped(
            "suite::the_page_of_counts_is_up_to_date",
            "the page has the jobs of 64-bit processors",
        );
    }
    let mut page = Page(HEAD.into());
    each_driver(&mut page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/measured.md");
    let whole = fs::read_to_string(&path).unwrap();
    let (before, rest) = whole.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", page.0);
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    let written = fs::read_to_string(&path).is_ok_and(|now| now == wanted);
    assert!(
        written,
        "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-tests --test model suite; it is now\n{}",
        page.0
    );
}
