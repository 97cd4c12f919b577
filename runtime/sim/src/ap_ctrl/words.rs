//! The registers behind the control block, by the kernel's map: arguments and results.

use super::ApCtrlModel;

/// One register of an argument.
pub(super) struct Word<'m> {
    /// The whole argument.
    pub(super) word: &'m mut u64,
    /// It is the upper half.
    pub(super) high: bool,
    /// It has two registers.
    pub(super) wide: bool,
}

impl<F> ApCtrlModel<F> {
    /// The word of an argument at `offset`.
    pub(super) fn argument(&mut self, offset: usize) -> Option<Word<'_>> {
        let pointers = self
            .map
            .pointers()
            .iter()
            .map(|each| (each.offset(), each.bits()))
            .zip(&mut self.pointers);
        let scalars = self
            .map
            .scalars()
            .iter()
            .map(|each| (each.offset(), each.bits()))
            .zip(&mut self.scalars);
        pointers.chain(scalars).find_map(|((at, bits), word)| {
            match (offset.checked_sub(at)?, bits > 32) {
                (0, wide) => Some(Word { word, high: false, wide }),
                (4, true) => Some(Word { word, high: true, wide: true }),
                _ => None,
            }
        })
    }

    /// The word of a result at `offset`.
    pub(super) fn result(&self, offset: usize) -> u32 {
        let mut index = 0;
        for result in self.map.results() {
            for word in 0..result.words() {
                if offset == result.offset() + 4 * word {
                    return self.results.get(index).copied().unwrap_or(0);
                }
                index += 1;
            }
        }
        0
    }
}
