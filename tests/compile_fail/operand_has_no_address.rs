// An operand on its way into a job has no address: no port has been chosen.
use contigo::Operand;

fn leak(operand: &Operand) {
    let _ = operand.addr(); //~ E0599 no method named `addr` found for reference `&contigo::Operand` in the current scope
}

fn main() {}
