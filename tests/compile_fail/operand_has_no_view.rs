// An operand on its way into a job has no view.
use contigo::Operand;

fn peek(operand: &Operand) {
    let _ = operand.view::<u8>(); //~ E0599 no method named `view` found for reference `&contigo::Operand` in the current scope
}

fn main() {}
