//! The images: 8×8 pixels of 0 to 16, each with the digit that it shows, as lines of text.

use super::DemoError;
use contigo::Error;

/// E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
/// Repository, 1998, doi:10.24432/C50P49, CC BY 4.0. `data/README.md` says where this copy comes
/// from.
const CSV: &str = include_str!("../../data/optdigits.csv");
/// The network was trained on the rows before this one.
const FIRST_HELD_OUT: usize = 900;
/// How many rows it has never seen.
pub const HELD_OUT: usize = 897;
/// Pixels in a row or a column.
pub const SIDE: u32 = 8;
/// Pixels in an image, and bytes of one in device memory.
pub const PIXELS: usize = (SIDE * SIDE) as usize;
/// The largest value of a pixel.
pub const INK: u8 = 16;

/// One image of the data set, and the digit that it shows.
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    pixels: &'static [u8; PIXELS],
    label: u8,
}

/// The digits that the network has never seen: pixels, then the label. The text is read by the
/// compiler, so that a program carries a fourth of it.
static HELD: [[u8; PIXELS + 1]; HELD_OUT] = const { read(CSV.as_bytes()) };

/// The images that the network has never seen.
pub fn held_out() -> impl Iterator<Item = Digit> {
    HELD.iter().filter_map(|row| {
        let (label, pixels) = row.split_last()?;
        Some(Digit { pixels: pixels.try_into().ok()?, label: *label })
    })
}

/// The rows from [`FIRST_HELD_OUT`] on. A line that is no image ends the compilation.
#[allow(long_running_const_eval, reason = "265 KB of text, a second")]
#[allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "it runs at compile time only"
)]
const fn read(text: &[u8]) -> [[u8; PIXELS + 1]; HELD_OUT] {
    let mut rows = [[0; PIXELS + 1]; HELD_OUT];
    let (mut at, mut line, mut field, mut value) = (0, 0, 0, 0_u32);
    while at < text.len() {
        let ends_field = text[at] == b',' || text[at] == b'\n';
        match text[at] {
            digit @ b'0'..=b'9' => value = value * 10 + (digit - b'0') as u32,
            b',' | b'\n' => {}
            _ => panic!("data/optdigits.csv is not what it should be: restore the file"),
        }
        if ends_field {
            assert!(
                value <= INK as u32 && field <= PIXELS,
                "data/optdigits.csv is not what it should be: restore the file"
            );
            if line >= FIRST_HELD_OUT {
                rows[line - FIRST_HELD_OUT][field] = value as u8;
            }
            (value, field) = (0, field + 1);
        }
        if text[at] == b'\n' {
            assert!(
                field == PIXELS + 1,
                "data/optdigits.csv has a line that is not 64 pixels and a digit"
            );
            (line, field) = (line + 1, 0);
        }
        at += 1;
    }
    assert!(
        line == FIRST_HELD_OUT + HELD_OUT,
        "data/optdigits.csv has not as many lines as it should"
    );
    rows
}

impl Digit {
    /// Writes the pixels to `to`, which may be device memory.
    ///
    /// # Errors
    /// [`Error::BufferSize`] where `to` has not [`PIXELS`].
    pub fn decode(self, to: &mut [i8]) -> Result<(), DemoError> {
        if to.len() != PIXELS {
            return Err(Error::BufferSize {
                index: 0,
                need_bytes: PIXELS as u64,
                have_bytes: to.len(),
            }
            .into());
        }
        to.iter_mut().zip(self.pixels).for_each(|(to, &pixel)| *to = pixel.cast_signed());
        Ok(())
    }

    /// The digit that it shows.
    #[must_use]
    pub const fn label(self) -> u8 {
        self.label
    }
}
