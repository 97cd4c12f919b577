//! `contigo reset` as a program, on a machine that has no such line.

use super::{Outcome, Run};

#[test]
fn a_line_that_is_not_there_is_status_1() -> Outcome {
    let nowhere = "gpiochip99:5";
    for args in [
        &["reset", nowhere, "--active", "low"][..],
        &["reset", nowhere, "--active", "low", "--dry-run"],
    ] {
        let run = Run::of(args)?;
        assert_eq!((run.status(), run.stdout().as_str()), (Some(1), ""), "{args:?}");
        assert!(
            run.stderr().starts_with(&format!("contigo: no line is called {nowhere}")),
            "{}",
            run.stderr()
        );
    }
    let run = Run::of(&["reset", "contigo:nothing@1234"])?;
    assert!(
        run.status() == Some(1)
            && run.stderr().contains("no device is called contigo:nothing@1234"),
        "{}",
        run.stderr()
    );
    Ok(())
}

#[test]
fn a_gpio_wants_its_level_and_a_width_in_bounds() -> Outcome {
    let rows = [
        (&["reset", "gpiochip99:5"][..], 1, "--active low"),
        (&["reset", "gpiochip99:5", "--active", "low", "--pulse-us", "1000001"], 1, "1 to 1000000"),
        (&["reset", "gpiochip99:5", "--active", "down"], 2, "write low or high"),
        (&["reset", "contigo:a", "--pulse-us", "5"], 1, "are a GPIO's"),
        (&["reset", "--dry-run"], 2, "<LINE>"),
    ];
    for (args, status, words) in rows {
        let run = Run::of(args)?;
        assert_eq!(run.status(), Some(status), "{args:?}");
        assert!(run.stderr().contains(words), "{args:?}: {}", run.stderr());
    }
    Ok(())
}
