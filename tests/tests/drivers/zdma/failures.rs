//! Jobs that are refused, jobs that fail on the bus, and that the next job works.

use super::hole::hole;
use super::*;
use contigo_gemm8::SimGemm8;

fn fault(bit: u32) -> Error {
    // The model is done with the job, and so is the channel (UG1087, DMA_DONE: with or without
    // error).
    Error::Fault { device: "zdma", status: bit | regs::INT_DONE, what: regs::describe(bit) }
}

#[test]
fn bus_errors_differ_and_next_job_works() {
    for mode in [Mode::Simple, Mode::Linked(4096), Mode::Linked(128)] {
        let (board, region, pool) = bench(1, 4, LEN);
        let (_, nowhere) = hole(&board);
        let mut queue = mode.queue(&SimDevice::<ZdmaModel>::new(&board, board.port()), &region);
        works(&mut queue, &pool);
        let take = || pool.take().unwrap();
        let reads = [nowhere.take().unwrap().to_device(5..), take().from_device(..)];
        let writes = [take().to_device(5..), nowhere.take().unwrap().from_device(..)];
        for (operands, bit) in [(reads, regs::INT_READ), (writes, regs::INT_WRITE)] {
            let failed = queue.run(operands, &[], LIMIT).unwrap_err();
            assert_eq!((failed.error, failed.buffers.is_some()), (fault(bit), true), "{mode:?}");
            works(&mut queue, &pool);
        }
        let counts = (queue.counts().completed, queue.counts().stopped, queue.is_empty());
        assert_eq!(counts, (3, 2, true));
    }
}

#[test]
fn descriptors_that_the_channel_cannot_read() {
    let (board, region, pool) = bench(1, 4, LEN);
    let (elsewhere, _) = hole(&board);
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue = Mode::Linked(256).queue(&channel, &elsewhere);
    let error = queue.run(copies(&pool, .., ..), &[], LIMIT).unwrap_err().error;
    let either = [regs::INT_SRC_DESCRIPTOR, regs::INT_DST_DESCRIPTOR].map(fault);
    assert!(either.contains(&error), "{error}");
    drop(queue);
    works(&mut Mode::Linked(256).queue(&channel, &region), &pool);
}

#[test]
fn copies_that_no_channel_can_do() {
    let (board, region, _) = bench(1, 1, 64);
    let slice = |len_bytes| DevSlice { addr: DevAddr(0x1000), offset_bytes: 0, len_bytes };
    for (mode, max) in [
        (Mode::Simple, (1 << 30) - 1),
        (Mode::Linked(128), 1 << 29),
        (Mode::Linked(4096), 7 << 29),
        (Mode::Linked(8 * 9 * 64), u32::MAX as usize),
    ] {
        let zdma = mode.open(&SimDevice::<ZdmaModel>::new(&board, board.port()), &region);
        let refusal = |from, to| zdma.check(&[slice(from), slice(to)], &[]);
        let argument = |value: usize| {
            let (value, max) = (value as u64, max as u64);
            Err(Error::Argument { name: "bytes to copy", value, min: 1, max, multiple_of: 1 })
        };
        assert_eq!((refusal(max, max), refusal(1, usize::MAX)), (Ok(()), Ok(())));
        // On a 32-bit processor no buffer is longer than the longest list.
        if let Some(more) = max.checked_add(1) {
            assert_eq!(refusal(more, more), argument(more), "{mode:?}");
        }
        assert_eq!(refusal(0, 0), argument(0));
        let short = Error::BufferSize { index: 1, need_bytes: 65, have_bytes: 64 };
        assert_eq!(refusal(65, 64), Err(short));
    }
}

#[test]
fn what_is_not_a_zdma() {
    let (board, region, _) = bench(1, 1, 64);
    let other = SimGemm8::new(&board, board.port());
    // SAFETY: it is refused by what is read: nothing is written to it.
    let simple = unsafe { Zdma::simple(other.window().unwrap()) }.map(drop);
    // SAFETY: as above.
    let linked = unsafe { Zdma::linked(other.window().unwrap(), ring(&region)) }.unwrap_err();
    let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, 0x90);
    let refused = Error::RegisterWindow { device: "zdma", need_bytes, have_bytes };
    assert_eq!((simple, linked.error), (Err(refused), refused));
    assert_eq!(linked.into_returned().len_bytes(), 4096);
}

#[test]
fn descriptors_that_do_not_suit_come_back() {
    let ((board, here, pool), (other, elsewhere, _)) = (bench(1, 1, 64), bench(1, 1, 64));
    let free_bytes = here.free_bytes();
    // An address of 45 bits.
    let (base, len_bytes) = (Some(BaseAddr::Phys(PhysAddr(1 << 44))), 4096);
    let high = SimSpec { base, len_bytes, ..SimSpec::default() };
    let far = Region::new(board.memory_with(high).unwrap()).unwrap();
    // A port that adds 16 to every address, and one that reaches all of them.
    let crooked = Port { offset: 16, ..board.port() };
    let wide = Port { addr_bits: 64, window: (0, u64::MAX), ..board.port() };
    let refusal = |port, region: &Region, len_bytes| {
        let buf = region.alloc(len_bytes, Align::LINE).unwrap();
        let refused =
            SimDevice::<ZdmaModel>::new(&board, port).window().unwrap().linked(buf).unwrap_err();
        let error = refused.error;
        assert_eq!(refused.into_returned().len_bytes(), len_bytes);
        error
    };
    const LAST: u64 = (1 << 44) - 1;
    cases! {
        refusal(board.port(), &here, 64)
            => Error::BlockSize { len_bytes: 64, need_bytes: 128, line_bytes: 64 },
        refusal(board.port(), &elsewhere, 128) => Error::WrongBus { port: "sim-hp0", memory }
            if memory == other.bus(),
        refusal(crooked, &here, 128) => Error::Misaligned { align_bytes: 32, addr }
            if addr % 32 == 16,
        refusal(wide, &far, 128) => Error::Unreachable {
            port: "sim-hp0", addr: 0x1000_0000_0000, len_bytes: 128, first: 0, last: LAST,
        },
    }
    let mut queue = Mode::Simple.queue(&SimDevice::<ZdmaModel>::new(&board, wide), &here);
    let from = far.alloc(64, Align::LINE).unwrap().to_device(..);
    cases! {
        queue.refuses([from, pool.take().unwrap().from_device(..)], &[])
            => Error::Unreachable { last: LAST, .. },
    }
    assert_eq!(here.free_bytes(), free_bytes, "all of it came back");
}
