//! A guard of the module contigo by its raw calls: what it must give, keep, refuse and end.

mod aborts;
mod clocks;
mod edu;
mod exclusive;
mod fences;
mod fresh;
mod gone;
mod interrupts;
mod isolation;
mod kept;
mod lockdown;
mod log;
mod long_sync;
mod lying;
mod own;
mod read_only;
mod reset;
mod sleep_held;
mod stop_without_poll;
mod subject;
mod suspended;
mod taken;
mod two_users;
mod unarmed;

pub(crate) use isolation::lazily;
pub(crate) use subject::Subject;

use super::Verdict;

/// One check of every guard that it is for.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Subject) -> Verdict,
    /// Is there what it needs?
    pub(crate) is_for: fn(&Subject) -> bool,
    /// An ordinary user can do it, too.
    pub(crate) for_user: bool,
}

const fn test(
    name: &'static str,
    run: fn(&Subject) -> Verdict,
    is_for: fn(&Subject) -> bool,
) -> Test {
    Test { name, run, is_for, for_user: false }
}

const fn for_user(test: Test) -> Test {
    Test { for_user: true, ..test }
}

/// All of them.
pub(crate) const TESTS: &[Test] = &[
    for_user(test("guard-exclusive", exclusive::exclusive, |_| true)),
    for_user(test("guard-not-inherited", exclusive::not_inherited, |_| true)),
    for_user(test("guard-mappings-refused", exclusive::mappings, |_| true)),
    for_user(test("guard-read-only", read_only::read_only, |_| true)),
    for_user(test("guard-interrupts", interrupts::interrupts, |_| true)),
    for_user(test("guard-stop-without-poll", stop_without_poll::stop_without_poll, |_| true)),
    test("guard-own-memory", own::own, |_| true),
    test("guard-fences", fences::fences, |_| true),
    test("guard-clocks", clocks::clocks, |subject| subject.clock().is_some()),
    test("guard-reset", reset::reset, |subject| subject.reset().is_some()),
    test(KEPT, kept::kept, |_| true),
    test("guard-unarmed", unarmed::unarmed, |subject| subject.reset().is_none()),
    test("guard-suspended", suspended::suspended, |_| true),
    test("guard-log", log::log, |_| true),
    test("guard-aborts", aborts::aborts, aborts::is_possible),
    test("guard-long-sync", long_sync::long_sync, |_| true),
    test("guard-sleep-held", sleep_held::sleep_held, |_| true),
    test("guard-two-users", two_users::two_users, |_| true),
    test("guard-lying-confined", lying::lying, lying::is_possible),
    test("guard-confined", isolation::confined, |_| true),
    test("guard-group-of-two", isolation::group_of_two, isolation::can_have_a_companion),
    test(TAKEN, taken::taken, |_| true),
    test(LOCKED_DOWN, lockdown::locked_down, |_| lockdown::is_possible()),
];

/// Those after which a guard is root's alone, without udev.
pub(crate) const KEPT: &str = "guard-kept";
pub(crate) const TAKEN: &str = "guard-taken";
/// The one after which no module can be loaded any more.
pub(crate) const LOCKED_DOWN: &str = "guard-locked-down";
