// The backend behind a region is out of reach: its syncs would change bytes under a view.
use contigo::{Backend as _, Direction, Region};

fn under_a_view(region: &Region) {
    let _ = region.backend().sync_for_cpu(0..64, Direction::FromDevice); //~ E0599 no method named `backend` found for reference `&Region` in the current scope
}

fn main() {}
