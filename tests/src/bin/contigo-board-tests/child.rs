#![allow(unsafe_code, reason = "fork, a page that two processes share, scheduling, and ptrace")]
//! Every row in a process of its own: a crash, a hang or a forgotten buffer is that row's and no
//! other's, and another user's rights end with it. And the parent counts the child's system calls,
//! because it can stop it at each of them (ptrace(2)).
//!
//! ```text
//!   child:   open memory and engine ── warm up ── SIGSTOP ── steady work ── SIGSTOP ── report
//!   parent:  let it run ───────────────────────────────┴─ stop at every call ─┴─ let it run
//! ```

use crate::machine;
use crate::row::{Name, Row, Status};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_dumpable;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getpid, setgid, setgroups, setuid};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;
use std::{hint, thread};

#[derive(Debug, Default)]
struct Shared {
    /// The parent stops the child at system calls.
    traced: AtomicBool,
    /// The child wants to be stopped at its system calls, from its next stop on.
    stop_at_calls: AtomicBool,
    /// The child is at work that is counted.
    counting: AtomicBool,
    syscalls: AtomicU32,
    /// The number of the first of them.
    first_call: AtomicI32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady {
    shared: &'static Shared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// `None`: they could not be counted here.
    pub(crate) syscalls: Option<u64>,
    /// The number of the first, where there was one.
    pub(crate) first_call: i32,
}

impl Cost {
    pub(crate) const NOTHING: Self = Self { syscalls: None, first_call: 0 };
}

impl Steady {
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> (R, Cost) {
        let traced = self.shared.traced.load(Ordering::SeqCst);
        let stop_at_calls = |wanted: bool| {
            self.shared.stop_at_calls.store(wanted, Ordering::SeqCst);
            if traced {
                let _ = kill(getpid(), Signal::SIGSTOP);
            }
        };
        stop_at_calls(true);
        self.shared.counting.store(true, Ordering::SeqCst);
        let result = work();
        self.shared.counting.store(false, Ordering::SeqCst);
        stop_at_calls(false);
        let syscalls = traced.then(|| self.shared.syscalls.load(Ordering::SeqCst).into());
        (result, Cost { syscalls, first_call: self.shared.first_call.load(Ordering::SeqCst) })
    }
}

/// False for a 32-bit program on a 64-bit kernel built without CONFIG_COMPAT_VDSO, which has no
/// clock but by a system call (vdso(7)): it is those that would be counted.
fn has_clock() -> bool {
    // SAFETY: reads a number that the kernel left.
    !machine::is_compat() || unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) != 0 }
}

/// Runs one row in a child, as `user` where that is given, for `limit_s` seconds at most. `work`
/// returns the row. Files, mappings and jobs that it leaves end with the process.
pub(crate) fn row(
    name: &Name,
    user: Option<u32>,
    limit_s: u32,
    work: impl FnOnce(Steady) -> Row,
) -> Row {
    let failed =
        |reason: String| Row { user: user.unwrap_or(0), ..Row::new(name, Status::Failed, reason) };
    let Some(shared) = share() else { return failed(format!("mmap: {}", Errno::last())) };
    let (reader, writer) = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return failed(format!("pipe: {error}")),
    };
    // SAFETY: this process has one thread, so the child is a whole copy of it and may do anything.
    match unsafe { fork() } {
        Err(errno) => failed(format!("fork: {errno}")),
        Ok(ForkResult::Child) => {
            drop(reader);
            // SAFETY: alarm(2) ends this process at the limit, whatever it waits for.
            unsafe { libc::alarm(limit_s) };
            // Not under qemu-user, nor where a container forbids it: then nothing is counted.
            shared.traced.store(has_clock() && ptrace::traceme().is_ok(), Ordering::SeqCst);
            let row = match user.map_or(Ok(()), become_user) {
                Ok(()) => work(Steady { shared }),
                Err(errno) => Row::new(
                    name,
                    Status::Skipped,
                    format!("cannot become user {}: {errno}", user.unwrap_or(0)),
                ),
            };
            tell(writer.into(), &row);
            // SAFETY: `exit_group`, and nothing before it: no destructor has anything to do that
            // the kernel does not.
            unsafe { libc::_exit(0) }
        }
        Ok(ForkResult::Parent { child }) => {
            drop(writer);
            let ended = watch(child, shared);
            let mut told = Vec::new();
            let _ = File::from(OwnedFd::from(reader)).read_to_end(&mut told);
            match (ended, serde_json::from_slice::<Row>(&told).ok()) {
                (Ok(WaitStatus::Exited(_, 0)), Some(row)) => row,
                (Ok(WaitStatus::Signaled(_, Signal::SIGALRM, _)), _) => {
                    failed(format!("did not end within {limit_s} s"))
                }
                (Ok(WaitStatus::Signaled(_, signal, _)), _) => failed(format!("ended by {signal}")),
                (Ok(other), _) => failed(format!("ended as {other:?} and said nothing")),
                (Err(errno), _) => failed(format!("lost: {errno}")),
            }
        }
    }
}

/// Follows a child to its end, and counts its system calls while it wants them counted.
fn watch(child: Pid, shared: &Shared) -> Result<WaitStatus, Errno> {
    let mut entering = true;
    loop {
        match waitpid(child, None)? {
            end @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return Ok(end),
            WaitStatus::PtraceSyscall(_) => {
                if entering
                    && shared.counting.load(Ordering::SeqCst)
                    && shared.syscalls.fetch_add(1, Ordering::SeqCst) == 0
                {
                    shared.first_call.store(call_number(child), Ordering::SeqCst);
                }
                entering = !entering;
                ptrace::syscall(child, None)?;
            }
            WaitStatus::Stopped(_, Signal::SIGSTOP) => {
                ptrace::setoptions(
                    child,
                    ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_EXITKILL,
                )?;
                entering = true;
                if shared.stop_at_calls.load(Ordering::SeqCst) {
                    ptrace::syscall(child, None)?;
                } else {
                    ptrace::cont(child, None)?;
                }
            }
            WaitStatus::Stopped(_, signal) => ptrace::cont(child, Some(signal))?,
            _ => ptrace::cont(child, None)?,
        }
    }
}

/// The number of the system call that a stopped child is about to make; -1 where the kernel (before
/// 5.3) does not say.
fn call_number(child: Pid) -> i32 {
    /// `<linux/ptrace.h>`.
    const PTRACE_GET_SYSCALL_INFO: libc::c_uint = 0x420E;
    /// `struct ptrace_syscall_info`: 88 bytes, of which `entry.nr` is the 64 bits at 24.
    const INFO_BYTES: usize = 88;
    const NUMBER_AT: usize = 24;
    let mut info = [0_u8; INFO_BYTES];
    // SAFETY: the kernel writes at most as many bytes as the third argument says, which the array
    // has.
    let wrote = unsafe {
        libc::ptrace(PTRACE_GET_SYSCALL_INFO as _, child.as_raw(), INFO_BYTES, info.as_mut_ptr())
    };
    let number = info
        .get(NUMBER_AT..NUMBER_AT + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u64::from_ne_bytes);
    number.filter(|_| wrote > 0).and_then(|number| i32::try_from(number).ok()).unwrap_or(-1)
}

/// A page that this process and its children share, for ever.
fn share() -> Option<&'static Shared> {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, anywhere, of no file.
    let page =
        unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Shared>(), access, kind, -1, 0) };
    let page = NonNull::new(page).filter(|_| page != libc::MAP_FAILED)?;
    // SAFETY: at least `size_of::<Shared>()` bytes, page-aligned, zeroed (mmap(2)), which is a
    // valid `Shared`; never unmapped; all of it atomics, so that two processes may use it at once.
    Some(unsafe { page.cast::<Shared>().as_ref() })
}

/// No more rights than an ordinary user has, whose group has the same number.
pub(crate) fn become_user(user: u32) -> Result<(), Errno> {
    setgroups(&[])?;
    setgid(Gid::from_raw(user))?;
    setuid(Uid::from_raw(user))?;
    // Without this, /proc/self still belongs to root (prctl(2)), as it does not for who logged in
    // as that user.
    set_dumpable(true)
}

fn tell(pipe: OwnedFd, row: &Row) {
    let _ = serde_json::to_writer(File::from(pipe), row);
}

/// Its last word gets out before it begins.
const WORD: Duration = Duration::from_secs(1);

/// `hang --until-reset`: hangs the board, for the tests of a bench's reset. A loop on every
/// processor that no other program and no thread of the kernel interrupts.
pub(crate) fn hang() -> ExitCode {
    // Else the kernel leaves 5 % to the others (Documentation/scheduler/sched-rt-group.rst). From
    // 6.12 on a fair server has its share as well.
    let _ = fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    for entry in fs::read_dir("/sys/kernel/debug/sched/fair_server").into_iter().flatten().flatten()
    {
        let _ = fs::write(entry.path().join("runtime"), "0");
    }
    println!("hanging this board, which only a reset ends");
    thread::sleep(WORD);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    for processor in (0..processors).rev() {
        // The last one is this process itself.
        // SAFETY: this process has one thread.
        if processor > 0 && !matches!(unsafe { fork() }, Ok(ForkResult::Child)) {
            continue;
        }
        let mut set = CpuSet::new();
        let pinned = set.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
        let first = libc::sched_param { sched_priority: 99 };
        // SAFETY: the parameter lives until the call returns.
        let is_first =
            unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) } == 0;
        if pinned.is_err() || !is_first {
            eprintln!("contigo-board-tests: hang: this wants root");
            return ExitCode::FAILURE;
        }
        loop {
            hint::spin_loop();
        }
    }
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    fn passed(cost: Cost) -> Row {
        let mut row = Row::new(&Name::check("x", "", ""), Status::Passed, "all\nwell");
        (row.syscalls, row.jobs) = (cost.syscalls, u64::try_from(cost.first_call).unwrap_or(0));
        row
    }

    /// One test, because a fork in a process with several threads must not allocate, and these do.
    #[test]
    fn calls_are_counted_and_what_goes_wrong_is_told() {
        let name = Name::check("x", "", "");
        let ended = |row: &Row| (row.status, row.reason.clone());
        let quiet = row(&name, None, 10, |steady| {
            passed(steady.run(|| (0..1000_u64).map(std::hint::black_box).sum::<u64>()).1)
        });
        assert_eq!(ended(&quiet), (Status::Passed, "all\nwell".into()));
        if quiet.syscalls.is_none() {
            return println!("skipped: ptrace(2) is not possible here");
        }
        assert_eq!(quiet.syscalls, Some(0));
        let three =
            row(&name, None, 10, |steady| passed(steady.run(|| [getpid(), getpid(), getpid()]).1));
        let number = u64::try_from(libc::SYS_getpid).unwrap_or(0);
        assert_eq!((three.syscalls, three.jobs), (Some(3), number));
        // Twice, and what lies between is not counted.
        let twice = row(&name, None, 10, |steady| {
            steady.run(getpid);
            let _ = getpid();
            passed(steady.run(getpid).1)
        });
        assert_eq!(twice.syscalls, Some(2));
        let crashed = row(&name, None, 10, |_| {
            let _ = kill(getpid(), Signal::SIGKILL);
            passed(Cost::NOTHING)
        });
        assert_eq!(ended(&crashed), (Status::Failed, "ended by SIGKILL".into()));
        let hung = row(&name, None, 1, |steady| {
            steady.run(|| sleep(Duration::from_secs(60)));
            passed(Cost::NOTHING)
        });
        assert_eq!(ended(&hung), (Status::Failed, "did not end within 1 s".into()));
    }
}
