//! Each driver's stop program, which runs when the program that drove the device is gone: how it is
//! armed, and that it stops the device.

use super::os;
use crate::driver_regs::{axi_dma, pl330, zdma};
use contigo::{
    Align, Device, Driver as _, Error, Mmio, Queue, Region, Wait,
    drivers::{
        axi_dma::{AxiDmaConfig, Side},
        pl330::{PROGRAM_BYTES, Pl330, Pl330Config},
        zdma::Zdma,
    },
    forward,
    job::{StopProgram, StopStep},
    linux::dev_node::{DevNode, seam::Step},
    sim::{
        SimBoard, SimDevice, SimSpec,
        axi_dma::{AxiDmaModel, CoreSpec},
        pl330::Pl330Model,
        stream::SourceConfig,
        zdma::ZdmaModel,
    },
};
use contigo_gemm8::{Gemm8, SimGemm8, regs as gemm8};
use contigo_testkit::{
    conformance::{boards::OnSim, xor::Xor},
    fake_dev_node::{DevNodeConfig, Event, FakeDevNode},
};
use nix::libc;
use std::{cell::Cell, time::Duration};

fn armed(kernel: &FakeDevNode, arm: impl FnOnce(&DevNode) -> Result<(), Error>) -> Vec<Step> {
    let dev_node = kernel.open_dev_node().unwrap();
    arm(&dev_node).unwrap();
    match kernel.log().pop() {
        Some(Event::Armed(steps)) => steps,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_driver_leaves_what_stops_it() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();

    let device = SimGemm8::new(&board, board.port());
    let queue = Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    // SAFETY: the fake has no device: nothing is written.
    let steps = armed(&kernel, |dev_node| unsafe { queue.arm(dev_node, 0) });
    let write = |offset: usize, value| Step {
        kind: 1,
        offset_bytes: offset as u32,
        mask: u32::MAX,
        value,
        ..Step::default()
    };
    let ctrl = Step {
        kind: 2,
        offset_bytes: gemm8::CTRL.offset() as u32,
        mask: 5,
        value: 4,
        timeout_us: 10_000,
        ..Step::default()
    };
    assert_eq!(
        steps,
        [write(gemm8::ABORT.offset(), 1), ctrl, write(gemm8::ABORT.offset(), 0), ctrl]
    );

    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    let queue = Queue::new(device.window().unwrap().simple().unwrap(), 1).unwrap();
    // SAFETY: as above.
    let steps = armed(&kernel, |dev_node| unsafe { queue.arm(dev_node, 0) });
    let enable = Step {
        kind: 2,
        offset_bytes: zdma::CTRL2.offset() as u32,
        mask: 1,
        value: 0,
        timeout_us: 900_000,
        ..Step::default()
    };
    let busy = Step {
        kind: 3,
        offset_bytes: zdma::STATUS.offset() as u32,
        mask: 3,
        value: 2,
        timeout_us: 10_000,
        ..Step::default()
    };
    assert_eq!(steps, [write(zdma::IDS.offset(), zdma::INT_ALL), enable, busy]);

    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let program = region.alloc(PROGRAM_BYTES, Align::LINE).unwrap();
    // SAFETY: the window is a simulated PL330's.
    let driver = unsafe {
        Pl330::open_with(device.window().unwrap(), program, Pl330Config { channel: 3, event: 2 })
    };
    let queue = Queue::new(driver.unwrap(), 1).unwrap();
    // SAFETY: as above.
    let steps = armed(&kernel, |dev_node| unsafe { queue.arm(dev_node, 0) });
    assert_eq!(steps[2], write(pl330::DBGINST0.offset(), 0x0001_0301), "DMAKILL of channel 3");
    let own = pl330::CHANNELS[3].csr.offset() as u32;
    assert_eq!(
        (steps[0].offset_bytes, steps[0].value, steps[6].offset_bytes, steps[6].value),
        (own, pl330::FAULTING_COMPLETING, own, 0)
    );
    let looked: Vec<_> = steps[7..]
        .iter()
        .map(|step| (step.kind, step.offset_bytes, step.mask, step.value, step.timeout_us))
        .collect();
    let all: Vec<_> =
        pl330::CHANNELS.iter().map(|channel| (2, channel.csr.offset() as u32, 0xF, 0, 0)).collect();
    assert_eq!(looked, all, "another channel that runs is memory that is kept");
    let dev_node = kernel.open_dev_node().unwrap();
    // SAFETY: as above.
    let refused = unsafe { queue.arm(&dev_node, 1) };
    assert_eq!(refused, Err(os("ioctl(CONTIGO_ARM)", libc::ENXIO)), "no such window");
}

/// A window that two have: who drives the device, and who stops it.
struct Shared<'w, D>(&'w D);

// SAFETY: the registers belong to the window; in this test one writes them after the other.
unsafe impl<D: Mmio> Mmio for Shared<'_, D> {
    forward!(|this| this.0 => len_bytes, read32, write32);
}

impl<D: Wait> Wait for Shared<'_, D> {
    forward!(|this| this.0 => now_us);
    fn wait_at_most(&self, _timeout_us: u32) -> Result<(), Error> {
        Ok(())
    }
}

// SAFETY: the window's.
unsafe impl<D: Device> Device for Shared<'_, D> {
    forward!(|this| this.0 => port, simulated);
}

/// The kernel's stop, done by the runtime on the model: the program stops a channel at work.
#[test]
fn a_program_stops_a_channel_that_never_ends() {
    let board = SimBoard::new(3);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let program = region.alloc(PROGRAM_BYTES, Align::LINE).unwrap();
    let window = device.window().unwrap();
    // SAFETY: the window is a simulated PL330's, and the program that stops it is run in its
    // driver's place.
    let mut driver = unsafe { Pl330::open(Shared(&window), program) }.unwrap();
    // DMALP forever: LOOP, NOP, DMALPEND without a counter.
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&[0x18, 0x28, 0x01]).unwrap() };
    device.run_for(5_000).unwrap();
    let steps = driver.stop_program();
    std::mem::forget(driver);
    let window = Shared(&window);
    let csr = |window: &_| pl330::CHANNELS[0].csr.read(window) & pl330::STATUS;
    assert_ne!(csr(&window), pl330::STOPPED, "it runs for ever");
    // SAFETY: DMAKILL starts nothing.
    assert_eq!(unsafe { steps.run(&window, 50) }, Ok(()));
    assert_eq!(csr(&window), pl330::STOPPED);
}

/// The channel of an AXI DMA that halts when it is asked to, or only by its reset.
struct Channel {
    halts: bool,
    halted: Cell<bool>,
    resets: Cell<u32>,
}

// SAFETY: there is no device.
unsafe impl Mmio for Channel {
    fn len_bytes(&self) -> usize {
        2 * axi_dma::CHANNEL_BYTES
    }
    fn read32(&self, offset: usize) -> u32 {
        if offset == axi_dma::CHANNEL_BYTES + axi_dma::DMASR.offset() && self.halted.get() {
            axi_dma::HALTED
        } else {
            0
        }
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        assert_eq!(offset, axi_dma::CHANNEL_BYTES + axi_dma::DMACR.offset());
        let reset = value & axi_dma::RESET != 0;
        self.resets.set(self.resets.get() + u32::from(reset));
        self.halted.set(self.halts || reset);
    }
}

impl Wait for Channel {
    fn now_us(&self) -> u64 {
        AllOnes.now_us()
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        AllOnes.wait_at_most(timeout_us)
    }
}

#[test]
fn a_channel_that_does_not_halt_is_reset() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiDmaModel::new(CoreSpec::camera(SourceConfig::default(), 512)),
    );
    let driver = device
        .window()
        .unwrap()
        .channel(Side::S2mm, AxiDmaConfig::default(), Some(region.alloc(256, Align::LINE).unwrap()))
        .unwrap();
    let program = driver.stop_program();
    for (halts, resets) in [(true, 0), (false, 1)] {
        let channel = Channel { halts, halted: Cell::new(false), resets: Cell::new(0) };
        // SAFETY: there is no device.
        assert_eq!((unsafe { program.run(&channel, 1) }, channel.resets.get()), (Ok(()), resets));
    }
    assert_eq!(
        // SAFETY: as above.
        unsafe { program.run(&AllOnes, 1_000) },
        Err(u32::MAX),
        "one that is gone does neither"
    );
}

/// Registers of a device that is gone.
struct AllOnes;

// SAFETY: there is no device.
unsafe impl Mmio for AllOnes {
    fn len_bytes(&self) -> usize {
        0x1000
    }
    fn read32(&self, _offset: usize) -> u32 {
        u32::MAX
    }
    unsafe fn write32(&self, _offset: usize, _value: u32) {}
}

impl Wait for AllOnes {
    fn now_us(&self) -> u64 {
        static NOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        NOW.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed)
    }
    fn wait_at_most(&self, _timeout_us: u32) -> Result<(), Error> {
        Ok(())
    }
}

/// Registers of a contigo device that was taken away: one page of ones that is written and read
/// back, in the place of every page.
struct OnePage([Cell<u32>; 0x400]);

// SAFETY: there is no device.
unsafe impl Mmio for OnePage {
    fn len_bytes(&self) -> usize {
        0x1_0000
    }
    fn read32(&self, offset: usize) -> u32 {
        self.0[offset / 4 % 0x400].get()
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        self.0[offset / 4 % 0x400].set(value);
    }
}

impl Wait for OnePage {
    fn now_us(&self) -> u64 {
        AllOnes.now_us()
    }
    fn wait_at_most(&self, _timeout_us: u32) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_device_that_is_gone_meets_no_program() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let program = region.alloc(PROGRAM_BYTES, Align::LINE).unwrap();
    let (gemm, zdma, pl330) = (
        SimGemm8::new(&board, board.port()),
        SimDevice::<ZdmaModel>::new(&board, board.port()),
        SimDevice::<Pl330Model>::new(&board, board.port()),
    );
    let programs = [
        Gemm8::open_simulated(gemm.window().unwrap()).unwrap().stop_program(),
        zdma.window().unwrap().simple().unwrap().stop_program(),
        pl330.window().unwrap().driver(program).unwrap().stop_program(),
    ];
    for program in programs {
        // SAFETY: there is no device.
        assert_eq!(unsafe { program.run(&AllOnes, 1_000) }, Err(u32::MAX), "{program:?}");
        let taken = OnePage([const { Cell::new(u32::MAX) }; 0x400]);
        // SAFETY: as above.
        assert!(unsafe { program.run(&taken, 1_000) }.is_err(), "{program:?}");
    }
}

/// The program waits for the copy's end, and takes none that has been begun for one that is over.
#[test]
fn zdmas_program_waits_for_the_copy() {
    let board = SimBoard::new(3);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    let window = device.window().unwrap();
    // SAFETY: the window is a simulated ZDMA's.
    let driver = unsafe { Zdma::simple(Shared(&window)) }.unwrap();
    let program = driver.stop_program();
    let mut queue = Queue::new(driver, 1).unwrap();
    let window = Shared(&window);
    // SAFETY: it starts nothing.
    let run = |window: &_| unsafe { program.run(window, 50) };
    assert_eq!(run(&window), Ok(()), "before any job");
    let buf = || region.alloc(4096, Align::LINE).unwrap();
    queue.submit([buf().to_device(..4096), buf().from_device(..4096)], &[]).unwrap();
    assert_ne!(zdma::CTRL2.read(&window) & zdma::ENABLE, 0, "it runs");
    assert_eq!(run(&window), Ok(()));
    assert_eq!(
        (zdma::CTRL2.read(&window) & zdma::ENABLE, zdma::STATUS.read(&window) & zdma::STATE),
        (0, 0),
        "it was waited for"
    );
    assert!(queue.wait::<2>(Duration::from_millis(10)).unwrap().is_some());
}

#[test]
fn stop_program_is_bounded_ends_at_unmet() {
    let write = StopStep::write(gemm8::MODE.offset(), 0x300, 0x100);
    assert_eq!(
        StopProgram::new(&[write; 33]),
        Err(Error::TooMany { what: "steps of a stop program", most: 32 })
    );
    let met = StopStep::poll_until(gemm8::ID.offset(), u32::MAX, 0, 0);
    let most = StopProgram::new(&[&[write; 31][..], &[met]].concat()).unwrap();
    assert_eq!(most.steps().len(), 32);
    for ends in
        [&[met, write][..], &[write, StopStep::Else, met], &[met, StopStep::Else, met, write]]
    {
        let refused = StopProgram::new(ends).unwrap_err();
        assert!(
            matches!(refused, Error::Unsupported { what, .. } if what.contains("after a write")),
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
    let board = SimBoard::new(1);
    let device = SimGemm8::new(&board, board.port());
    let window = device.window().unwrap();
    // SAFETY: MODE starts nothing.
    unsafe { gemm8::MODE.write(&window, 0x20F) };
    let id = gemm8::ID.read(&window);
    let steps = [
        write,
        StopStep::poll_until(gemm8::ID.offset(), u32::MAX, id, 0),
        StopStep::poll_while(gemm8::ID.offset(), 1, !id & 1, 0),
        StopStep::poll_while(gemm8::ID.offset(), u32::MAX, id, 20),
        StopStep::write(gemm8::MODE.offset(), u32::MAX, 0),
        met,
    ];
    assert_eq!(
        // SAFETY: as above.
        unsafe { StopProgram::new(&steps).unwrap().run(&window, 1) },
        Err(id),
        "what the register says"
    );
    assert_eq!(
        gemm8::MODE.read(&window),
        0x10F,
        "the masked bits, and no step after the one that is not met"
    );
    let never =
        StopProgram::new(&[StopStep::poll_until(gemm8::ID.offset(), u32::MAX, !id, 20)]).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { never.run(&window, 1) }, Err(id));
}

/// As the header has it: an Else ends the program where nothing failed, and else it goes on there.
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
        let dev_node = FakeDevNode::new(DevNodeConfig::default()).open_dev_node().unwrap();
        // SAFETY: there is no device.
        let refused = unsafe { dev_node.arm(&StopProgram::new(&[step, met]).unwrap(), 0) };
        assert_eq!(
            refused,
            Err(super::os("ioctl(CONTIGO_ARM)", nix::libc::ENXIO)),
            "and not the first register"
        );
    }
}

#[test]
fn an_else_is_where_a_program_goes_on() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let board = SimBoard::new(1);
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
        let program =
            ask(first, 1).or_else(&ask(second, 2)).unwrap().or_else(&ask(third, 3)).unwrap();
        // SAFETY: MODE starts nothing.
        unsafe { gemm8::MODE.write(&window, 0) };
        // SAFETY: as above.
        let ran = unsafe { program.run(&window, 1) };
        assert_eq!((ran, gemm8::MODE.read(&window)), (outcome, left));
        // SAFETY: the fake has no device.
        unsafe { dev_node.arm(&program, 0).unwrap() };
        let Some(Event::Armed(steps)) = kernel.log().pop() else { panic!() };
        let kinds: Vec<_> = steps.iter().map(|step| step.kind).collect();
        assert_eq!(
            (kinds, steps[3]),
            (vec![2, 1, 2, 4, 2, 1, 2, 4, 2, 1, 2], Step { kind: 4, ..Step::default() })
        );
    }
    let (one, none) = (ask(id, 1), StopProgram::NONE);
    let half = StopProgram::new(&[is(id); 16]).unwrap();
    assert_eq!(
        half.or_else(&half),
        Err(Error::TooMany { what: "steps of a stop program", most: 32 })
    );
    for refused in [
        one.or_else(&none),
        none.or_else(&one),
        none.or_else(&none),
        StopProgram::new(&[StopStep::Else]),
        StopProgram::new(&[is(id), StopStep::Else]),
        StopProgram::new(&[StopStep::Else, is(id)]),
        StopProgram::new(&[is(id), StopStep::Else, StopStep::Else, is(id)]),
    ] {
        assert!(
            matches!(
                refused,
                Err(Error::Argument { name: "the place of an Else, between other steps,", .. })
            ),
            "{refused:?}"
        );
    }
}

#[test]
fn a_driver_without_a_program_is_not_armed() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let harness = OnSim::new(1, SimBoard::port, SimSpec::default());
    let queue = Queue::new(Xor::<_, 2>::new(&harness), 1).unwrap();
    // SAFETY: the fake has no device.
    let refused = unsafe { queue.arm(&dev_node, 0) }.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Unsupported { what: "this driver has no stop program for the kernel", .. }
        ),
        "{refused:?}"
    );
    assert_eq!(kernel.log(), []);
}
