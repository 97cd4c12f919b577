// error: E0382
// The operands belong to the job.
use contigo::{
    Driver,
    Operand, Queue,
};

fn again(queue: &mut Queue<impl Driver>, operands: [Operand; 4]) {
    let _ = queue.submit(operands, &[]);
    drop(operands);
}

fn main() {}
