// error: E0599
// An operand on its way into a job has no view.
use contigo::Operand;

fn peek(operand: &Operand) {
    let _ = operand.view::<u8>();
}

fn main() {}
