#![allow(
    unsafe_code,
    reason = "registers through /dev/mem, and a child process that may die of one"
)]
//! Registers at their physical addresses, through `/dev/mem`.

use super::AccessError;
use crate::machine::{Machine, page_bytes};
use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, pthread_sigmask, signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, pipe2, read, write};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

/// The smallest unit of a mapping; a page of every kernel here is a multiple of it.
const PAGE: u64 = 4096;
/// An access takes a microsecond, though on a busy machine its process may start a second late. A
/// stuck bus never answers, and blocks the processor.
const ACCESS_MAX: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_micros(100);

/// Access to 32-bit registers at physical addresses. Tests replace it.
pub trait Registers {
    /// Reads the register at `addr`, a multiple of 4.
    ///
    /// # Errors
    /// The register was not reached.
    fn read(&self, addr: u64) -> Result<u32, AccessError>;

    /// Writes the register.
    ///
    /// # Errors
    /// The register was not reached.
    fn write(&self, addr: u64, value: u32) -> Result<(), AccessError>;
}

/// `/dev/mem` of a machine. A child process makes each access, so a bus error ends only the child.
#[derive(Debug)]
pub struct DevMem(File);

impl DevMem {
    /// Opens it, with `writable` also for writing. A copied machine's is a regular file, and is not
    /// written.
    ///
    /// # Errors
    /// [`AccessError::Open`].
    pub fn open(machine: &Machine, writable: bool) -> Result<Self, AccessError> {
        machine.files().registers("dev/mem", writable).map(Self).map_err(AccessError::Open)
    }

    fn mapped(&self, addr: u64, writable: bool) -> Result<(MmapRaw, usize), AccessError> {
        let failed = |error| AccessError::Map { addr, error };
        let page = page_bytes().unwrap_or(PAGE);
        let offset = usize::try_from(addr % page)
            .map_err(|_| failed(std::io::ErrorKind::InvalidInput.into()))?;
        let mut options = MmapOptions::new();
        options.offset(addr - addr % page).len(offset + size_of::<u32>());
        #[allow(clippy::disallowed_methods, reason = "a child of fork is who has it")]
        let mapped =
            if writable { options.map_raw(&self.0) } else { options.map_raw_read_only(&self.0) };
        Ok((mapped.map_err(failed)?, offset))
    }
}

impl Registers for DevMem {
    fn read(&self, addr: u64) -> Result<u32, AccessError> {
        let (mapped, offset) = self.mapped(addr, false)?;
        // SAFETY: `mapped` is `offset` bytes and a word long, and lives until `in_child` has
        // returned; `offset` is a multiple of 4, because `addr` and a page's beginning are.
        in_child(addr, || unsafe { mapped.as_ptr().add(offset).cast::<u32>().read_volatile() })
    }

    fn write(&self, addr: u64, value: u32) -> Result<(), AccessError> {
        let (mapped, offset) = self.mapped(addr, true)?;
        // SAFETY: as in `read`, and the mapping is writable.
        in_child(addr, || unsafe {
            mapped.as_mut_ptr().add(offset).cast::<u32>().write_volatile(value);
            0
        })
        .map(drop)
    }
}

/// Runs `access` in a child process, and returns its result.
fn in_child(addr: u64, access: impl FnOnce() -> u32) -> Result<u32, AccessError> {
    let (result, sender) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // A signal handler of this program must not run in the child.
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    // SAFETY: other threads of this process may hold locks that stay locked in the child. It takes
    // none: it sets signals' actions and mask, and calls `prctl`, one access, `write` and `_exit`.
    let forked = unsafe { fork() };
    if !matches!(forked, Ok(ForkResult::Child)) {
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    }
    match forked? {
        ForkResult::Child => {
            let mut fatal = SigSet::empty();
            for fault in [Signal::SIGBUS, Signal::SIGSEGV] {
                // SAFETY: the default action runs no code of this program.
                let _ = unsafe { signal(fault, SigHandler::SigDfl) };
                fatal.add(fault);
            }
            // With this, the child's status names the fault. The kernel decides what a blocked
            // fault does, and qemu-user ends such a child by another signal.
            let _ = pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&fatal), None);
            // SAFETY: it takes numbers. A bus error is an expected result, and leaves no core file.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong) };
            let value = access().to_ne_bytes();
            let sent = write(&sender, &value);
            // SAFETY: `_exit` ends the process, and runs no code of the parent.
            unsafe { libc::_exit(i32::from(sent != Ok(value.len()))) }
        }
        ForkResult::Parent { child } => {
            drop(sender);
            let began = Instant::now();
            loop {
                let status = match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
                    // This program ignores SIGCHLD, and the kernel has already reaped the child.
                    Err(Errno::ECHILD) => {
                        return word(&result).map_err(|_| AccessError::Bus { addr });
                    }
                    status => status?,
                };
                match status {
                    WaitStatus::Exited(_, 0) => return word(&result),
                    WaitStatus::Exited(..) => return Err(AccessError::Child(Errno::EPIPE)),
                    WaitStatus::Signaled(_, Signal::SIGBUS, _) => {
                        return Err(AccessError::Bus { addr });
                    }
                    WaitStatus::Signaled(_, signal, _) => {
                        return Err(AccessError::Killed { addr, signal });
                    }
                    _ if began.elapsed() > ACCESS_MAX => {
                        // Waiting for the child could take for ever: init reaps it.
                        let _ = kill(child, Signal::SIGKILL);
                        return Err(AccessError::NoAnswer { addr });
                    }
                    _ => thread::sleep(LOOK),
                }
            }
        }
    }
}

fn word(result: &OwnedFd) -> Result<u32, AccessError> {
    let mut bytes = [0; size_of::<u32>()];
    match read(result.as_fd(), &mut bytes)? {
        length if length == bytes.len() => Ok(u32::from_ne_bytes(bytes)),
        _ => Err(AccessError::Child(Errno::EPIPE)),
    }
}
