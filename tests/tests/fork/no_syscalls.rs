//! A polled job makes no system call. A child process gives up all of them except write and exit
//! (man 2 seccomp; the next one is SIGSYS). Then it runs a thousand jobs: buffers from a pool
//! and a region, translation, submitting, waiting by the clock, chaining, running, and back.
//!
//! By a filter, not by seccomp's strict mode: on x86 that takes the time stamp counter away too,
//! and with it the clock.

use contigo::drivers::axi_dma::{AxiDmaConfig, Side};
use contigo::hw::{MmioWindow, Wired};
use contigo::linux::Spin;
use contigo::linux::memory::HugeTlb;
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::stream::SourceConfig;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{
    Align, Backend, Bus, DevAddr, Error, Mmio, Pool, Port, Queue, Region, Result, Stream, forward,
};
use contigo_gemm8::{Gemm, Gemm8, Output, regs};
use contigo_testkit::emulated;
use contigo_testkit::fake_dev_node::{DevNodeConfig, FakeDevNode};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::ptr::NonNull;
use std::time::Duration;

const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int8 { relu: true, shift: 0 } };
const SLOT: usize = 256;
const LIMIT: Duration = Duration::from_secs(1);
const WARM_UP: u32 = 10;
const JOBS: u32 = 1_000;

/// A child ends with one of these.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const NO_SECCOMP: i32 = 2;

/// Said so that it is seen also where the test passes.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

const ANY_PORT: Port = Port {
    name: "any-memory",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 64,
    window: (0, u64::MAX),
    coherent: false,
};

/// From here on, a system call is the end of this process.
fn give_up_system_calls() {
    let number = u32::try_from(std::mem::offset_of!(libc::seccomp_data, nr)).unwrap_or(0);
    let allow =
        |call: libc::c_long, jump| jump_if_equal(u32::try_from(call).unwrap_or(u32::MAX), jump);
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, number),
        allow(libc::SYS_write, 2),
        allow(libc::SYS_exit_group, 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 5, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, whose length is right.
    let status = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if status != 0 {
        exit(NO_SECCOMP);
    }
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or(0), jt: 0, jf: 0, k }
}

fn jump_if_equal(k: u32, jt: u8) -> libc::sock_filter {
    libc::sock_filter { jt, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

/// Ends the process with no destructors.
fn exit(status: i32) -> ! {
    // SAFETY: `exit_group`, and nothing before it.
    unsafe { libc::_exit(status) }
}

/// Ends the child, which reports how many jobs it did. Unmapping is a system call: nothing is
/// dropped.
fn done(report: i32, jobs: u64) -> ! {
    // SAFETY: eight bytes of a local, to a pipe.
    unsafe { libc::write(report, (&raw const jobs).cast(), size_of::<u64>()) };
    exit(DONE)
}

/// Runs `act` in a child with one thread. It must not return, panic or allocate: other threads of
/// the parent may have held locks. The bytes that it writes to its descriptor come back, with how
/// it ended.
fn in_child(act: impl FnOnce(i32)) -> (WaitStatus, Vec<u8>) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (reader, writer) = (std::os::fd::OwnedFd::from(reader), std::os::fd::OwnedFd::from(writer));
    // SAFETY: the child does as said above, and leaves by `exit`.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            act(writer.into_raw_fd());
            exit(FAILED)
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut told = Vec::new();
            // SAFETY: the descriptor was just given up by its owner.
            unsafe { File::from_raw_fd(reader.into_raw_fd()) }.read_to_end(&mut told).unwrap();
            (waitpid(child, None).unwrap(), told)
        }
    }
}

/// `gemm8` in software, behind a real register window over plain memory: a job is done at the fifth
/// look at CTRL.
struct Software<M: Mmio> {
    registers: M,
    region: Region,
    port: Port,
    looks: Cell<u32>,
}

impl<M: Mmio> Software<M> {
    fn at(&self, register: usize) -> u32 {
        self.registers.read32(register)
    }

    fn operand(&self, index: usize) -> NonNull<u8> {
        let low = regs::POINTERS[index].offset();
        let addr = DevAddr(u64::from(self.at(low)) | u64::from(self.at(low + 4)) << 32);
        self.region.host_ptr_of(&self.port, addr).unwrap_or(NonNull::dangling())
    }

    fn multiply(&self) {
        let [a, b, bias, c] = [0, 1, 2, 3].map(|index| self.operand(index));
        for column in 0..16 {
            // SAFETY: the operands of `GEMM` are a device's now, which this is, and as long as
            // `check` demands.
            unsafe {
                let product = |inner: usize| {
                    i32::from(a.add(inner).cast::<i8>().read())
                        * i32::from(b.add(16 * inner + column).cast::<i8>().read())
                };
                let sum = bias.cast::<i32>().add(column).read() + (0..16).map(product).sum::<i32>();
                c.add(column).cast::<i8>().write(i8::try_from(sum).unwrap_or(i8::MAX));
                self.registers.write32(regs::BYTES_OUT.offset(), 16);
            }
        }
    }
}

// SAFETY: the registers belong to this device; CTRL says done after `multiply`, which is the only
// access to memory. One driver owns it.
unsafe impl<M: Mmio> Mmio for Software<M> {
    forward!(|this| this.registers => len_bytes);
    fn read32(&self, offset: usize) -> u32 {
        if offset == regs::CTRL.offset() && self.looks.get() > 0 {
            self.looks.set(self.looks.get() - 1);
            if self.looks.get() == 0 {
                self.multiply();
                // SAFETY: plain memory.
                unsafe {
                    self.registers.write32(offset, regs::AP_DONE | regs::AP_IDLE | regs::AP_READY)
                };
            }
        }
        let value = self.registers.read32(offset);
        if offset == regs::CTRL.offset() {
            // AP_DONE is cleared by reading it, as HLS makes it.
            // SAFETY: plain memory.
            unsafe { self.registers.write32(offset, value & !regs::AP_DONE) };
        }
        value
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        if offset == regs::CTRL.offset() {
            // The status bits are the kernel's own.
            if value & regs::AP_START == 0 {
                return;
            }
            self.looks.set(5);
        }
        // SAFETY: plain memory.
        unsafe { self.registers.write32(offset, value) }
    }
}

/// One job and the next on its output, with buffers from everywhere. `Err` also where the result is
/// wrong.
fn two_jobs<M: Mmio>(
    queue: &mut Queue<Gemm8<Wired<Software<M>, Spin>>>,
    region: &Region,
    pool: &Pool,
) -> Result<()> {
    let (mut a, mut b) = (pool.take()?, pool.take()?);
    let (mut bias, c) = (region.alloc(64, Align::DLPACK)?, pool.take()?);
    a.view_at_mut::<i8>(..16)?.fill(1);
    b.view_mut::<i8>()?.fill(2);
    bias.view_at_mut::<i32>(..64)?.fill(3);
    let addr = region.dev_addr_of(queue.port(), c.view::<u8>()?.as_ptr(), SLOT)?;
    region.host_ptr_of(queue.port(), addr)?;
    let (c, rest) = c.split_at(64)?;
    let operands = [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..16)];
    queue.submit(operands, &GEMM.words())?;
    let None = queue.try_next::<4>()? else { return Err(Error::Busy) };
    let [a, b, bias, c] = queue.wait_device(LIMIT)?.ok_or(Error::Busy)?.buffers;
    drop(rest);
    let operands = [c.to_device(..), b.to_device(..), bias.to_device(..), a.from_device(..)];
    let [c, _, _, a] = queue.run(operands, &GEMM.words(), LIMIT)?.buffers;
    let right = c.view_at::<i8>(..16)? == [35; 16] && a.view_at::<i8>(..16)? == [127; 16];
    if right { Ok(()) } else { Err(Error::Busy) }
}

/// The words of a gemm8 that has nothing to do, by their offsets.
const IDLE: [(usize, u32); 2] =
    [(regs::CTRL.offset(), regs::AP_IDLE), (regs::ID.offset(), regs::ID_VALUE)];

/// As [`child_with`], with registers in memory of its own.
fn child(backend: impl Backend + 'static, port: Port, report: i32) -> Result<()> {
    let mut words = [0_u32; regs::WINDOW_BYTES / 4];
    IDLE.iter().for_each(|(offset, word)| words[offset / 4] = *word);
    // SAFETY: the array lives as long as this process's only thread needs it, and is reached
    // through the window alone.
    let registers =
        unsafe { MmioWindow::new(NonNull::from(&mut words).cast(), regs::WINDOW_BYTES) };
    child_with(registers, backend, port, report)
}

/// The child's work: everything up to the first job in the open, the rest with no system calls.
fn child_with(
    registers: impl Mmio,
    backend: impl Backend + 'static,
    port: Port,
    report: i32,
) -> Result<()> {
    let region = Region::new(backend)?;
    let pool = region.pool(70, SLOT)?;
    let hardware = Software { registers, region: region.clone(), port, looks: Cell::new(0) };
    // SAFETY: the device in software finds memory by this port's addresses.
    let device = unsafe { Wired::new(hardware, Spin, port) };
    // SAFETY: the device in software does what a gemm8 does.
    let mut queue = Queue::new(unsafe { Gemm8::open(device)? }, 1)?;
    for _ in 0..WARM_UP {
        two_jobs(&mut queue, &region, &pool)?;
    }
    give_up_system_calls();
    for _ in 0..JOBS / 2 {
        two_jobs(&mut queue, &region, &pool)?;
    }
    let jobs = queue.counts().completed - 2 * u64::from(WARM_UP);
    done(report, jobs)
}

/// A queue and a stream, on the simulated board's camera: a submit and a wait for each packet.
fn packets(report: i32) -> Result<()> {
    let board = SimBoard::new(2);
    let region = Region::new(board.memory(64 << 10)?)?;
    let pool = region.pool(8, 512)?;
    let camera = || -> Result<_> {
        let source = SourceConfig { packet_bytes: 512, ..SourceConfig::default() };
        let model = AxiDmaModel::new(CoreSpec::camera(source, 512));
        let device = SimDevice::with_model(&board, board.port(), model);
        let config = AxiDmaConfig { depth: Some(4), ..AxiDmaConfig::default() };
        let descriptors = region.alloc(256, Align::LINE)?;
        device.window()?.channel(Side::S2mm, config, Some(descriptors))
    };
    let mut queue = Queue::new(camera()?, 4)?;
    let mut stream = Stream::new(camera()?, pool.clone(), 4, &[])?;
    give_up_system_calls();
    let mut jobs = 0_u64;
    stream.start()?;
    for _ in 0..JOBS / 2 {
        while queue.len() < 3 {
            queue.submit([pool.take()?.from_device(..)], &[])?;
        }
        jobs += u64::from(queue.wait::<1>(LIMIT)?.is_some());
        let frame = stream.next(LIMIT)?.ok_or(Error::Busy)?;
        stream.give_back(frame.buf)?;
        jobs += 1;
    }
    done(report, jobs)
}

/// Why a child that wanted to give up its system calls could not.
fn no_seccomp() -> String {
    emulated::why().unwrap_or_else(|| "this kernel has no seccomp".to_owned())
}

/// `None` where the child was not allowed to give up its system calls, or its clock is one that is
/// asked at once; then it says that `test` is skipped. Where the clock is asked late
/// ([`contigo::Wait::looks_before_clock`]), the jobs here are done before that.
fn can_be_shown_here(test: &str) -> Option<()> {
    let (ended, _) = in_child(|_| {
        give_up_system_calls();
        exit(DONE)
    });
    match ended {
        WaitStatus::Exited(_, DONE) => {}
        WaitStatus::Exited(_, NO_SECCOMP) => {
            contigo_testkit::skipped(test, &no_seccomp());
            return None;
        }
        other => panic!("{other:?}"),
    }
    let (ended, _) = in_child(|_| {
        let before = contigo::Wait::now_us(&Spin);
        give_up_system_calls();
        exit(if contigo::Wait::now_us(&Spin) >= before { DONE } else { FAILED })
    });
    match ended {
        WaitStatus::Exited(_, DONE) => Some(()),
        WaitStatus::Signaled(_, Signal::SIGSYS, _)
            if contigo::Wait::looks_before_clock(&Spin) > 0 =>
        {
            Some(())
        }
        WaitStatus::Signaled(_, Signal::SIGSYS, _) => {
            contigo_testkit::skipped(test, "this machine's clock is not answered by the vDSO");
            None
        }
        other => panic!("{other:?}"),
    }
}

/// The child lived to the end of its thousandth job.
fn thousand_jobs_ran(memory: &str, (ended, told): (WaitStatus, Vec<u8>)) {
    match ended {
        WaitStatus::Exited(_, DONE) => {}
        WaitStatus::Signaled(_, Signal::SIGSYS, _) => {
            panic!("{memory}: a polled job made a system call")
        }
        other => panic!("{memory}: {other:?}"),
    }
    let jobs = u64::from_ne_bytes(told.try_into().unwrap());
    assert_eq!(jobs, u64::from(JOBS), "{memory}");
    say(&format!("no system call in {jobs} polled jobs on {memory}"));
}

#[test]
fn a_system_call_is_the_end_of_the_child() {
    let (ended, told) = in_child(|report| {
        give_up_system_calls();
        // SAFETY: no memory is involved.
        let pid = unsafe { libc::syscall(libc::SYS_getpid) };
        // SAFETY: as in `child`.
        unsafe { libc::write(report, (&raw const pid).cast(), size_of_val(&pid)) };
        exit(DONE)
    });
    match ended {
        WaitStatus::Exited(_, NO_SECCOMP) => contigo_testkit::skipped(
            "no_syscalls::a_system_call_is_the_end_of_the_child",
            &no_seccomp(),
        ),
        other => assert!(
            matches!(other, WaitStatus::Signaled(_, Signal::SIGSYS, _)) && told.is_empty(),
            "{other:?}"
        ),
    }
}

#[test]
fn none_on_simulated_memory() {
    let Some(()) = can_be_shown_here("no_syscalls::none_on_simulated_memory") else { return };
    let ended = in_child(|report| {
        let board = SimBoard::new(1);
        let port = board.coherent_port();
        let _ = board.memory(64 << 10).map(|memory| child(memory, port, report));
        exit(FAILED)
    });
    thousand_jobs_ran("the simulated board's memory", ended);
}

/// Registers and memory of one file, as a coherent port has them: the module is asked nothing.
#[test]
fn none_on_a_contigo_device() {
    let Some(()) = can_be_shown_here("no_syscalls::none_on_a_contigo_device") else { return };
    let ended = in_child(|report| {
        let kernel = FakeDevNode::new(DevNodeConfig { coherent: true, ..DevNodeConfig::default() });
        IDLE.iter().for_each(|(offset, word)| kernel.set_register(0, *offset as u64, *word));
        let port = Port { name: "acp", addr_bits: 32, coherent: true, ..ANY_PORT };
        let _ = kernel.open_dev_node().and_then(|dev_node| {
            let (registers, memory) = (dev_node.registers(0)?, dev_node.allocate(64 << 10)?);
            child_with(registers, memory, dev_node.seen_through(port), report)
        });
        exit(FAILED)
    });
    thousand_jobs_ran("a contigo device's registers and memory", ended);
}

#[test]
fn none_in_a_queue_and_a_stream() {
    let Some(()) = can_be_shown_here("no_syscalls::none_in_a_queue_and_a_stream") else { return };
    let ended = in_child(|report| {
        let _ = packets(report);
        exit(FAILED)
    });
    thousand_jobs_ran("a queue and a stream", ended);
}

#[test]
fn none_on_huge_pages() {
    let Some(()) = can_be_shown_here("no_syscalls::none_on_huge_pages") else { return };
    if let Err(why) = HugeTlb::new(1) {
        return contigo_testkit::skipped("no_syscalls::none_on_huge_pages", &why.to_string());
    }
    let ended = in_child(|report| {
        // On arm64 the caches are maintained here, by instructions; on a PC every master snoops.
        let port = Port { coherent: cfg!(target_arch = "x86_64"), ..ANY_PORT };
        let _ = HugeTlb::new(1).map(|memory| child(memory, port, report));
        exit(FAILED)
    });
    thousand_jobs_ran("huge pages", ended);
}
