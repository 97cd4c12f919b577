//! A device of the module contigo by its raw calls: what it must give, keep, refuse and end.

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

pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Subject) -> Verdict,
    pub(crate) is_for: fn(&Subject) -> bool,
    pub(crate) for_user: bool,
}

const fn test(
    name: &'static str,
    run: fn(&Subject) -> Verdict,
    is_for: fn(&Subject) -> bool,
) -> Test {
    Test { name, run, is_for, for_user: false }
}

const fn for_user(name: &'static str, run: fn(&Subject) -> Verdict) -> Test {
    Test { for_user: true, ..test(name, run, |_| true) }
}

pub(crate) const TESTS: &[Test] = &[
    for_user("contigo-exclusive", calls::exclusive),
    for_user("contigo-not-inherited", calls::not_inherited),
    for_user("contigo-mappings-refused", calls::mappings),
    for_user("contigo-read-only", buffers::read_only),
    for_user("contigo-interrupts", calls::interrupts),
    for_user("contigo-stop-without-poll", calls::stop_without_poll),
    test("contigo-own-memory", buffers::own, |_| true),
    test("contigo-fences", buffers::fences, |_| true),
    test("contigo-clocks", life::clocks, |subject| subject.clock().is_some()),
    test("contigo-reset", life::reset, |subject| subject.reset().is_some()),
    test(KEPT, quarantine::kept, |_| true),
    test("contigo-unarmed", quarantine::unarmed, |subject| subject.reset().is_none()),
    test("contigo-suspended", life::suspended, |_| true),
    test("contigo-log", load::log, |_| true),
    test("contigo-aborts", confined::aborts, confined::can_have_a_hole),
    test("contigo-long-sync", load::long_sync, |_| true),
    test("contigo-sleep-held", life::sleep_held, |_| true),
    test("contigo-two-users", users::two_users, |_| true),
    test("contigo-lying-confined", users::lying_confined, users::is_confined),
    test("contigo-confined", confined::confined, |_| true),
    test("contigo-group-of-two", confined::group_of_two, confined::can_have_a_companion),
    test(TAKEN, life::taken, |_| true),
    test(LOCKED_DOWN, confined::locked_down, |_| confined::can_be_locked_down()),
];

/// Those after which a contigo device is root's alone, without udev.
pub(crate) const KEPT: &str = "contigo-kept";
pub(crate) const TAKEN: &str = "contigo-taken";
/// The one after which no module can be loaded any more.
pub(crate) const LOCKED_DOWN: &str = "contigo-locked-down";
