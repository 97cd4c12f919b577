//! Stop programs, which the kernel runs when the program that drove a device is gone: how they are
//! put together and armed, and what they do to a device. The suite for drivers
//! (`tests/tests/model/suite/`) runs each driver's on its model.

use super::{os, plain};
use crate::driver_regs::{axi_dma, pl330, zdma};
use contigo::drivers::axi_dma::{AxiDmaConfig, Side};
use contigo::drivers::pl330::{PROGRAM_BYTES, Pl330, Pl330Config};
use contigo::job::{StopProgram, StopStep};
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::pl330::Pl330Model;
use contigo::sim::stream::SourceConfig;
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice, SimSpec};
use contigo::{Align, Driver as _, Error, Mmio, Queue, Region, Wait};
use contigo_gemm8::{Gemm8, SimGemm8, regs as gemm8};
use contigo_testkit::conformance::boards::OnSim;
use contigo_testkit::conformance::xor::Xor;
use contigo_testkit::fake_dev_node::{Event, FakeDevNode, Step};
use contigo_testkit::lent::Lent;
use nix::libc;
use std::cell::Cell;

/// A board, and memory of it for what a driver needs.
fn board() -> (SimBoard, Region) {
    let board = SimBoard::new(3);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    (board, region)
}

/// The steps that the kernel was given last.
fn armed(kernel: &FakeDevNode) -> Vec<Step> {
    match kernel.log().pop() {
        Some(Event::Armed(steps)) => steps,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_queue_arms_its_drivers_steps() {
    let (kernel, dev_node) = plain();
    let (board, _region) = board();
    let device = SimGemm8::new(&board, board.port());
    let queue = Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    // SAFETY: the fake has no device: nothing is written.
    let arm = |window| unsafe { queue.arm(&dev_node, window) };
    assert_eq!(arm(0), Ok(()));
    let [abort, ctrl] = [gemm8::ABORT.offset() as u32, gemm8::CTRL.offset() as u32];
    let write =
        |value| Step { kind: 1, offset_bytes: abort, mask: u32::MAX, value, ..Step::default() };
    let idle =
        Step { kind: 2, offset_bytes: ctrl, mask: 5, value: 4, timeout_us: 10_000, window: 0 };
    assert_eq!(armed(&kernel), [write(1), idle, write(0), idle]);
    assert_eq!(arm(1), Err(os("ioctl(CONTIGO_ARM)", libc::ENXIO)), "no such window");

    let step = StopStep::poll_while(8, 3, 2, 20);
    // SAFETY: as above.
    unsafe { dev_node.arm(&StopProgram::new(&[step]).unwrap(), 0).unwrap() };
    let expected = Step { kind: 3, offset_bytes: 8, mask: 3, value: 2, timeout_us: 20, window: 0 };
    assert_eq!(armed(&kernel), [expected]);

    let harness = OnSim::new(1, SimBoard::port, SimSpec::default());
    let queue = Queue::new(Xor::<_, 2>::new(&harness), 1).unwrap();
    // SAFETY: as above.
    let refused = unsafe { queue.arm(&dev_node, 0) };
    let what = "this driver has no stop program for the kernel";
    assert!(matches!(refused, Err(Error::Unsupported { what: why, .. }) if why == what));
    assert_eq!(kernel.log(), []);
}

/// Another channel that runs means memory that is kept.
#[test]
fn pl330_kills_its_channel_and_looks_at_all() {
    let (board, region) = board();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let memory = region.alloc(PROGRAM_BYTES, Align::LINE).unwrap();
    let config = Pl330Config { channel: 3, event: 2 };
    // SAFETY: the window is a simulated PL330's.
    let driver = unsafe { Pl330::open_with(device.window().unwrap(), memory, config) }.unwrap();
    let program = driver.stop_program();
    let steps = program.steps();
    let own = pl330::CHANNELS[3].csr.offset();
    let kill = StopStep::write(pl330::DBGINST0.offset(), u32::MAX, 0x0001_0301);
    assert_eq!(steps[2], kill, "DMAKILL of channel 3");
    assert!(
        matches!(steps[0], StopStep::PollUntil { offset_bytes, value, .. }
            | StopStep::PollWhile { offset_bytes, value, .. }
            if (offset_bytes as usize, value) == (own, pl330::FAULTING_COMPLETING)),
        "{:?}",
        steps[0]
    );
    let all: Vec<_> = pl330::CHANNELS
        .iter()
        .map(|channel| StopStep::poll_until(channel.csr.offset(), 0xF, 0, 0))
        .collect();
    assert_eq!(steps[7..], all);
    assert!(
        matches!(steps[6], StopStep::PollUntil { offset_bytes, value: 0, .. }
            if offset_bytes as usize == own),
        "{:?}",
        steps[6]
    );
}

/// ENABLE falls with the copy's end, and STATUS says when the bus is idle. The model has both at
/// once, so that the suite cannot tell a program without the one from a program with it.
#[test]
fn zdma_is_waited_for_in_both_registers() {
    let (board, _region) = board();
    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    let program = device.window().unwrap().simple().unwrap().stop_program();
    let steps = [
        StopStep::write(zdma::IDS.offset(), u32::MAX, zdma::INT_ALL),
        StopStep::poll_until(zdma::CTRL2.offset(), zdma::ENABLE, 0, 900_000),
        StopStep::poll_while(zdma::STATUS.offset(), zdma::STATE, zdma::STATE_BUSY, 10_000),
    ];
    assert_eq!(program.steps(), steps);
}

/// The kernel's stop, done by the runtime on the model: the program stops a channel at work.
#[test]
fn a_program_stops_a_channel_that_never_ends() {
    let (board, region) = board();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let program = region.alloc(PROGRAM_BYTES, Align::LINE).unwrap();
    let window = device.window().unwrap();
    // SAFETY: the window is a simulated PL330's, and the program that stops it is run in its
    // driver's place.
    let mut driver = unsafe { Pl330::open(Lent::new(&window), program) }.unwrap();
    // DMALP forever: LOOP, NOP, DMALPEND without a counter.
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&[0x18, 0x28, 0x01]).unwrap() };
    device.run_for(5_000).unwrap();
    let steps = driver.stop_program();
    std::mem::forget(driver);
    let status = || pl330::CHANNELS[0].csr.read(&window) & pl330::STATUS;
    assert_ne!(status(), pl330::STOPPED, "it runs for ever");
    // SAFETY: DMAKILL starts nothing.
    assert_eq!(unsafe { steps.run(&window, 50) }, Ok(()));
    assert_eq!(status(), pl330::STOPPED);
}

/// Registers that a test answers for: a device that is gone, or the channel of an AXI DMA.
struct Registers<R: Fn(usize) -> u32, W: Fn(usize, u32)> {
    read: R,
    write: W,
    now_us: Cell<u64>,
}

impl<R: Fn(usize) -> u32, W: Fn(usize, u32)> Registers<R, W> {
    const fn new(read: R, write: W) -> Self {
        Self { read, write, now_us: Cell::new(0) }
    }
}

// SAFETY: there is no device.
unsafe impl<R: Fn(usize) -> u32, W: Fn(usize, u32)> Mmio for Registers<R, W> {
    fn len_bytes(&self) -> usize {
        0x1_0000
    }
    fn read32(&self, offset: usize) -> u32 {
        (self.read)(offset)
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        (self.write)(offset, value);
    }
}

impl<R: Fn(usize) -> u32, W: Fn(usize, u32)> Wait for Registers<R, W> {
    fn now_us(&self) -> u64 {
        self.now_us.replace(self.now_us.get() + 1_000)
    }
    fn wait_at_most(&self, _timeout_us: u32) -> Result<(), Error> {
        Ok(())
    }
}

/// Runs the program on such registers.
fn run(program: &StopProgram, registers: &(impl Mmio + Wait)) -> Result<(), u32> {
    // SAFETY: there is no device.
    unsafe { program.run(registers, 1_000) }
}

#[test]
fn a_channel_that_does_not_halt_is_reset() {
    let (board, region) = board();
    let spec = CoreSpec::camera(SourceConfig::default(), 512);
    let device = SimDevice::with_model(&board, board.port(), AxiDmaModel::new(spec));
    let (window, memory) = (device.window().unwrap(), region.alloc(256, Align::LINE).unwrap());
    let driver = window.channel(Side::S2mm, AxiDmaConfig::default(), Some(memory)).unwrap();
    let program = driver.stop_program();
    for (halts, expected_resets) in [(true, 0), (false, 1)] {
        let (halted, resets) = (Cell::new(false), Cell::new(0));
        let status = axi_dma::CHANNEL_BYTES + axi_dma::DMASR.offset();
        let channel = Registers::new(
            |offset| if offset == status && halted.get() { axi_dma::HALTED } else { 0 },
            |offset, value| {
                assert_eq!(offset, axi_dma::CHANNEL_BYTES + axi_dma::DMACR.offset());
                let reset = value & axi_dma::RESET != 0;
                resets.set(resets.get() + u32::from(reset));
                halted.set(halts || reset);
            },
        );
        assert_eq!((run(&program, &channel), resets.get()), (Ok(()), expected_resets));
    }
}

/// All ones, as a bus answers for a device that is gone; and one page of ones that is written and
/// read back in the place of every page, as a contigo device that was taken away has it.
#[test]
fn a_device_that_is_gone_meets_no_program() {
    let (board, region) = board();
    let memory = |len_bytes| region.alloc(len_bytes, Align::LINE).unwrap();
    let (gemm, zdma, pl330, camera) = (
        SimGemm8::new(&board, board.port()),
        SimDevice::<ZdmaModel>::new(&board, board.port()),
        SimDevice::<Pl330Model>::new(&board, board.port()),
        SimDevice::with_model(
            &board,
            board.port(),
            AxiDmaModel::new(CoreSpec::camera(SourceConfig::default(), 512)),
        ),
    );
    let camera = camera.window().unwrap();
    let programs = [
        Gemm8::open_simulated(gemm.window().unwrap()).unwrap().stop_program(),
        zdma.window().unwrap().simple().unwrap().stop_program(),
        pl330.window().unwrap().driver(memory(PROGRAM_BYTES)).unwrap().stop_program(),
        camera
            .channel(Side::S2mm, AxiDmaConfig::default(), Some(memory(256)))
            .unwrap()
            .stop_program(),
    ];
    for program in programs {
        let gone = Registers::new(|_| u32::MAX, |_, _| ());
        assert_eq!(run(&program, &gone), Err(u32::MAX), "{program:?}");
        let page = [const { Cell::new(u32::MAX) }; 0x400];
        let word = |offset: usize| &page[offset / 4 % 0x400];
        let taken = Registers::new(|at| word(at).get(), |at, value| word(at).set(value));
        assert!(run(&program, &taken).is_err(), "{program:?}");
    }
}

#[test]
fn stop_program_is_bounded_ends_at_unmet() {
    let write = StopStep::write(gemm8::MODE.offset(), 0x300, 0x100);
    let too_many = Error::TooMany { what: "steps of a stop program", most: 32 };
    assert_eq!(StopProgram::new(&[write; 33]), Err(too_many));
    let met = StopStep::poll_until(gemm8::ID.offset(), u32::MAX, 0, 0);
    let most = StopProgram::new(&[&[write; 31][..], &[met]].concat()).unwrap();
    assert_eq!(most.steps().len(), 32);
    let (other, ends) = (StopStep::Else, "after a write");
    for steps in [&[met, write][..], &[write, other, met], &[met, other, met, write]] {
        let refused = StopProgram::new(steps).unwrap_err();
        assert!(
            matches!(refused, Error::Unsupported { what, .. } if what.contains(ends)),
            "{refused:?}"
        );
    }
    for (mask, value) in [(0, 0), (0xF0, 1), (1, 3)] {
        let refused = StopProgram::new(&[StopStep::poll_until(0, mask, value, 0)]).unwrap_err();
        assert!(
            matches!(refused, Error::Argument { value: found, max, .. }
                if (found, max) == (value.into(), mask.into())),
            "{refused:?}"
        );
    }
    let (board, _region) = board();
    let device = SimGemm8::new(&board, board.port());
    let window = device.window().unwrap();
    // SAFETY: MODE starts nothing.
    unsafe { gemm8::MODE.write(&window, 0x20F) };
    let id = gemm8::ID.read(&window);
    let is = |value| StopStep::poll_until(gemm8::ID.offset(), u32::MAX, value, 20);
    let steps = [
        write,
        StopStep::poll_until(gemm8::ID.offset(), u32::MAX, id, 0),
        StopStep::poll_while(gemm8::ID.offset(), 1, !id & 1, 0),
        StopStep::poll_while(gemm8::ID.offset(), u32::MAX, id, 20),
        StopStep::write(gemm8::MODE.offset(), u32::MAX, 0),
        met,
    ];
    // SAFETY: as above.
    let ran = |steps: &[_]| unsafe { StopProgram::new(steps).unwrap().run(&window, 1) };
    assert_eq!(ran(&steps), Err(id), "what the register says");
    let mode = gemm8::MODE.read(&window);
    assert_eq!(mode, 0x10F, "the masked bits, and no step after the one that is not met");
    assert_eq!(ran(&[is(!id)]), Err(id));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_step_beyond_4_gib_is_at_no_register() {
    let far = 0x1_0000_0000;
    let met = StopStep::poll_until(0, 1, 0, 0);
    for step in [
        StopStep::write(far, 1, 0),
        StopStep::poll_until(far + 4, 1, 0, 0),
        StopStep::poll_while(usize::MAX, 1, 0, 0),
    ] {
        let (StopStep::Write { offset_bytes, .. }
        | StopStep::PollUntil { offset_bytes, .. }
        | StopStep::PollWhile { offset_bytes, .. }) = step
        else {
            panic!("{step:?}")
        };
        assert_eq!(offset_bytes, u32::MAX);
        // SAFETY: there is no device.
        let refused = unsafe { plain().1.arm(&StopProgram::new(&[step, met]).unwrap(), 0) };
        let no_register = Err(os("ioctl(CONTIGO_ARM)", libc::ENXIO));
        assert_eq!(refused, no_register, "and not the first register");
    }
}

/// As the header has it: an Else ends the program where nothing failed, and else it goes on there.
#[test]
fn an_else_is_where_a_program_goes_on() {
    let (kernel, dev_node) = plain();
    let (board, _region) = board();
    let device = SimGemm8::new(&board, board.port());
    let window = device.window().unwrap();
    let id = gemm8::ID.read(&window);
    let mark = |value| StopStep::write(gemm8::MODE.offset(), u32::MAX, value);
    let is = |value| StopStep::poll_until(gemm8::ID.offset(), u32::MAX, value, 20);
    let ask = |answer, value| StopProgram::new(&[is(answer), mark(value), is(id)]).unwrap();
    for (first, second, third, outcome, left) in [
        (id, id, id, Ok(()), 1),
        (!id, id, id, Ok(()), 2),
        (!id, !id, id, Ok(()), 3),
        (!id, !id, !id, Err(id), 0),
    ] {
        let two = ask(first, 1).or_else(&ask(second, 2)).unwrap();
        let program = two.or_else(&ask(third, 3)).unwrap();
        // SAFETY: MODE starts nothing.
        unsafe { gemm8::MODE.write(&window, 0) };
        // SAFETY: as above.
        let ran = unsafe { program.run(&window, 1) };
        assert_eq!((ran, gemm8::MODE.read(&window)), (outcome, left));
        // SAFETY: the fake has no device.
        unsafe { dev_node.arm(&program, 0).unwrap() };
        let steps = armed(&kernel);
        let kinds: Vec<_> = steps.iter().map(|step| step.kind).collect();
        assert_eq!(kinds, [2, 1, 2, 4, 2, 1, 2, 4, 2, 1, 2]);
        assert_eq!(steps[3], Step { kind: 4, ..Step::default() });
    }
    let (one, none, other) = (ask(id, 1), StopProgram::NONE, StopStep::Else);
    let half = StopProgram::new(&[is(id); 16]).unwrap();
    let too_many = Error::TooMany { what: "steps of a stop program", most: 32 };
    assert_eq!(half.or_else(&half), Err(too_many));
    for refused in [
        one.or_else(&none),
        none.or_else(&one),
        none.or_else(&none),
        StopProgram::new(&[other]),
        StopProgram::new(&[is(id), other]),
        StopProgram::new(&[other, is(id)]),
        StopProgram::new(&[is(id), other, other, is(id)]),
    ] {
        let name = "the place of an Else, between other steps,";
        assert!(
            matches!(refused, Err(Error::Argument { name: found, .. }) if found == name),
            "{refused:?}"
        );
    }
}
