// The operands belong to the job.
use contigo::{
    Driver,
    Operand, Queue,
};

fn again(queue: &mut Queue<impl Driver>, operands: [Operand; 4]) {
    let _ = queue.submit(operands, &[]);
    drop(operands); //~ E0382 use of moved value: `operands`
}

fn main() {}
