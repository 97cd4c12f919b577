//! An event takes no heap and makes no system call. A child process gives up all of them except
//! write, exit and getrusage (man 2 seccomp; the next one is SIGSYS). Then it logs events, and says
//! how often it asked for memory, and how often it waited for a page.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; fork and seccomp are promises"
)]

use contigo_exerciser::{CountingHeap, is_counting, on_this_thread};
use contigo_log::{Clock, Reader, Settings};
use contigo_testkit::emulated;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::Path;
use tempfile::TempDir;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

/// A child ends with one of these.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const NO_SECCOMP: i32 = 2;

/// They fill 70 pages of the ring.
const EVENTS: u64 = 20_000;

/// From here on, a system call is the end of this process. As in `tests/tests/fork/no_syscalls.rs`.
fn give_up_system_calls() {
    let statement = |code: u32, k: u32, jt: u8| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt,
        jf: 0,
        k,
    };
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    let mut filter = [
        statement(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            u32::try_from(std::mem::offset_of!(libc::seccomp_data, nr)).unwrap_or(0),
            0,
        ),
        statement(equal, number(libc::SYS_write), 3),
        statement(equal, number(libc::SYS_exit_group), 2),
        statement(equal, number(libc::SYS_getrusage), 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: 6, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, whose length is right.
    let status = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if status != 0 {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(NO_SECCOMP) };
    }
}

/// How often this process waited for a page so far.
fn faults() -> u64 {
    // SAFETY: a zeroed `rusage` is one, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_minflt).unwrap_or(u64::MAX)
}

/// Its `Format` fails within an event.
struct Fails;

impl defmt::Format for Fails {
    fn format(&self, _: defmt::Formatter<'_>) {
        panic!("no format");
    }
}

/// The child's work: how often it asked for memory, in the start and in all events; and how often
/// it waited for a page.
fn log_quietly(path: &Path) -> [u64; 3] {
    std::panic::set_hook(Box::new(|_| ()));
    // The log's clock is a system call on a Cortex-A9. `linux/os/spin.rs` can tell such a core;
    // this test has no time on all 32-bit Arm cores instead.
    let clock = if cfg!(target_arch = "arm") { Clock::None } else { Clock::Monotonic };
    let before = on_this_thread();
    if contigo_log::start(path, &Settings { clock, panics: false, ring_bytes: 1 << 20 }).is_err() {
        return [u64::MAX; 3];
    }
    let started = on_this_thread() - before;
    // A panic within an event ends that one alone.
    assert!(std::panic::catch_unwind(|| defmt::info!("{}", Fails)).is_err());
    give_up_system_calls();
    let (before, faults_before) = (on_this_thread(), faults());
    for event in 0..EVENTS {
        defmt::info!("event {=u64} of {=str}", event, "many");
    }
    [started, on_this_thread() - before, faults() - faults_before]
}

#[test]
fn no_heap_and_no_system_call() {
    assert!(is_counting());
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("quiet.log");
    let mut ends = [0; 2];
    // SAFETY: an array of two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let [reader, writer] = ends;
    // SAFETY: the child does what `log_quietly` says, with one thread, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let counts = log_quietly(&path);
        let right = contigo_log::dropped() == 1;
        // SAFETY: the bytes of a local, to a pipe; then the end of the child.
        unsafe {
            libc::write(writer, counts.as_ptr().cast(), size_of_val(&counts));
            libc::_exit(if right { DONE } else { FAILED });
        }
    }
    let mut status = 0;
    let mut told = [0; 24];
    // SAFETY: this process's own descriptors and child.
    unsafe {
        libc::close(writer);
        libc::waitpid(child, &raw mut status, 0);
    }
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == NO_SECCOMP {
        let why = emulated::why().unwrap_or_else(|| "this kernel has no seccomp".to_owned());
        return contigo_testkit::skipped("quiet::no_heap_and_no_system_call", &why);
    }
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == DONE,
        "the child ended with status {status:#x}; 0x1f is a system call"
    );
    // SAFETY: the descriptor was made above, and no other code owns it.
    unsafe { File::from_raw_fd(reader) }.read_exact(&mut told).unwrap();
    assert_eq!(told[..16], [0; 16], "allocations in the start, and in {EVENTS} events");
    let faults = u64::from_ne_bytes(told[16..].try_into().unwrap());
    assert!(faults < 20, "{faults} waits for a page in {EVENTS} events");
    let frames = Reader::open(&path).unwrap().pieces().unwrap();
    assert_eq!(frames.len() as u64, EVENTS);
}
