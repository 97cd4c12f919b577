//! The order of answers: any between IDs, the order of the questions within one (A5.3).

use contigo::sim::SimBus;

/// The place of the next burst to be answered at `now`, among those under way, oldest first: each
/// with its ID and the cycle from which its answer is ready.
pub(crate) fn next(
    bursts: impl Iterator<Item = (u32, u64)> + Clone,
    now: u64,
    reorders: bool,
    bus: &mut SimBus<'_>,
) -> Option<usize> {
    if !reorders {
        return bursts.clone().next().filter(|(_, due)| *due <= now).map(|_| 0);
    }
    let all = bursts.clone().enumerate();
    let is_first =
        |place: usize, id: u32| !bursts.clone().take(place).any(|(other, _)| other == id);
    let ready = || {
        all.clone()
            .filter(|&(place, (id, due))| due <= now && is_first(place, id))
            .map(|(place, _)| place)
    };
    match ready().count() {
        0 => None,
        count => ready().nth(bus.rng().usize(..count)),
    }
}
