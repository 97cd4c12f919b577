//! Tables fit the terminal, and 100 columns.

use super::{Outcome, Run};

/// The longest line of a table.
fn widest(text: &str) -> usize {
    let lines = text.lines().filter(|line| line.starts_with(['│', '┌', '╞', '└']));
    lines.map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn every_table_fits() -> Outcome {
    let trace = ["demo", "--images", "5", "--trace", "run.json"];
    let commands: [(&[&str], bool); 5] = [
        (&["info"], true),
        (&["boards"], true),
        (&["selftest", "--device", "sim:zdma", "--jobs", "60"], true),
        (&["demo", "--images", "5"], false),
        (&trace, true),
    ];
    for (args, has_a_table) in commands {
        for (columns, most) in
            [(None, 100), (Some(200), 100), (Some(100), 100), (Some(80), 80), (Some(60), 60)]
        {
            let run = Run::within(columns, args)?;
            assert_eq!(run.status(), Some(0), "{args:?}: {}", run.stderr());
            let widest = widest(&run.stdout());
            assert!(
                widest <= most && (widest > 0) == has_a_table,
                "{args:?}, {columns:?}: {widest}\n{}",
                run.stdout()
            );
        }
    }
    Ok(())
}

#[test]
fn no_word_of_a_header_is_broken() -> Outcome {
    for (args, words) in [
        (
            &["selftest", "--device", "sim:zdma", "--jobs", "60"] as &[_],
            &["mismatches", "interrupt"] as &[_],
        ),
        (
            &["boards"],
            &["cyclone-v-f2sdram", "0x80000000..=0xbfffffff", "0x0..=0xffffffffffffffff"],
        ),
        (&["info"], &["--memory", "--device", "sim:pl330"]),
    ] {
        let text = Run::within(Some(80), args)?.stdout();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    Ok(())
}
