//! Is a user-mode emulator (qemu-arm, qemu-aarch64) running this program, and how does one start
//! another program under it?
//!
//! `cargo test --target armv7-unknown-linux-gnueabihf` on a PC runs the tests so. System calls are
//! the PC's kernel's then, and some have no answer: no seccomp, no huge pages, no frames of the
//! program's own pages.
//!
//! **How it is recognised.** The kernel knows which file it runs. On a processor of its own that is
//! this program; under an emulator it is the emulator. QEMU answers for `/proc/self/exe` and
//! `/proc/self/cmdline` itself, so that programs find themselves there, but `/proc/thread-self/` is
//! the kernel's own (QEMU `linux-user/syscall.c`: `is_proc_myself` compares with `/proc/self/` and
//! `/proc/<pid>/`). So the two names of one link disagree under an emulator, and nowhere else: a
//! 32-bit program on a 64-bit kernel is no emulation. Without `/proc` nothing is known, and the
//! answer is "no".

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The file that the kernel runs, where it is not this program.
fn emulator() -> Option<PathBuf> {
    let own = fs::read_link("/proc/self/exe").ok()?;
    let kernels = fs::read_link("/proc/thread-self/exe").ok()?;
    (own != kernels).then_some(kernels)
}

/// The words between the emulator and this program on the kernel's command line: `-L` and a folder,
/// say.
fn options() -> Option<Vec<OsString>> {
    let own = env::current_exe().ok()?;
    let line = fs::read("/proc/thread-self/cmdline").ok()?;
    let words = line.split(|&byte| byte == 0).skip(1);
    let mut words: Vec<_> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    let is_own = |word: &OsString| fs::canonicalize(word).is_ok_and(|path| path == own);
    words.truncate(words.iter().position(is_own)?);
    Some(words)
}

/// Why a test that an emulator has no answer for is skipped; `None` where the kernel runs this
/// program.
pub fn why() -> Option<String> {
    emulator()
        .map(|emulator| format!("the kernel runs {}, which runs this program", emulator.display()))
}

/// A command for `program`, which was built for the same processor as this one. The kernel cannot
/// run that under an emulator; the emulator does, with the options that this program was started
/// with.
pub fn command(program: impl AsRef<Path>) -> Command {
    let Some(emulator) = emulator() else { return Command::new(program.as_ref()) };
    let mut command = Command::new(emulator);
    command.args(options().unwrap_or_default()).arg(program.as_ref());
    command
}

/// Skips the test of this thread under an emulator, where it would find what it finds without:
/// `because` says why.
pub fn finds_no_more(because: &str) -> bool {
    let emulated = emulator().is_some();
    if emulated {
        let thread = std::thread::current();
        crate::skipped(
            thread.name().unwrap_or("a test"),
            &format!("an emulator runs it, and {because}"),
        );
    }
    emulated
}
