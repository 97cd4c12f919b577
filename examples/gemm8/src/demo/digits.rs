//! The images: 8×8 pixels of 0 to 16, each with the digit that it shows, as lines of text.

use super::DemoError;
use contigo::Error;

/// E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998,
/// doi:10.24432/C50P49, CC BY 4.0. `data/README.md` says where this copy comes from.
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

/// One line of the data set: parsed only when somebody needs its pixels, straight into where they are needed.
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    row: usize,
    line: &'static str,
}

/// The images that the network has never seen.
pub fn held_out() -> impl Iterator<Item = Digit> {
    CSV.lines().enumerate().skip(FIRST_HELD_OUT).map(|(row, line)| Digit { row, line })
}

impl Digit {
    /// Decodes the pixels into `to`, which may be device memory: text in, bytes out, nothing between.
    ///
    /// # Errors
    /// [`Error::BufferSize`] where `to` has not [`PIXELS`]; [`DemoError::Data`] where the line is
    /// no image.
    pub fn decode(self, to: &mut [i8]) -> Result<(), DemoError> {
        let mut fields = self.line.split(',');
        let (found, wanted) = (to.len(), PIXELS);
        if found != wanted {
            return Err(Error::BufferSize { index: 0, need_bytes: wanted as u64, have_bytes: found }.into());
        }
        for pixel in to {
            *pixel = fields.next().and_then(|field| field.parse().ok()).ok_or(self.nonsense())?;
        }
        Ok(())
    }

    /// The digit that it shows.
    ///
    /// # Errors
    /// [`DemoError::Data`] where the line does not end with one.
    pub fn label(self) -> Result<u8, DemoError> {
        let last = self.line.rsplit(',').next().and_then(|field| field.parse().ok());
        last.filter(|&label| label < 10).ok_or(self.nonsense())
    }

    fn nonsense(self) -> DemoError {
        DemoError::Data { file: "optdigits.csv", line: self.row + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn there_are_as_many_as_promised_and_every_one_is_whole() -> Result<(), DemoError> {
        assert_eq!(held_out().count(), HELD_OUT);
        for digit in held_out() {
            let mut pixels = [-1_i8; PIXELS];
            digit.decode(&mut pixels)?;
            assert!(pixels.iter().all(|pixel| (0..=INK.cast_signed()).contains(pixel)), "row {}", digit.row);
            assert!(digit.label()? < 10);
        }
        Ok(())
    }

    #[test]
    fn a_broken_line_is_named() {
        let broken = Digit { row: 6, line: "1,2,three" };
        let refused = broken.decode(&mut [0; PIXELS]).err().map(|failure| failure.to_string());
        assert_eq!(refused.as_deref(), Some("data/optdigits.csv, line 7: not what it should be; restore the file and build again"));
        assert!(broken.label().is_err());
        assert!(broken.decode(&mut [0; 3]).is_err(), "the wrong size");
    }
}
