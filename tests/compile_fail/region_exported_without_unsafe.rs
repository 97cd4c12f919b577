// Another importer accesses the whole block: only the caller can know what it must not meet there.
use contigo::Region;

fn export(region: Region) {
    let _ = region.export(); //~ E0133 call to unsafe function `Region::export` is unsafe and requires unsafe block
}

fn main() {}
