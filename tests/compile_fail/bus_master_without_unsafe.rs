// That a function was stopped before it reaches memory is a claim.
use contigo::linux::device::BusMaster;

fn by_its_configuration_space(master: &BusMaster) {
    let _ = master.enable(); //~ E0133 call to unsafe function `BusMaster::enable` is unsafe and requires unsafe block
}

fn main() {}
