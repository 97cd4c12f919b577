#![allow(unsafe_code, reason = "fork")]
//! Memory pressure: another process takes a part of what is free, and holds it for a round.

use crate::{machine::meminfo, map::Map};
use nix::{
    libc,
    sys::{
        signal::{Signal, kill},
        wait::waitpid,
    },
    unistd::{ForkResult, Pid, fork},
};
use std::{
    fs,
    io::{Read, Write},
};

/// Never more than this: an hour of writing all of a large machine's memory tests the machine.
const MOST_KIB: u64 = 512 << 10;
const PAGE_BYTES: usize = 4096;
/// The process ends itself after so long, where its parent has not killed it.
const LIMIT_S: u32 = 300;

/// The process.
#[derive(Debug)]
pub(super) struct Pressure(Pid);

impl Pressure {
    /// Takes half of what is available. `None`: there is too little, or no process can be made.
    pub(super) fn begin() -> Option<Self> {
        let kib = (meminfo("MemAvailable")? / 2).min(MOST_KIB);
        let len_bytes = usize::try_from(kib << 10).ok()? / PAGE_BYTES * PAGE_BYTES;
        let (mut reader, writer) = std::io::pipe().ok()?;
        // SAFETY: this process has one thread.
        match unsafe { fork() }.ok()? {
            ForkResult::Child => {
                drop(reader);
                hold(len_bytes, writer);
                // SAFETY: `exit_group`, and nothing before it.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                drop(writer);
                let pressure = Self(child);
                reader.read_exact(&mut [0]).is_ok().then_some(pressure)
            }
        }
    }
}

fn hold(len_bytes: usize, mut told: impl Write) {
    // SAFETY: alarm(2) ends this process at the limit.
    unsafe { libc::alarm(LIMIT_S) };
    // Where there is too little after all, this process is the one to go.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let Ok(map) = Map::guarded(len_bytes) else { return };
    for at in (0..len_bytes).step_by(PAGE_BYTES) {
        // SAFETY: a byte of the mapping, which no other code uses.
        unsafe { map.start().add(at).write_volatile(1) };
    }
    let _ = told.write_all(&[1]);
    nix::unistd::pause();
}

impl Drop for Pressure {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}
