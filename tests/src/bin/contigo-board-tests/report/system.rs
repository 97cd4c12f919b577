//! The kernel, the processor and the C library.

use contigo_bringup::machine::Machine;
use nix::sys::utsname::uname;
use serde::Serialize;
use std::thread;

#[derive(Debug, Serialize)]
pub(super) struct Kernel {
    release: String,
    version: String,
    preempt_rt: bool,
    command_line: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Processor {
    /// As `uname -m` has it.
    architecture: String,
    /// As `/proc/cpuinfo` has it.
    model: Option<String>,
    /// How many this program may use.
    processors: usize,
    /// Of this program's pointers.
    pointer_bits: u32,
}

fn text(of: impl Fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr) -> String {
    uname().map_or_else(|_| String::new(), |system| of(&system).to_string_lossy().into_owned())
}

impl Kernel {
    pub(super) fn of(machine: &Machine) -> Self {
        let version = text(|system| system.version());
        let preempt_rt = version.contains("PREEMPT_RT")
            || machine.text("sys/kernel/realtime").is_some_and(|text| text == "1");
        Self {
            release: text(|system| system.release()),
            version,
            preempt_rt,
            command_line: machine.text("proc/cmdline").unwrap_or_default(),
        }
    }
}

impl Processor {
    pub(super) fn of(machine: &Machine) -> Self {
        let cpuinfo = machine.text("proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == "model name"));
        Self {
            architecture: text(|system| system.machine()),
            model: model.map(|(_, value)| value.trim().to_owned()),
            processors: thread::available_parallelism().map_or(1, usize::from),
            pointer_bits: usize::BITS,
        }
    }
}

/// The C library that this program has: its own where it is static.
pub(super) fn c_library() -> String {
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "the machine's" };
    format!("{}, {linked}", version())
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "a text of the C library")]
fn version() -> String {
    // SAFETY: a static string that ends with 0 (gnu_get_libc_version(3)).
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

#[cfg(not(target_env = "gnu"))]
fn version() -> String {
    "another than glibc".into()
}
