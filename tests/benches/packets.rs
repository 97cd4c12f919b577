//! How many instructions a packet takes: AXI DMA's receive channel with scatter-gather, from the
//! end of one packet to the next one's doorbell.
//!
//! `cargo bench --package contigo-tests --bench packets` runs itself under valgrind, which counts
//! every instruction, with two numbers of packets. Their difference is the packets' alone. The part
//! that stands for the hardware is counted by doing it once more, and taken off.
//!
//! The floor is `floor.c`, the same ring in plain C, compiled by `cc -O2` and counted in the same
//! way. It checks nothing that its caller does.
//!
//! With `CARGO_INCREMENTAL=1` less is inlined, and the figures are half as much again.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "memory that stands for a board's, and a device that is plain memory"
)]

use contigo::drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, Side};
use contigo::job::AnyDriver;
use contigo::mem::{Mapping, SyncScope};
use contigo::types::BaseAddr;
use contigo::{
    Align, Backend, Bus, CpuBuf, Device, Direction, Driver, Error, Mmio, PhysAddr, Pool, Port,
    Queue, Region, Wait,
};
use std::alloc::{Layout, alloc_zeroed};
use std::array;
use std::cell::Cell;
use std::env;
use std::hint::black_box;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::ptr::NonNull;
use std::time::Duration;

const BASE: u64 = 1 << 28;
const BYTES: usize = 1 << 20;
const PACKET: u32 = 1024;
const PACKET_BYTES: usize = PACKET as usize;
const DEPTH: usize = 64;
const BURST: usize = 8;
const SHORT: u64 = 10_000;
const LONG: u64 = 20_000;

/// Memory that the device below writes, as on a port that snoops.
struct Plain(NonNull<u8>);

// SAFETY: 1, 2. A block that is leaked, zeroed, and used by no other code. 3, 5. A coherent block
// is never synchronised. 4. The device below is a part of this program, and writes by the bus
// address.
unsafe impl Backend for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }
    fn mapping(&self) -> Mapping {
        let (bus, scope) = (Bus::Soc, SyncScope::Coherent);
        Mapping {
            cpu: self.0,
            len_bytes: BYTES,
            base: BaseAddr::Phys(PhysAddr(BASE)),
            bus,
            scope,
            coherent: Some(true),
        }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
}

// SAFETY: an address of memory that no other code uses.
unsafe impl Send for Plain {}
// SAFETY: as for `Send`.
unsafe impl Sync for Plain {}

/// A receive channel whose packets have arrived as soon as it has room for them.
struct Instant {
    port: Port,
    memory: NonNull<u8>,
    control: Cell<u32>,
    status: Cell<u32>,
    current: Cell<u32>,
    twice: bool,
}

// SAFETY: one thread has it.
unsafe impl Send for Instant {}
// SAFETY: as for `Send`.
unsafe impl Sync for Instant {}

// AMD PG021: the bytes of a channel's registers, bits of DMACR and DMASR, and of a descriptor's
// status.
const CHANNEL_BYTES: usize = 0x30;
const RUN: u32 = 1 << 0;
const RESET: u32 = 1 << 2;
const HALTED: u32 = 1 << 0;
const IDLE: u32 = 1 << 1;
const SG_INCLUDED: u32 = 1 << 3;
const LAST: u32 = 1 << 26;
const FIRST: u32 = 1 << 27;
const COMPLETE: u32 = 1 << 31;

impl Instant {
    /// Every descriptor up to `tail` is done.
    #[inline(never)]
    fn arrive(&self, tail: u32) {
        let mut at = self.current.get();
        for _ in 0..DEPTH {
            // SAFETY: descriptors lie in the memory, at the address that the driver wrote.
            let next = unsafe {
                let words = self
                    .memory
                    .byte_add(usize::try_from(u64::from(at) - BASE).unwrap())
                    .cast::<u32>();
                words.add(7).write_volatile(COMPLETE | FIRST | LAST | PACKET);
                words.read_volatile()
            };
            if at == tail {
                break;
            }
            at = next;
        }
        self.current.set(at);
    }
}

// SAFETY: the registers are fields, and one driver has them.
unsafe impl Mmio for Instant {
    fn len_bytes(&self) -> usize {
        2 * CHANNEL_BYTES
    }
    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        match offset.wrapping_sub(CHANNEL_BYTES) {
            0x00 => self.control.get() & !RESET,
            0x04 => {
                self.status.get()
                    | SG_INCLUDED
                    | if self.control.get() & RUN == 0 { HALTED } else { IDLE }
            }
            0x08 => self.current.get(),
            _ => 0,
        }
    }
    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        match offset.wrapping_sub(CHANNEL_BYTES) {
            0x00 => self.control.set(value),
            0x04 => self.status.set(self.status.get() & !value),
            0x08 => self.current.set(value),
            0x10 => {
                let from = self.current.get();
                self.arrive(value);
                if self.twice {
                    self.current.set(black_box(from));
                    self.arrive(value);
                }
                // The next one begins after the tail.
                self.status.set(1 << 12);
            }
            _ => {}
        }
    }
}

impl Wait for Instant {
    fn now_us(&self) -> u64 {
        0
    }
    fn wait_at_most(&self, _: u32) -> contigo::Result<()> {
        Ok(())
    }
}

// SAFETY: it reaches memory by the port's addresses, and no other.
unsafe impl Device for Instant {
    fn port(&self) -> &Port {
        &self.port
    }
}

/// A run: so many packets, each of whose buffers is given back at once, or `BURST` of them
/// together.
#[derive(Clone, Copy)]
struct Run {
    in_flight: usize,
    packets: u64,
    any: bool,
    bursts: bool,
    twice: bool,
}

fn receive(run: Run) {
    let Run { any, twice, .. } = run;
    let layout = Layout::from_size_align(BYTES, 4096).unwrap();
    // SAFETY: the layout has a size.
    let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
    let region = Region::new(Plain(memory)).unwrap();
    let pool = region.pool(DEPTH, PACKET_BYTES).unwrap();
    let ring = region.alloc(DEPTH * 128, Align::PAGE).unwrap();
    let port = Port {
        name: "plain",
        bus: Bus::Soc,
        offset: 0,
        addr_bits: 32,
        window: (0, u64::from(u32::MAX)),
        coherent: true,
    };
    let device = Instant {
        port,
        memory,
        control: Cell::new(0),
        status: Cell::new(0),
        current: Cell::new(0),
        twice,
    };
    // SAFETY: it behaves as a receive channel with scatter-gather.
    let channel = unsafe {
        AxiDmaChannel::alone(device, Side::S2mm, AxiDmaConfig::default(), Some(ring)).unwrap()
    };
    if any {
        pass(Queue::new(AnyDriver::new(channel).unwrap(), DEPTH).unwrap(), &pool, run);
    } else {
        pass(Queue::new(channel, DEPTH).unwrap(), &pool, run);
    }
}

fn pass(mut queue: Queue<impl Driver>, pool: &Pool, run: Run) {
    for _ in 0..run.in_flight {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    if run.bursts {
        for _ in 0..run.packets / BURST as u64 {
            let burst: [CpuBuf; BURST] = array::from_fn(|_| {
                let [buf] = queue.wait(Duration::ZERO).unwrap().unwrap().buffers;
                buf
            });
            queue.hold_doorbell();
            for buf in burst {
                queue.submit([buf.from_device(..)], &[]).unwrap();
            }
            queue.ring_doorbell().unwrap();
        }
        return;
    }
    for _ in 0..run.packets {
        let [buf] = queue.wait(Duration::ZERO).unwrap().unwrap().buffers;
        queue.submit([buf.from_device(..)], &[]).unwrap();
    }
}

/// The table's rows, of which each has one for single packets and one for bursts.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Floor(&'a Path),
    Rust,
    ByName,
}

/// The instructions of a whole run of a program.
fn counted(subject: Subject, run: Run) -> Option<u64> {
    let Run { in_flight, packets, any, bursts, twice } = run;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    match subject {
        Subject::Floor(program) => valgrind.arg(program),
        Subject::Rust | Subject::ByName => valgrind
            .arg(env::current_exe().unwrap())
            .args(["--receive", &u8::from(any).to_string()]),
    };
    let run = valgrind
        .args([in_flight.to_string(), packets.to_string()])
        .args([bursts, twice].map(|flag| u8::from(flag).to_string()))
        .output()
        .ok()?;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    told.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok())
}

/// A row's figure: the hardware's part, which the second count has twice, is taken off.
fn per_packet(subject: Subject, in_flight: usize, bursts: bool) -> Option<u64> {
    let of = |twice| -> Option<u64> {
        let any = matches!(subject, Subject::ByName);
        let run = Run { in_flight, packets: LONG, any, bursts, twice };
        let more = counted(subject, run)? - counted(subject, Run { packets: SHORT, ..run })?;
        Some(more / (LONG - SHORT))
    };
    Some(2 * of(false)? - of(true)?)
}

/// `floor.c` as a program, if there is a compiler.
fn floor() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packets-floor");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/floor.c"))
        .output()
        .ok()?;
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--receive") {
        let [any, in_flight, packets, bursts, twice] =
            [1, 2, 3, 4, 5].map(|index| args.get(at + index).unwrap().parse::<u32>().unwrap());
        receive(Run {
            in_flight: in_flight as usize,
            packets: packets.into(),
            any: any == 1,
            bursts: bursts == 1,
            twice: twice == 1,
        });
        return ExitCode::SUCCESS;
    }
    if !args.iter().any(|arg| arg == "--bench") {
        println!("skipped: packets: it counts optimized code, as cargo bench builds it");
        return ExitCode::SUCCESS;
    }
    let floor = floor();
    if floor.is_none() {
        println!("skipped: packets: the floor: there is no C compiler (cc) here");
    }
    println!("instructions a packet | 1 in flight | 8 | 64");
    let subjects = [
        floor.as_deref().map(|program| (Subject::Floor(program), "plain C, the floor")),
        Some((Subject::Rust, "Rust")),
        Some((Subject::ByName, "over AnyDriver, as C and Python have it")),
    ];
    for bursts in [false, true] {
        for (subject, name) in subjects.into_iter().flatten() {
            let mut row = String::from(name) + if bursts { ", bursts of 8 | -" } else { "" };
            for in_flight in [1, BURST, DEPTH].into_iter().skip(usize::from(bursts)) {
                let Some(instructions) = per_packet(subject, in_flight, bursts) else {
                    println!("skipped: packets: valgrind is not here");
                    return ExitCode::SUCCESS;
                };
                row += &format!(" | {instructions}");
            }
            println!("{row}");
        }
    }
    ExitCode::SUCCESS
}
