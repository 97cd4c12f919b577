//! The reader: it finds the valid bytes of a file and its frames, and decodes them.

mod decoder;
mod header;
mod reader;

pub use decoder::{Decoder, Entry};
pub use header::{Header, Refused};
pub use reader::{Piece, Reader};
