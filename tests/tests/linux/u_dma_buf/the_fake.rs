//! The fake has the module's traps, so that a test that passes on it has met them.

use super::{BLOCK, fake, synced};
use contigo::{
    Direction,
    linux::memory::u_dma_buf::seam::{SyncArgs, UDmaBufIoctl},
};
use contigo_testkit::fake_u_dma_buf::{Command, Kept};
use std::fs;

#[test]
fn the_fake_has_the_modules_traps() {
    let fake = fake();
    let module = fake.module();
    let log = || fake.log().pop().unwrap();
    // The size is cut to 16 bytes: of 64 + 8 bytes, 8 stay unsynced.
    module.sync_word(Command::ForDevice, 4096 << 32 | 72 & 0xFFFF_FFF0 | 1 << 2 | 1).unwrap();
    assert_eq!(log(), synced(Command::ForDevice, 4096..4096 + 64, Direction::ToDevice));
    // A packed word keeps nothing; a word of just 1 uses what is kept.
    assert_eq!(fake.kept(), Kept { owner: 1, mode: 1, ..Kept::default() });
    module.sync_word(Command::ForCpu, 1).unwrap();
    assert_eq!(log(), synced(Command::ForCpu, 0..0, Direction::Bidirectional));
    // A direction and less than 16 bytes sync nothing, succeed, and change the owner.
    module.sync_word(Command::ForDevice, 15 | 1 << 2 | 1).unwrap();
    assert_eq!((log().range, fake.kept().owner), (0..0, 1));
    // Past the end; a packed direction of 3 is both.
    assert_eq!(module.sync_word(Command::ForCpu, (BLOCK as u64) << 32 | 16 | 1), Err(libc::EINVAL));
    module.sync_word(Command::ForCpu, 16 | 3 << 2 | 1).unwrap();
    assert_eq!(log(), synced(Command::ForCpu, 0..16, Direction::Bidirectional));
    // A word of 0 is no command.
    let count = fake.log().len();
    module.sync_word(Command::ForDevice, 0).unwrap();
    assert_eq!((fake.log().len(), fake.kept().owner), (count, 0));
}

#[test]
fn the_fake_keeps_arguments_and_refuses_a_direction_of_3() {
    let fake = fake();
    let module = fake.module();
    let set = |flags, size, offset| module.set_sync(-1, &SyncArgs { flags, size, offset });
    set(SyncArgs::FOR_DEVICE | 2 << 2, 128, 64).unwrap();
    // A size of 0 leaves the size, a direction of 3 the direction; the offset has no such value.
    set(SyncArgs::FOR_CPU | 3 << 2, 0, 0).unwrap();
    assert_eq!(fake.log().pop().unwrap(), synced(Command::ForCpu, 0..128, Direction::FromDevice));
    // Arguments that were refused are kept all the same. A command of 2 is none.
    assert_eq!(set(SyncArgs::FOR_DEVICE, 64, BLOCK as u64), Err(libc::EINVAL));
    assert_eq!(fake.kept().offset, BLOCK as u64);
    set(2, 64, 0).unwrap();
    assert_eq!(fake.kept().owner, 0);

    let file =
        fs::File::options().write(true).open(fake.class_dir().join("sync_direction")).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    assert_eq!(module.write_attribute(fd, "sync_direction", b"3"), Err(libc::EINVAL));
}
