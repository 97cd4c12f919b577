// error: E0599
// An operand on its way into a job has no address: no port has been chosen.
use contigo::Operand;

fn leak(operand: &Operand) {
    let _ = operand.addr();
}

fn main() {}
