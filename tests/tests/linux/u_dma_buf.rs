//! `UDmaBuf` against a fake module: every trap of the module's interface, and every error, once.

mod refused;
mod syncs;
mod told;
mod translated;

use contigo::{Backend, Direction};
use contigo_testkit::fake_u_dma_buf::{Command, Config, FakeUDmaBuf, Synced};

const BLOCK: usize = 64 << 10;

fn fake() -> FakeUDmaBuf {
    FakeUDmaBuf::new(Config::default())
}

/// A module before 4.7.0: no ioctls.
fn old() -> Config {
    Config { ioctls: false, class: "udmabuf", ..Config::default() }
}

fn synced(command: Command, range: std::ops::Range<u64>, direction: Direction) -> Synced {
    Synced { command, range, direction }
}

fn cpu_write<B: Backend>(block: &B, offset: usize, bytes: &[u8]) {
    let mapping = block.mapping();
    assert!(offset + bytes.len() <= mapping.len_bytes);
    // SAFETY: inside the mapping, which this test's thread alone uses.
    unsafe {
        mapping.cpu.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
    };
}
