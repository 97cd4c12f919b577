//! Operands: a shader sees its own, and no neighbour.

use super::shaders::{LENGTH, SCALE, scale};
use super::{LIMIT, kernel, region, with_shader};
use contigo::job::Parameter::Operand;
use contigo::job::{Launch, Signature};
use contigo::{OperandSpec, Queue};

#[test]
fn job_in_place_touches_no_neighbour() {
    let Some((gpu, module)) = with_shader(SCALE) else {
        return;
    };
    let mut queue = Queue::new(kernel(&module, scale()), 1).unwrap();
    let region = region(gpu, 64 << 10);
    let step = gpu.align().bytes();
    let mut whole = region.alloc(16 * step, gpu.align()).unwrap();
    let count = step / 4;
    for round in 0..3_u32 {
        for at in [0, 5, 15] {
            whole
                .view_mut::<u32>()
                .unwrap()
                .iter_mut()
                .zip(0..)
                .for_each(|(word, index)| *word = index + 1_000 * round);
            let launch = Launch {
                grid: [u32::try_from(count.div_ceil(64)).unwrap(), 2 + round, 1],
                block: [64, 1, 1],
                shared_bytes: 0,
            };
            let words = launch.with(&[u32::try_from(count).unwrap(), 3]);
            let [back] = queue
                .run([whole.in_out(at * step..(at + 1) * step)], &words, LIMIT)
                .unwrap()
                .buffers;
            whole = back.whole();
            for (index, word) in (0..).zip(whole.view::<u32>().unwrap()) {
                let before = index + 1_000 * round;
                let inside =
                    (at * count..(at + 1) * count).contains(&usize::try_from(index).unwrap());
                assert_eq!(
                    *word,
                    if inside { before * 3 + 2 + round } else { before },
                    "word {index}, slice {at}"
                );
            }
        }
    }
}

/// A shader sees its operand, and not the block that this is a part of.
#[test]
fn an_operand_is_as_long_for_the_shader() {
    let Some((gpu, module)) = with_shader(LENGTH) else {
        return;
    };
    let signature = Signature::new("length", &[Operand(OperandSpec::in_out())]).unwrap();
    let mut queue = Queue::new(kernel(&module, signature), 1).unwrap();
    let region = region(gpu, 64 << 10);
    let mut buffer = region.alloc(8_192, gpu.align()).unwrap();
    for words in [1, 2, 100, 1_024] {
        let operand = buffer.in_out(4_096..4_096 + 4 * words);
        let [back] = queue.run([operand], &Launch::of(1, 64).with(&[]), LIMIT).unwrap().buffers;
        buffer = back.whole();
        assert_eq!(usize::try_from(buffer.view::<u32>().unwrap()[1_024]).unwrap(), words);
    }
}
