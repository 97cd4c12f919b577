// error: E0133
// Another importer reads and writes the whole block: what it must not meet there only the caller can know.
use contigo::{DmaHeap, Region};

fn export(region: Region<DmaHeap>) {
    let _ = region.export();
}

fn main() {}
