//! The reader's side: which bytes of a file are good, where its frames are, and what they say.

mod decoder;
mod header;
mod reader;

pub use decoder::{Decoder, Entry};
pub use header::{Header, Refused};
pub use reader::{Piece, Reader};
