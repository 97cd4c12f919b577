// error: E0133
// That a function was stopped before it reaches memory is a claim.
use contigo::{BusMaster, Guard};

fn by_its_configuration_space(master: &BusMaster) {
    let _ = master.enable();
}

fn by_the_kernel_module(guard: &Guard) {
    let _ = guard.enable_bus_master();
}

fn main() {}
