// error: E0133
// That a function was stopped before it reaches memory is a claim.
use contigo::linux::device::BusMaster;

fn by_its_configuration_space(master: &BusMaster) {
    let _ = master.enable();
}

fn main() {}
