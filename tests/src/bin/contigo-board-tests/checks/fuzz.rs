#![allow(
    unsafe_code,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::unnecessary_cast,
    reason = "a hostile user: ioctls with whatever numbers and pointers; request codes have 32 \
              bits on armv7"
)]
//! A hostile user of a contigo: random and mutated calls, of which none may do harm. In a soak it
//! is killed again and again, and root takes the device away beside it.

use crate::apart::{AT_WORK, Apart, USER, allow, opens};
use crate::checks::dev_node::{Subject, lazily};
use crate::machine::meminfo;
use crate::pages::{Map, block};
use crate::raw::{RawDevNode, code};
use crate::verdict::{Verdict, Wrong, ensure, must};
use fastrand::Rng;
use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Calls, half of them before the kernel's counters are read a first time.
const CALLS: u64 = 500_000;
/// After so many the file is closed and opened again.
const CALLS_PER_FILE: u64 = 20_000;
/// Bytes of the largest argument, an array of ranges or steps, and room behind it.
const ARENA_BYTES: usize = 64 << 10;
/// The growth of the kernel's own memory (`SUnreclaim`) in the second half that is no error: slabs
/// are filled and given back in pages.
const SLAB_KB: u64 = 2_048;
/// The loss of CMA that is no error: pages that are given back are in each processor's own list
/// first, which `CmaFree` does not count.
const CMA_KB: u64 = 2_048;
/// For a row of this kind on a kernel that checks every access, in an emulator.
const LIMIT: Duration = Duration::from_secs(240);

/// The calls of `kernel-helpers/uapi/contigo.h`.
const CODES: [u32; 13] = [
    code::GET_INFO,
    code::SET_DMA_BITS,
    code::ALLOC,
    code::EXPORT,
    code::IMPORT,
    code::GET_SEGMENTS,
    code::RELEASE,
    code::SYNC,
    code::ARM,
    code::UNMASK,
    code::SET_EVENTFD,
    code::RESET,
    code::WAIT,
];
/// One call in so many is none of them, but mmap(), read() or poll().
const OTHERS: u8 = 12;
/// A poll of a program that is run takes so long at most, and seldom longer.
const POLL_US: u64 = 20;
const EDGES: [u64; 16] =
    [0, 1, 2, 3, 4, 11, 12, 32, 64, 255, 256, 257, 1024, 1025, u32::MAX as u64, u64::MAX];

/// Threads that call at once, on one file: as many as the lab's machine has processors.
const THREADS: usize = 2;

struct Hands {
    rng: Rng,
    /// dma-bufs, and what is none.
    files: Vec<OwnedFd>,
    /// Where arguments and arrays are; behind it is nothing.
    map: Map,
    /// The last dma-buf of the device's own memory.
    exported: Option<OwnedFd>,
    accepted: u64,
}

/// A hostile user of a port of the module contigo, with a heap for dma-bufs.
pub(crate) fn fuzzed(subject: &Subject) -> Verdict {
    lazily(subject, || fuzzed_here(subject))
}

fn fuzzed_here(subject: &Subject) -> Verdict {
    let free = || {
        meminfo("CmaFree")
            .zip(meminfo("SUnreclaim"))
            .ok_or_else(|| Wrong::Skipped("/proc/meminfo has no CmaFree".into()))
    };
    let mut threads = Hands::all(subject, 0)?;
    let begun = Instant::now();
    let mut half = || {
        let mut made = 0;
        while made < CALLS / 2 && begun.elapsed() < LIMIT {
            // The contigo device is exclusive: what it held is gone, and it is closed, before it is
            // opened again.
            let dev_node = subject.open()?;
            must("fcntl", dev_node.set_nonblocking())?;
            // A device that is not seen to have stopped keeps its buffers, as it should; the fuzzer
            // does not test that.
            let stopped = subject.always(&must("mmap", dev_node.map())?);
            Hands::call_all(&mut threads, &dev_node, subject);
            made += CALLS_PER_FILE;
            must("ARM", dev_node.arm(&stopped))?;
        }
        Ok::<u64, Wrong>(made)
    };
    let first = half()?;
    let (cma, slab) = free()?;
    let second = half()?;
    let mut after = free()?;
    // Each processor adds its own to the counters once a second.
    for _ in 0..60 {
        if after.0 + CMA_KB >= cma && after.1 <= slab + SLAB_KB {
            break;
        }
        sleep(Duration::from_millis(50));
        after = free()?;
    }
    let accepted = threads.iter().map(|hands| hands.accepted).sum::<u64>();
    let (calls, (cma_then, slab_then)) = (first + second, after);
    let seen = format!(
        "{calls} calls by {THREADS} threads, {accepted} accepted; CmaFree {cma} and {cma_then} kB, \
         SUnreclaim {slab} and {slab_then} kB"
    );
    ensure(calls >= CALLS, format!("too slow: {seen}"))?;
    ensure(cma_then + CMA_KB >= cma && slab_then <= slab + SLAB_KB, seen.clone())?;
    ensure(accepted > CALLS / 100, format!("too few were accepted: {seen}"))?;
    Ok(seen)
}

/// Calls until this process is killed, whatever becomes of the device meanwhile.
fn without_end(subject: &Subject, seed: u64) -> Verdict {
    let mut threads = Hands::all(subject, seed)?;
    loop {
        // Not there while it is unbound, and refused while it is in quarantine behind an IOMMU.
        let Ok(dev_node) = RawDevNode::open(&subject.dev_node) else {
            sleep(Duration::from_millis(1));
            continue;
        };
        must("fcntl", dev_node.set_nonblocking())?;
        Hands::call_all(&mut threads, &dev_node, subject);
    }
}

impl Hands {
    fn all(subject: &Subject, seed: u64) -> Result<Vec<Self>, Wrong> {
        (0..THREADS as u64).map(|thread| Self::new(&subject.heap, seed ^ thread)).collect()
    }

    fn call_all(threads: &mut [Self], dev_node: &RawDevNode, subject: &Subject) {
        std::thread::scope(|scope| {
            for hands in threads {
                scope.spawn(|| {
                    (0..CALLS_PER_FILE / THREADS as u64).for_each(|_| hands.call(dev_node, subject))
                });
            }
        });
    }

    fn new(heap: &str, seed: u64) -> Result<Self, Wrong> {
        let mut files = Vec::new();
        for pages in [1, 3, 16] {
            files.push(block(heap, pages * 4096)?);
        }
        for path in ["/dev/null", "/proc/self/exe"] {
            files.push(must(path, File::open(path))?.into());
        }
        Ok(Self {
            rng: Rng::with_seed(seed),
            files,
            map: must("mmap", Map::guarded(ARENA_BYTES))?,
            exported: None,
            accepted: 0,
        })
    }

    fn call(&mut self, raw: &RawDevNode, subject: &Subject) {
        if self.rng.u8(..OTHERS) == 0 {
            return self.other(raw, subject);
        }
        let dev_node = raw.as_fd().as_raw_fd();
        let request = match self.rng.u8(..16) {
            0 => self.rng.u32(..),
            1 => CODES[self.rng.usize(..CODES.len())] ^ 1 << self.rng.u8(..32),
            _ => CODES[self.rng.usize(..CODES.len())],
        };
        self.fill(request, dev_node);
        let fd = if self.rng.u8(..64) == 0 { self.some_fd(dev_node) } else { dev_node };
        let at = self.rng.usize(..8) * 8;
        let argument = match self.rng.u8(..32) {
            0 => self.edge() as usize,
            1 => usize::MAX - self.rng.usize(..64),
            // The kernel's half, on arm and arm64.
            2 => usize::MAX << (usize::BITS - 2) | self.rng.usize(..4096),
            3 => self.start() + ARENA_BYTES - self.rng.usize(..32),
            4 => self.start() + at + self.rng.usize(..8),
            _ => self.start(),
        };
        self.limit_wait(request, argument);
        // SAFETY: the kernel may write into the arena, of which no reference is alive. An
        // inaccessible page lies behind it, and the kernel refuses every other address that is
        // given here.
        let result = unsafe { libc::ioctl(fd, request as _, argument) };
        if result == 0 {
            self.accepted += 1;
            self.keep_exported(request, argument);
        } else {
            debug_assert_ne!(Errno::last(), Errno::UnknownErrno);
        }
    }

    /// A wait ends soon: its limit is the second word of its argument.
    fn limit_wait(&self, request: u32, argument: usize) {
        let arena = self.start()..=self.start() + ARENA_BYTES - 8;
        if request == code::WAIT && arena.contains(&argument) {
            // SAFETY: four bytes of the arena, of which no reference is alive.
            unsafe {
                let limit = self.map.start().add(argument - arena.start() + 4).cast::<u32>();
                limit.write_unaligned(limit.read_unaligned().min(POLL_US as u32));
            }
        }
    }

    /// The dma-buf that a call has just made, whose descriptor is the second word of its argument.
    /// It is a file for later calls, in the place of the one before.
    fn keep_exported(&mut self, request: u32, argument: usize) {
        let arena = self.start()..self.start() + ARENA_BYTES - 8;
        if request != code::EXPORT || !arena.contains(&argument) {
            return;
        }
        // SAFETY: eight bytes of the arena, of which no reference is alive.
        let fd = unsafe {
            self.map.start().add(argument - arena.start + 4).cast::<i32>().read_unaligned()
        };
        // SAFETY: the kernel has just made this descriptor for this call.
        self.exported = Some(unsafe { OwnedFd::from_raw_fd(fd) });
    }

    /// A mapping of anything as anything, of which a register is read where it is mapped; or a look
    /// for interrupts.
    fn other(&mut self, dev_node: &RawDevNode, subject: &Subject) {
        let offset = match self.rng.u8(..6) {
            0 => 0,
            // Memory of its own: a handle, and a page of it.
            4 | 5 => self.rng.u64(..8) << 35 | self.rng.u64(..4) << 12,
            1 => self.rng.u64(..32) << 12,
            2 => self.rng.u64(..) & !0xFFF,
            _ => self.edge(),
        };
        let len_bytes = [1, 4096, 8192, 1 << 20, 1 << 21, u64::from(u32::MAX)][self.rng.usize(..6)];
        let access = ProtFlags::from_bits_truncate(self.rng.i32(..8));
        let kind = if self.rng.u8(..8) == 0 { MapFlags::MAP_PRIVATE } else { MapFlags::MAP_SHARED };
        let done = match self.rng.u8(..4) {
            0 => dev_node.read(self.rng.usize(..9)).is_ok(),
            1 => dev_node.poll(0) == 0,
            2 => dev_node.map().map(|registers| registers.read(subject.steady())).is_ok(),
            _ => dev_node.map_at(offset, len_bytes, access, kind).is_ok(),
        };
        self.accepted += u64::from(done);
    }

    /// An argument that is nearly right, at the arena's beginning; arrays behind it.
    fn fill(&mut self, request: u32, dev_node: RawFd) {
        let array = self.start() as u64 + 1024;
        // SAFETY: the arena is aligned, initialised, this value's alone, and the kernel writes it
        // only in a call.
        let arena = unsafe {
            std::slice::from_raw_parts_mut(self.map.start().cast::<u64>(), ARENA_BYTES / 8)
        };
        let words = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let handle = self.rng.u32(..8);
        let some = self.some_fd(dev_node);
        let (count, flag) = (self.rng.u32(..6), 1 << self.rng.u32(..2));
        let random = |rng: &mut Rng, range: std::ops::Range<u32>| words(rng.u32(range), 0);
        let argument: &[u64] = &match request {
            code::GET_INFO => [random(&mut self.rng, 24..256), 0, 0],
            code::SET_DMA_BITS => [random(&mut self.rng, 10..68), 0, 0],
            code::ALLOC => [self.rng.u64(..5) << 12, random(&mut self.rng, 0..2), 0],
            code::EXPORT | code::RELEASE => [words(handle, 0), 0, 0],
            code::IMPORT => [words(some.cast_unsigned(), self.rng.u32(..3)), 0, 0],
            code::GET_SEGMENTS => [words(handle, self.rng.u32(..3)), words(count, 0), array],
            code::SYNC | code::ARM => [words(count, 0), array, 0],
            code::UNMASK | code::WAIT => [random(&mut self.rng, 0..3), 0, 0],
            code::SET_EVENTFD => [words(self.rng.u32(..3), some.cast_unsigned()), 0, 0],
            _ => [0; 3],
        };
        arena[..9].fill(0);
        arena[..3].copy_from_slice(argument);
        for entry in 0..6_usize {
            let at = 128 + 3 * entry;
            // A range, or a step: three words each.
            let range = [words(handle, flag), self.rng.u64(..65536), self.rng.u64(..65536)];
            let step = [
                words(self.rng.u32(..5), 0),
                words(self.rng.u32(..16) * 4, self.rng.u32(..)),
                words(0, self.rng.u32(..POLL_US as u32)),
            ];
            arena[at..at + 3].copy_from_slice(if request == code::ARM { &step } else { &range });
        }
        // And then something is wrong with it.
        for _ in 0..self.rng.u8(..3) {
            let at = if self.rng.bool() { self.rng.usize(..9) } else { 128 + self.rng.usize(..18) };
            arena[at] = match self.rng.u8(..4) {
                0 => self.edge(),
                1 => arena[at] ^ 1 << self.rng.u8(..64),
                2 => self.rng.u64(..),
                _ => words(low(self.edge()), low(self.edge())),
            };
        }
        // A stop sequence that is run must not take a second each time.
        for entry in 0..6_usize {
            let word = &mut arena[130 + 3 * entry];
            if request == code::ARM
                && (POLL_US..=1_000_000).contains(&(*word >> 32))
                && self.rng.u16(..1000) != 0
            {
                *word = words(low(*word), POLL_US as u32);
            }
        }
        // GET_SEGMENTS writes an array: only inside the arena, or where the kernel must refuse.
        let is_outside = !(array..=array + 1024).contains(&arena[2]);
        if request == code::GET_SEGMENTS && is_outside && self.rng.u8(..8) != 0 {
            arena[2] = array;
        }
        if request == code::GET_SEGMENTS {
            let inside = array - 1024..array + ARENA_BYTES as u64 / 2;
            if !inside.contains(&arena[2]) {
                // Null, or an address of the kernel's half: never memory of this process that is
                // not the arena.
                arena[2] =
                    if self.rng.bool() { 0 } else { usize::MAX as u64 & !0xFFF | arena[2] & 0xFFF };
            }
        }
    }

    fn start(&self) -> usize {
        self.map.start().expose_provenance()
    }

    fn edge(&mut self) -> u64 {
        EDGES[self.rng.usize(..EDGES.len())]
    }

    fn some_fd(&mut self, dev_node: RawFd) -> RawFd {
        match self.rng.usize(..self.files.len() + 3) {
            at if at < self.files.len() => self.files[at].as_raw_fd(),
            at if at == self.files.len() => dev_node,
            at if at == self.files.len() + 1 => {
                self.exported.as_ref().map_or(-1, AsRawFd::as_raw_fd)
            }
            _ => -1,
        }
    }
}

const fn low(value: u64) -> u32 {
    value as u32
}

/// The teardown of a file may poll for a second, and so may what is in quarantine before it.
const KILLED: Duration = Duration::from_secs(10);
const CALLS_MS: std::ops::Range<u64> = 0..400;

/// The same in a soak: users in processes that are killed, and root beside them, who takes the
/// device away in every way. Then root has the device back, and nothing is in quarantine.
pub(crate) fn hostile(subject: &Subject, seed: u64, time: Duration) -> Verdict {
    let mut rng = Rng::with_seed(seed);
    let (mut users, mut unbinds, mut resets, mut endings) = (0, 0, 0, 0);
    let end = Instant::now() + time;
    while Instant::now() < end {
        allow(&subject.dev_node)?;
        let user = opens(&subject.dev_node)?.is_ok().then_some(USER);
        let seed = rng.u64(..);
        let user = Apart::begin(user, |pipe| {
            must("pipe", pipe.write_all(&AT_WORK))?;
            without_end(subject, seed)
        })?
        .at_work()?;
        sleep(Duration::from_millis(rng.u64(CALLS_MS)));
        match rng.u8(..4) {
            0 => {
                subject.unbind()?.bind()?;
                unbinds += 1;
            }
            1 => resets += u32::from(subject.reset_by_root().is_ok()),
            2 => {
                subject.end_quarantine()?;
                endings += 1;
            }
            _ => {}
        }
        sleep(Duration::from_millis(rng.u64(CALLS_MS)));
        let killed = user.killed()?;
        ensure(killed < KILLED, format!("a hostile user's end took {killed:?}"))?;
        users += 1;
    }
    subject.end_quarantine()?;
    drop(subject.open()?);
    let left = subject.quarantined_bytes()?;
    ensure(left == 0, format!("root has the device back, and {left} bytes are in quarantine"))?;
    allow(&subject.dev_node)?;
    Ok(format!(
        "{users} hostile users killed, {unbinds} unbinds, {resets} resets, {endings} quarantines \
         ended"
    ))
}
