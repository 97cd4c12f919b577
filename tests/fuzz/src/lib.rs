//! Each reader of foreign bytes, as a function of any bytes: it must come to an end, panic nowhere,
//! and agree with itself.
//!
//! | module | the reader |
//! |---|---|
//! | [`hwh`] | `contigo::design`, and the map of a kernel in it |
//! | [`header`], [`json`] | `contigo::design::kernel` |
//! | [`bitstream`] | `contigo_bringup::bitstream` |
//! | [`device_tree`] | the tree below `/sys/firmware`, as the doctor, clocks and ports read it |
//! | [`doctor`] | a copied machine, as each reader of bring-up sees it |
//! | [`log`] | `contigo_log`: the ring, and the program's ELF file |
//! | [`names`] | the names of memory and devices |
//! | [`settings`] | a driver's settings, on its simulated core |

pub mod bitstream;
pub mod device_tree;
pub mod doctor;
pub mod header;
pub mod hwh;
pub mod json;
pub mod log;
pub mod names;
pub mod settings;

use contigo::design::kernel::{self, MapBuilder, MapError};

/// Builds a map and reads it again from its own JSON: both are the same.
fn map(read: Result<MapBuilder<'_>, MapError>) {
    match read.and_then(MapBuilder::build) {
        Err(error) => drop(error.to_string()),
        Ok(map) => {
            let text = map.to_string();
            let again = kernel::json::map(text.as_bytes()).and_then(MapBuilder::build);
            assert_eq!(again.expect("a map reads its own JSON").to_string(), text);
        }
    }
}
