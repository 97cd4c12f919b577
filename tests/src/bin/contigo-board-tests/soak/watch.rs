//! Numbers that must not grow: this process's memory and files, and the kernel's counters.

use crate::lab::KernelLog;
use crate::machine::meminfo;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// This process keeps a few counts: a mebibyte more than after its first rounds is a leak.
const RSS_GROWS_KIB: u64 = 1024;
/// Memory of the kernel that it cannot give back. Its caches of processes and of files come and go
/// by some mebibytes.
const SLAB_GROWS_KIB: u64 = 16 << 10;
/// Of the contiguous memory a part may be lent to the page cache.
const CMA_FALLS_PART: u64 = 4;
const CMA_FALLS_KIB: u64 = 4 << 10;
/// The kernel gives some back in its own time, after a process's end.
const SETTLES: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
/// Words of the kernel's log that mean a fault of its own.
const FAULTS: [&str; 7] =
    ["BUG:", "KASAN", "UBSAN:", "WARNING:", "Oops", "INFO: task", "Unable to handle"];

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnMemory {
    pub(crate) first_kib: u64,
    pub(crate) last_kib: u64,
    pub(crate) max_kib: u64,
}

impl OwnMemory {
    pub(crate) const fn bound_kib(&self) -> u64 {
        self.first_kib + RSS_GROWS_KIB
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    slab_kib: Option<u64>,
    cma_free_kib: Option<u64>,
    huge_free: Option<u64>,
    files: usize,
}

#[derive(Debug)]
pub(crate) struct Watch {
    memory: OwnMemory,
    first: Option<Counters>,
    log: Option<KernelLog>,
    /// No other program uses this machine.
    lab: bool,
}

impl Watch {
    pub(crate) fn new(lab: bool) -> Self {
        Self { memory: OwnMemory::default(), first: None, log: KernelLog::from_here().ok(), lab }
    }

    /// From here on nothing may grow.
    pub(crate) fn begin(&mut self) {
        self.first = Some(Counters::now(self.lab));
        self.memory.first_kib = rss_kib();
    }

    pub(crate) const fn own_memory(&self) -> OwnMemory {
        self.memory
    }

    /// The first that has grown beyond its bound. `whole`: the kernel's counters, too.
    pub(crate) fn grown(&mut self, whole: bool) -> Option<String> {
        self.memory.last_kib = rss_kib();
        self.memory.max_kib = self.memory.max_kib.max(self.memory.last_kib);
        if self.first.is_none() {
            self.memory.first_kib = self.memory.last_kib;
        }
        if self.memory.last_kib > self.memory.bound_kib() {
            return Some(format!(
                "this process has {} KiB, and had {}",
                self.memory.last_kib, self.memory.first_kib
            ));
        }
        let said = self.log.as_mut().map(KernelLog::lines).unwrap_or_default();
        if let Some(line) = said.iter().find(|line| FAULTS.iter().any(|word| line.contains(word))) {
            return Some(format!("the kernel: {line}"));
        }
        let first = self.first.filter(|_| whole)?;
        let end = Instant::now() + SETTLES;
        loop {
            let grown = Counters::now(self.lab).grown(&first);
            if grown.is_none() || Instant::now() >= end {
                return grown;
            }
            sleep(LOOK);
        }
    }
}

impl Counters {
    /// On a board that does anything else, files' pages lie in CMA, and another program may
    /// have a huge page.
    fn now(lab: bool) -> Self {
        let of_lab = |name| if lab { meminfo(name) } else { None };
        Self {
            slab_kib: meminfo("SUnreclaim"),
            cma_free_kib: of_lab("CmaFree"),
            huge_free: of_lab("HugePages_Free"),
            files: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
        }
    }

    fn grown(&self, first: &Self) -> Option<String> {
        if let (Some(was), Some(is)) = (first.slab_kib, self.slab_kib)
            && is > was + SLAB_GROWS_KIB
        {
            return Some(format!("the kernel's SUnreclaim was {was} KiB and is {is}"));
        }
        if let (Some(was), Some(is)) = (first.cma_free_kib, self.cma_free_kib)
            && is + (was / CMA_FALLS_PART).max(CMA_FALLS_KIB) < was
        {
            return Some(format!("CmaFree was {was} KiB and is {is}"));
        }
        if self.huge_free < first.huge_free {
            return Some(format!(
                "HugePages_Free was {:?} and is {:?}",
                first.huge_free, self.huge_free
            ));
        }
        (self.files > first.files)
            .then(|| format!("{} files are open, and {} were", self.files, first.files))
    }
}

fn rss_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_named() {
        let first = Counters {
            slab_kib: Some(1000),
            cma_free_kib: Some(30_000),
            huge_free: Some(4),
            files: 5,
        };
        assert_eq!(first.grown(&first), None);
        for (now, said) in [
            (Counters { slab_kib: Some(100_000), ..first }, "SUnreclaim"),
            (Counters { cma_free_kib: Some(20_000), ..first }, "CmaFree"),
            (Counters { huge_free: Some(3), ..first }, "HugePages_Free"),
            (Counters { files: 6, ..first }, "6 files are open"),
        ] {
            assert!(now.grown(&first).is_some_and(|why| why.contains(said)), "{said}");
        }
    }

    #[test]
    fn a_leak_of_this_process_is_seen() {
        let mut watch = Watch::new(false);
        watch.begin();
        assert_eq!(watch.grown(false), None);
        let kept = vec![1_u8; 4 << 20];
        let grown = watch.grown(false);
        assert!(
            grown.is_some_and(|why| why.contains("this process has"))
                && kept.iter().all(|&byte| byte == 1)
        );
    }
}
