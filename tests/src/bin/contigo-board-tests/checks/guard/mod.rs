//! A guard of the module contigo by its raw calls: what it must give, keep, refuse and end.

mod buffers;
mod calls;
mod confined;
mod left;
mod life;
mod load;
pub(crate) mod module;
mod quarantine;
mod subject;
mod users;

pub(crate) use confined::lazily;
pub(crate) use subject::Subject;

use crate::verdict::Verdict;

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
    for_user(test("guard-exclusive", calls::exclusive, |_| true)),
    for_user(test("guard-not-inherited", calls::not_inherited, |_| true)),
    for_user(test("guard-mappings-refused", calls::mappings, |_| true)),
    for_user(test("guard-read-only", buffers::read_only, |_| true)),
    for_user(test("guard-interrupts", calls::interrupts, |_| true)),
    for_user(test("guard-stop-without-poll", calls::stop_without_poll, |_| true)),
    test("guard-own-memory", buffers::own, |_| true),
    test("guard-fences", buffers::fences, |_| true),
    test("guard-clocks", life::clocks, |subject| subject.clock().is_some()),
    test("guard-reset", life::reset, |subject| subject.reset().is_some()),
    test(KEPT, quarantine::kept, |_| true),
    test("guard-unarmed", quarantine::unarmed, |subject| subject.reset().is_none()),
    test("guard-suspended", life::suspended, |_| true),
    test("guard-log", load::log, |_| true),
    test("guard-aborts", confined::aborts, confined::can_have_a_hole),
    test("guard-long-sync", load::long_sync, |_| true),
    test("guard-sleep-held", life::sleep_held, |_| true),
    test("guard-two-users", users::two_users, |_| true),
    test("guard-lying-confined", users::lying_confined, users::is_confined),
    test("guard-confined", confined::confined, |_| true),
    test("guard-group-of-two", confined::group_of_two, confined::can_have_a_companion),
    test(TAKEN, life::taken, |_| true),
    test(LOCKED_DOWN, confined::locked_down, |_| confined::can_be_locked_down()),
];

/// Those after which a guard is root's alone, without udev.
pub(crate) const KEPT: &str = "guard-kept";
pub(crate) const TAKEN: &str = "guard-taken";
/// The one after which no module can be loaded any more.
pub(crate) const LOCKED_DOWN: &str = "guard-locked-down";
