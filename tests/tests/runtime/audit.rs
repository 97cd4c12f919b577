//! Every step of a run is heard, at the line that asked for it, and counted.

use crate::gemm::{GEMM, LIMIT, four, operands, queue, region};
use contigo::dlpack::{DataType, Shape, TensorSpec, TensorTable};
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::mem::DriverBuf;
use contigo::sim::{Faults, SimBoard};
use contigo::trace::{self, Count, Event, Kind, Ledger, Listener};
use contigo::{Align, Backend, Error, Queue, Region};
use contigo_gemm8::{Gemm8, SimGemm8};
use contigo_testkit::barrier::Barrier;
use contigo_testkit::fake_devices::FakeDevices;
use contigo_testkit::fake_vfio::{ADDRESS, FakeVfio, Machine};
use std::cell::RefCell;
use std::panic::Location;
use std::sync::{Arc, Once};
use std::thread;

/// An event on this thread: a beginning or a fact, and its line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Heard {
    begins: bool,
    event: Event,
    line: Option<u32>,
}

thread_local! {
    /// `None` outside of `heard`: the other tests of this program are not listened to.
    static HEARD: RefCell<Option<Vec<Heard>>> = const { RefCell::new(None) };
}

/// The program's one listener: tests run on threads of their own, and each hears its own.
struct Everybody;

impl Everybody {
    fn hear(begins: bool, event: &Event, site: Option<&'static Location<'static>>) {
        // A thread that ends has no list any more.
        let _ = HEARD.try_with(|heard| {
            let Some(heard) = &mut *heard.borrow_mut() else { return };
            if let Some(site) = site {
                assert!(
                    !site.file().starts_with("runtime/"),
                    "{event:?} at {site}, a line of the runtime's own"
                );
            }
            heard.push(Heard { begins, event: *event, line: site.map(Location::line) });
        });
    }
}

impl Listener for Everybody {
    fn begins(&self, event: &Event, site: Option<&'static Location<'static>>) {
        Self::hear(true, event, site);
    }
    fn happened(&self, event: &Event, site: Option<&'static Location<'static>>) {
        Self::hear(false, event, site);
    }
}

/// The events of `work` on this thread.
fn heard<T>(work: impl FnOnce() -> T) -> (T, Vec<Heard>) {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        trace::set_listener(&Everybody).map_err(|_| "another listener is set").unwrap()
    });
    HEARD.set(Some(Vec::new()));
    let done = work();
    (done, HEARD.take().unwrap_or_default())
}

/// The facts among it, without what only began.
fn facts<T>(work: impl FnOnce() -> T) -> (T, Vec<(Event, Option<u32>)>) {
    let (done, heard) = heard(work);
    let facts = heard.iter().filter(|heard| !heard.begins);
    (done, facts.map(|heard| (heard.event, heard.line)).collect())
}

fn for_device((offset_bytes, len_bytes): (usize, usize)) -> Event {
    Event::SyncForDevice { offset_bytes, len_bytes }
}

fn for_cpu((offset_bytes, len_bytes): (usize, usize)) -> Event {
    Event::SyncForCpu { offset_bytes, len_bytes }
}

#[test]
fn each_job_step_has_its_asking_line() {
    let board = SimBoard::new(1);
    let memory = board.memory(4096).unwrap();
    let (region, first) = facts(|| Region::new(memory).unwrap());
    let line = Some(line!() - 1);
    let Event::Map { memory, len_bytes, base } = first[2].0 else { panic!("{first:?}") };
    assert_eq!((memory, len_bytes, base, first[2].1), ("sim", 4096, region.base(), line));
    let whole = (0, 4096);
    assert_eq!(first[..2], [(for_device(whole), line), (for_cpu(whole), line)]);

    let (pool, planned) = facts(|| region.pool(4, 250).unwrap());
    let line = Some(line!() - 1);
    assert_eq!(planned, [(Event::CarveBytes { offset_bytes: 0, len_bytes: 1024 }, line)]);
    let ([mut a, b, bias, c], taken) = facts(|| [(); 4].map(|()| pool.take().unwrap()));
    let line = Some(line!() - 1);
    assert_eq!(taken, [0, 1, 2, 3].map(|slot| (Event::Take { slot, len_bytes: 256 }, line)));
    let ((), copied) = facts(|| a.copy_from_slice(&[1; 16]).unwrap());
    assert_eq!(copied, [(Event::CopyBytes { len_bytes: 16 }, Some(line!() - 1))]);

    let core = SimGemm8::new(&board, board.port());
    let (mut queue, port) = (queue(&core), board.port().name);
    let job = operands([a, b, bias, c]);
    let (_, started) = facts(|| queue.submit(job, &GEMM.words()).unwrap());
    let line = Some(line!() - 1);
    let synced = [(0, 16), (256, 256), (512, 64), (768, 64)].map(|part| (for_device(part), line));
    assert_eq!(started[..4], synced);
    assert_eq!(started[4..], [(Event::Submit { port, job: 1 }, line)]);
    let ([a, b, bias, c], ended) = facts(|| queue.wait_device(LIMIT).unwrap().unwrap().buffers);
    assert_eq!(ended, [(Event::Complete { port, job: 1 }, Some(line!() - 1))]);
    let (c, seen) = facts(|| c.into_cpu().unwrap());
    assert_eq!(seen, [(for_cpu((768, 64)), Some(line!() - 1))]);

    // Chained on, and waited for by the CPU.
    let chained = [a.to_device(..), b.to_device(..), bias.to_device(..), c.from_device(..64)];
    let (_, started) = facts(|| queue.submit(chained, &GEMM.words()).unwrap());
    let line = Some(line!() - 1);
    assert_eq!(started, [(for_device((768, 64)), line), (Event::Submit { port, job: 2 }, line)]);
    let ([a, b, bias, c], ended) = facts(|| queue.wait(LIMIT).unwrap().unwrap().buffers);
    let line = Some(line!() - 1);
    assert_eq!(ended, [(Event::Complete { port, job: 2 }, line), (for_cpu((768, 64)), line)]);

    // The same in one call. The device had all of `b`, and the CPU has not written it since.
    let job = operands([a, b, bias, c]);
    let (done, ran) = facts(|| queue.run(job, &GEMM.words(), LIMIT).unwrap());
    let line = Some(line!() - 1);
    let synced = [(0, 16), (512, 64), (768, 64)].map(|part| (for_device(part), line));
    assert_eq!(ran[..3], synced);
    let ends = [Event::Submit { port, job: 3 }, Event::Complete { port, job: 3 }];
    assert_eq!(ran[3..], [ends[0], ends[1], for_cpu((768, 64))].map(|event| (event, line)));
    let [a, b, bias, c] = done.buffers;
    let ((), released) = facts(|| [a, b, bias, c].into_iter().for_each(drop));
    assert_eq!(released, [0, 1, 2, 3].map(|slot| (Event::Release { slot }, None)));
    drop(pool);
    let ((), given_back) = facts(|| drop(region));
    assert_eq!(given_back, [(Event::Unmap { len_bytes: 4096 }, None)]);
}

/// Each was told with the count of all jobs that were in the queue by then.
#[test]
fn jobs_are_told_by_their_own_numbers() {
    let board = SimBoard::new(1);
    let region = region(&board, 16 << 10);
    let pool = region.pool(12, 256).unwrap();
    let core = SimGemm8::new(&board, board.coherent_port());
    let mut queue = Queue::new(Gemm8::open_simulated(core.window().unwrap()).unwrap(), 3).unwrap();
    let port = board.coherent_port().name;
    let ((), told) = heard(|| {
        for _ in 0..3 {
            queue.submit(operands(four(&pool)), &GEMM.words()).unwrap();
        }
        for _ in 0..3 {
            assert!(queue.wait::<4>(LIMIT).unwrap().is_some());
        }
    });
    let is_of_a_job = |event: &Event| matches!(event.kind(), Kind::Submit | Kind::Complete);
    let jobs: Vec<_> = told.iter().map(|heard| heard.event).filter(is_of_a_job).collect();
    let expected =
        [1, 2, 3].map(|job| [Event::Submit { port, job }, Event::Complete { port, job }]);
    assert_eq!(jobs, expected.as_flattened(), "the core takes one job at a time");
}

#[test]
fn what_takes_time_begins_first() {
    let board = SimBoard::new(1);
    let region = region(&board, 4096);
    let mut buf = region.alloc(64, Align::LINE).unwrap();
    let (_, heard) = heard(|| {
        buf.copy_from_slice(&[1; 5]).unwrap();
        buf.copy_from_slice(&[1; 65]).unwrap_err(); // refused before it begins
        let driver = DriverBuf::new(buf, &board.port(), 32).unwrap();
        drop(driver);
    });
    let (copy, sync) = (Event::CopyBytes { len_bytes: 5 }, for_device((0, 64)));
    let told: Vec<_> = heard.iter().map(|heard| (heard.begins, heard.event)).collect();
    assert_eq!(told, [(true, copy), (false, copy), (true, sync), (false, sync)]);
    assert!(heard.iter().all(|heard| heard.line.is_some()), "{heard:?}");
}

#[test]
fn pools_and_regions_say_what_they_give() {
    let board = SimBoard::new(1);
    let region = region(&board, 8192);
    let pool = region.pool(2, 64).unwrap();
    let ((), found) = facts(|| {
        drop(pool.take().unwrap());
        drop(region.alloc(100, Align::MIN).unwrap());
        drop(region.alloc(64, Align::PAGE).unwrap());
    });
    let line = line!() - 4;
    let slot = |event: &Event| match event {
        Event::Take { slot, .. } | Event::Release { slot } => *slot,
        other => panic!("{other:?}"),
    };
    let row = |(event, at): &(Event, _)| (event.kind(), slot(event), event.len_bytes(), *at);
    let found: Vec<_> = found.iter().map(row).collect();
    let (block, page) = (found[2].1, found[4].1);
    let taken = |slot, len_bytes, line| (Kind::Take, slot, len_bytes, Some(line));
    let released = |slot| (Kind::Release, slot, 0, None);
    assert_eq!(found[..2], [taken(0, 64, line), released(0)]);
    assert_eq!(found[2..4], [taken(block, 128, line + 1), released(block)]);
    assert_eq!(found[4..], [taken(page, 64, line + 2), released(page)]);
}

#[test]
fn stopped_job_and_lost_memory_are_heard() {
    let faults = Faults { stuck: 1000, ..Faults::NONE };
    let board = SimBoard::with(1, faults);
    let region = region(&board, 4096);
    let pool = region.pool(4, 256).unwrap();
    let core = SimGemm8::new(&board, board.port());
    let (mut queue, job) = (queue(&core), operands(four(&pool)));
    let (failed, heard) = facts(|| queue.run(job, &GEMM.words(), LIMIT).unwrap_err());
    let (port, line) = (board.port().name, Some(line!() - 1));
    assert!(matches!(failed.error, Error::WillNotStop { .. }), "{failed}");
    let ends = [Event::Submit { port, job: 1 }, Event::Stop { port, job: 1 }];
    assert_eq!(heard[4..], ends.map(|event| (event, line)));
    drop(failed);
    // They stay in the queue until the device stops, or until the queue that could stop it is gone.
    let ((), heard) = facts(|| drop(queue));
    assert_eq!(heard, [(Event::Leak { len_bytes: 16 + 256 + 64 + 64 }, None)]);
    let ((), heard) = facts(|| drop((pool, region)));
    assert_eq!(heard, [], "the leaked buffers keep it mapped");
}

#[test]
fn tensor_is_heard_when_going_and_back() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = region(&board, 4096);
    let buf = region.alloc(1024, Align::DLPACK).unwrap();
    let spec = TensorSpec::new(DataType::U8, Shape::new(&[1024]).unwrap());
    let mut lent = TENSORS.lend(buf, &spec).unwrap();
    let (tensor, heard) = facts(|| lent.tensor().unwrap());
    assert_eq!(heard, [(Event::Lend, Some(line!() - 1))]);
    // SAFETY: out, and this is its consumer.
    let ((), heard) = facts(|| unsafe { tensor.as_ref().deleter.unwrap()(tensor.as_ptr()) });
    assert_eq!(heard, [(Event::Return, None)]);
    // SAFETY: an entry is always there; a second call is a consumer's mistake, and changes nothing.
    let ((), heard) = facts(|| unsafe { tensor.as_ref().deleter.unwrap()(tensor.as_ptr()) });
    assert_eq!((heard, TENSORS.misuses()), (vec![], 1));
    let tensor = lent.legacy_tensor().unwrap();
    let ((), heard) = facts(|| drop(lent));
    assert_eq!(heard, [], "the tensor keeps the buffer");
    // SAFETY: out, and this is its consumer.
    let ((), heard) = facts(|| unsafe { tensor.as_ref().deleter.unwrap()(tensor.as_ptr()) });
    assert_eq!(heard.first(), Some(&(Event::Return, None)), "{heard:?}");
}

#[test]
fn registers_are_mapped_at_a_line_too() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    tree.map(0, 1, "0xf8004000", "0x1000", "0x0");
    let mut device = tree.find("dma").unwrap();
    let (registers, heard) = facts(|| device.map(1).unwrap());
    assert_eq!(heard, [(Event::MapRegisters { len_bytes: 0x1000 }, Some(line!() - 1))]);
    drop(registers);
}

#[test]
fn what_an_iommu_lets_a_device_reach_is_heard() {
    let vfio = Vfio::open_from(Arc::new(FakeVfio::new(Machine::default())), ADDRESS).unwrap();
    let (memory, mapped) = facts(|| vfio.memory(100).unwrap());
    let line = Some(line!() - 1);
    let Event::MapForDevice { iova, len_bytes } = mapped[0].0 else { panic!("{mapped:?}") };
    assert_eq!((mapped.len(), mapped[0].1), (1, line));
    let ((), cut_off) = facts(|| vfio.revoke(memory.mapping().base).unwrap());
    assert_eq!(cut_off, [(Event::UnmapForDevice { iova, len_bytes }, Some(line!() - 1))]);
    let ((), dropped) = facts(|| drop(memory));
    assert_eq!(dropped, [], "cut off already");
    let second = vfio.memory(100).unwrap();
    let ((), dropped) = facts(|| drop(second));
    assert!(matches!(dropped[..], [(Event::UnmapForDevice { .. }, None)]), "{dropped:?}");
    let (device, mapped) = facts(|| VfioDevice::open(&vfio, 0, Interrupt::Any).unwrap());
    let line = Some(line!() - 1);
    assert!(
        matches!(mapped[..], [(Event::MapRegisters { len_bytes: 1.. }, at)] if at == line),
        "{mapped:?}"
    );
    drop(device);
}

#[test]
fn the_program_can_tell_of_its_own_copies() {
    let ((), heard) = facts(|| trace::note(Event::CopyBytes { len_bytes: 7 }));
    assert_eq!(heard, [(Event::CopyBytes { len_bytes: 7 }, Some(line!() - 1))]);
}

#[test]
fn there_is_one_listener() {
    static SECOND: Ledger<1> = Ledger::new();
    heard(|| ());
    assert!(trace::set_listener(&SECOND).is_err());
    trace::note(Event::Lend);
    assert_eq!(SECOND.total(Kind::Lend), Count::default());
}

#[test]
fn a_ledger_counts_by_line_and_kind() {
    let ledger = Ledger::<4>::new();
    let at = Location::caller();
    let elsewhere = Location::caller();
    let copy = |len_bytes| Event::CopyBytes { len_bytes };
    for (event, site) in [
        (copy(10), Some(at)),
        (copy(5), Some(at)),
        (copy(1), Some(elsewhere)),
        (Event::Lend, Some(at)),
        (Event::Return, None),
    ] {
        ledger.happened(&event, site);
    }
    let mut rows: Vec<_> = ledger
        .rows()
        .map(|row| (row.site.map(Location::line), row.kind, row.count.calls, row.count.bytes))
        .collect();
    rows.sort_by_key(|row| (row.0, row.1 as usize));
    let line = at.line();
    assert_eq!(
        rows,
        [
            (None, Kind::Return, 1, 0),
            (Some(line), Kind::CopyBytes, 2, 15),
            (Some(line), Kind::Lend, 1, 0),
            (Some(line + 1), Kind::CopyBytes, 1, 1)
        ]
    );
    assert_eq!(ledger.total(Kind::CopyBytes), Count { calls: 3, bytes: 16 });
    assert!(format!("{ledger:?}").contains("audit.rs"));
}

/// Eight lines, for a table that has room for five.
#[rustfmt::skip]
fn lines() -> [&'static Location<'static>; 8] {
    [
        Location::caller(), Location::caller(), Location::caller(), Location::caller(),
        Location::caller(), Location::caller(), Location::caller(), Location::caller(),
    ]
}

#[test]
fn lines_without_a_row_are_counted() {
    const THREADS: u64 = 4;
    const EACH: u64 = if cfg!(miri) { 20 } else { 20_000 };
    static LEDGER: Ledger<5> = Ledger::new();
    let together = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                together.wait();
                for _ in 0..EACH {
                    lines().into_iter().for_each(|site| {
                        LEDGER.happened(&Event::CopyBytes { len_bytes: 3 }, Some(site))
                    });
                }
            });
        }
    });
    let rows: Vec<_> = LEDGER.rows().collect();
    let with_site: Vec<_> = rows.iter().filter(|row| row.site.is_some()).collect();
    assert_eq!(with_site.len(), 5, "every row belongs to one line: {rows:?}");
    assert!(with_site.iter().all(|row| row.count.calls == THREADS * EACH), "{rows:?}");
    assert_eq!(
        LEDGER.total(Kind::CopyBytes),
        Count { calls: 8 * THREADS * EACH, bytes: 3 * 8 * THREADS * EACH }
    );
}
