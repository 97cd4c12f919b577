//! `UDmaBuf` against a fake module: every trap of the module's interface, and every error, once.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "the counting allocator, and the mapping seen as bytes")]

#[path = "u_dma_buf/real.rs"]
mod real;
#[path = "u_dma_buf/refused.rs"]
mod refused;
#[path = "u_dma_buf/syncs.rs"]
mod syncs;
#[path = "u_dma_buf/the_fake.rs"]
mod the_fake;
#[path = "u_dma_buf/told.rs"]
mod told;
#[path = "u_dma_buf/translated.rs"]
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

fn cpu_read<const N: usize, B: Backend>(block: &B, offset: usize) -> [u8; N] {
    let mapping = block.mapping();
    assert!(offset + N <= mapping.len_bytes);
    // SAFETY: as in `cpu_write`.
    unsafe { mapping.cpu.as_ptr().add(offset).cast::<[u8; N]>().read_unaligned() }
}
