// error: E0133
// Another importer accesses the whole block: only the caller can know what it must not meet there.
use contigo::Region;

fn export(region: Region) {
    let _ = region.export();
}

fn main() {}
