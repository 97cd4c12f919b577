//! `contigo clocks` as a program, on a machine with no clock of a fabric's.

use super::{Outcome, Run};

#[test]
fn a_clock_that_nobody_can_set_is_status_1() -> Outcome {
    let run = Run::of(&["clocks", "--set", "fclk0=100000000"])?;
    assert_eq!((run.status(), run.stdout().as_str()), (Some(1), ""));
    assert!(run.stderr().starts_with("contigo: this kernel has no way to set clock 0 of the fabric"), "{}", run.stderr());
    let run = Run::of(&["clocks", "--design", "nowhere.hwh"])?;
    assert!(run.status() == Some(1) && run.stderr().starts_with("contigo: nowhere.hwh: "), "{}", run.stderr());
    Ok(())
}

#[test]
fn a_wrong_setting_is_status_2() -> Outcome {
    for (setting, words) in [("fclk4=1", "fclk0 to fclk3"), ("fclk0", "CLOCK=HZ"), ("pl0=fast", "in Hz"), ("fclk0=-1", "in Hz")] {
        let run = Run::of(&["clocks", "--set", setting])?;
        assert_eq!(run.status(), Some(2), "{setting}");
        assert!(run.stderr().contains(words), "{setting}: {}", run.stderr());
    }
    Ok(())
}
