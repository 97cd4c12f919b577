//! Several jobs in flight, ended in any order, and drivers that are written in C: the device here
//! is a structure of the test's.

use crate::common::*;
use contigo_c::*;
use core::ffi::c_void;
use core::ptr;

/// A device that ends a job when the test puts its end into `ends`, and touches no memory.
#[derive(Default)]
struct Core {
    engine: contigo_engine,
    /// The ends that `poll` tells of, in this order.
    ends: Vec<contigo_completion>,
    submitted: Vec<(u32, usize, Vec<u32>)>,
    /// The answers of its functions.
    check: contigo_status,
    submit: contigo_status,
    poll: contigo_status,
    stop: contigo_status,
    /// The answers to calls of its own engine.
    own: Vec<contigo_status>,
}

unsafe fn core_of<'c>(context: *mut c_void) -> &'c mut Core {
    unsafe { &mut *context.cast::<Core>() }
}

unsafe extern "C" fn check(
    context: *mut c_void,
    _: *const contigo_dev_slice,
    n: usize,
    _: *const u32,
    _: usize,
) -> contigo_status {
    let core = unsafe { core_of(context) };
    assert_eq!(n, 1);
    core.check
}

unsafe extern "C" fn submit(
    context: *mut c_void,
    slot: u32,
    slices: *const contigo_dev_slice,
    _: usize,
    args: *const u32,
    words: usize,
) -> contigo_status {
    let core = unsafe { core_of(context) };
    let args = if words == 0 {
        vec![]
    } else {
        unsafe { core::slice::from_raw_parts(args, words) }.to_vec()
    };
    core.submitted.push((slot, unsafe { (*slices).len_bytes }, args));
    core.own.push(contigo_queue_stop(core.engine));
    core.submit
}

unsafe extern "C" fn poll(
    context: *mut c_void,
    _: u32,
    done: *mut contigo_completion,
    ended: *mut u32,
) -> contigo_status {
    let core = unsafe { core_of(context) };
    // The library looks once while it opens the engine, which has no handle then.
    if core.engine != 0 {
        core.own.push(next(core.engine, 0).0);
    }
    if !core.ends.is_empty() {
        unsafe { (*done, *ended) = (core.ends.remove(0), 1) };
        return CONTIGO_OK;
    }
    core.poll
}

unsafe extern "C" fn stop(context: *mut c_void) -> contigo_status {
    unsafe { core_of(context) }.stop
}

const WRITTEN: contigo_operand_spec = contigo_operand_spec {
    r#use: CONTIGO_WRITES,
    word_bytes: 0,
    align_bytes: 0,
    min_bytes: 0,
    max_bytes: 0,
};

/// An engine of four jobs over `core`.
fn open(board: &Board, core: &mut Core, out_of_order: u32) -> contigo_engine {
    let ops = contigo_driver_ops {
        depth: 4,
        out_of_order,
        check: Some(check),
        submit: Some(submit),
        poll: Some(poll),
        stop: Some(stop),
        ..own_driver(&WRITTEN)
    };
    core.engine = open_driver(&ops, ptr::from_mut(core), board.port);
    core.engine
}

fn start(engine: contigo_engine, buf: contigo_buf, args: &[u32]) -> (contigo_status, contigo_job) {
    try_job(engine, &[part(buf, 64)], args)
}

fn end(slot: u32) -> contigo_completion {
    contigo_completion { slot, ..Default::default() }
}

#[test]
fn ends_of_other_jobs_are_kept_for_their_waits() {
    let (board, mut core) = (Board::new(), Core::default());
    let engine = open(&board, &mut core, 1);
    let bufs = [(); 4].map(|()| board.take());
    let jobs = bufs.map(|buf| {
        let (status, job) = start(engine, buf, &[7, 8]);
        ok(status);
        job
    });
    assert_eq!(core.submitted, [0, 1, 2, 3].map(|slot| (slot, 64, vec![7, 8])));
    let spare = board.take();
    let (status, none) = start(engine, spare, &[]);
    refused(status, CONTIGO_E_QUEUE_FULL, "jobs in flight: 4");
    assert_eq!((none, bytes(spare).len()), (0, SLOT), "as it was");

    // 3, 1 and 0 end while 0 is waited for; 2 goes on.
    core.ends = vec![
        contigo_completion { bytes: 33, has_bytes: 1, status: 5, words: [1, 2, 3, 4], ..end(3) },
        contigo_completion { failed: 1, status: 9, ..end(1) },
        end(0),
    ];
    ok(wait(jobs[0], 1_000));
    assert_eq!((info_of(engine).ended, info_of(engine).in_flight), (2, 1));
    refused(contigo_buf_take_back(bufs[3]), CONTIGO_E_DEVICE_OWNED, "wait for its job");
    assert_eq!(wait_for(jobs[2], 0), (CONTIGO_OK, 0));
    let mut said = empty::<contigo_completion>();
    ok(unsafe { contigo_job_wait(jobs[3], 0, &mut said) });
    assert_eq!(
        (said.bytes, said.has_bytes, said.slot, said.status, said.words, said.failed),
        (33, 1, 3, 5, [1, 2, 3, 4], 0)
    );
    // It failed alone: `contigo_queue_next` reports its end, with the device's status.
    let (mut job, mut said) = (0, empty::<contigo_completion>());
    refused(
        unsafe { contigo_queue_next(engine, 0, &mut job, &mut said) },
        CONTIGO_E_FAULT,
        "0x00000009",
    );
    assert_eq!((job, said.failed, said.status), (jobs[1], 1, 9));
    assert_eq!(next(engine, 0), (CONTIGO_OK, 0), "nothing came, and nothing was stopped");
    core.ends = vec![end(2)];
    assert_eq!(next(engine, 0), (CONTIGO_OK, jobs[2]));
    for job in jobs {
        refused(wait(job, 0), CONTIGO_E_STALE, "job");
    }
    let info = info_of(engine);
    assert_eq!((info.operands, info.depth, info.in_order), (1, 4, 0));
    assert_eq!(
        (info.started, info.completed, info.failed, info.cancelled, info.stops),
        (4, 3, 1, 0, 0)
    );
    // Not one of its functions got into its own engine.
    assert!(
        !core.own.is_empty() && core.own.iter().all(|status| *status == CONTIGO_E_IN_CALL),
        "{:?}",
        core.own
    );
    bufs.into_iter().chain([spare]).for_each(|buf| ok(contigo_buf_release(buf)));
    ok(contigo_engine_close(engine));
    board.close();
}

/// Whatever ended the jobs before, their ends are told by their handles, and no later job gets one.
#[test]
fn a_job_gets_no_end_of_one_before() {
    for way in ["stopped", "poll fails", "a start fails", "late", "cancelled", "another engine"] {
        let (board, mut core) = (Board::new(), Core::default());
        let mut engine = open(&board, &mut core, 0);
        let bufs = [(); 3].map(|()| board.take());
        let mut old = [bufs[0], bufs[1]].map(|buf| start(engine, buf, &[]).1).to_vec();
        match way {
            "poll fails" => {
                core.poll = -5;
                refused(wait(old.remove(0), 1_000), CONTIGO_E_DRIVER, "");
                core.poll = CONTIGO_OK;
            }
            "a start fails" => {
                // The driver has the ends of both, and of one that it says twice.
                (core.submit, core.ends) = (-5, vec![end(0), end(1), end(1)]);
                assert_eq!(start(engine, bufs[2], &[]).1, 0);
                core.submit = CONTIGO_OK;
            }
            "late" => refused(wait(old.remove(0), 0), CONTIGO_E_TIMEOUT, ""),
            "cancelled" => cancel(engine, old.remove(0)),
            _ => {
                core.ends = vec![end(0), end(1), end(1)];
                ok(contigo_queue_stop(engine));
            }
        }
        let told: Vec<_> = (0..3).map(|_| next(engine, 0).1).take_while(|job| *job != 0).collect();
        assert_eq!(told, old, "{way}: each once, by its handle");
        if way == "another engine" {
            (core.engine, core.ends) = (0, vec![]);
            ok(contigo_engine_close(engine));
            core.ends = vec![end(0), end(1)];
            engine = open(&board, &mut core, 0);
        }
        let (status, job) = start(engine, bufs[2], &[]);
        ok(status);
        assert_eq!(next(engine, 0), (CONTIGO_OK, 0), "{way}: the end was of a job before");
        core.ends = vec![end(core.submitted.last().unwrap().0)];
        assert_eq!(next(engine, 0), (CONTIGO_OK, job), "{way}");
        core.engine = 0;
        ok(contigo_engine_close(engine));
        release(bufs);
        board.close();
    }
}

#[test]
fn a_structure_that_cannot_be_filled_ends_no_job() {
    let (board, mut core) = (Board::new(), Core::default());
    let engine = open(&board, &mut core, 0);
    let buf = board.take();
    let (_, job) = start(engine, buf, &[]);
    core.ends = vec![end(0)];
    let mut short = contigo_completion { struct_size: 8, ..empty() };
    refused(unsafe { contigo_job_wait(job, 0, &mut short) }, CONTIGO_E_STRUCT, "struct_size is 8");
    refused(
        unsafe { contigo_queue_next(engine, 0, &mut 0, &mut short) },
        CONTIGO_E_STRUCT,
        "struct_size is 8",
    );
    ok(wait(job, 0));
    ok(contigo_buf_release(buf));
    ok(contigo_engine_close(engine));
    board.close();
}

#[test]
fn a_stop_ends_every_job_and_loses_no_buffer() {
    let (board, mut core) = (Board::new(), Core::default());
    let engine = open(&board, &mut core, 0);
    let bufs = [(); 3].map(|()| board.take());
    let start_all = || bufs.map(|buf| start(engine, buf, &[]).1);
    let owned = || bufs.iter().all(|buf| bytes(*buf).len() == SLOT);

    // By the program: a job that had ended is reported with `CONTIGO_OK`.
    let jobs = start_all();
    core.ends = vec![end(0)];
    ok(contigo_queue_stop(engine));
    assert_eq!(next(engine, 0), (CONTIGO_OK, jobs[0]));
    assert_eq!(next(engine, 0), (CONTIGO_E_CANCELLED, jobs[1]));
    assert_eq!(wait_for(jobs[2], 0), (CONTIGO_E_CANCELLED, 1));
    assert!(owned());

    // By a wait whose time is over.
    let jobs = start_all();
    refused(wait(jobs[1], 100), CONTIGO_E_TIMEOUT, "within 100 us");
    assert_eq!([wait(jobs[0], 0), wait(jobs[2], 0)], [CONTIGO_E_CANCELLED; 2]);
    assert!(owned());

    // By a fault of the channel, which is every job's.
    let jobs = start_all();
    core.poll = 77;
    for job in jobs {
        refused(wait(job, 100), CONTIGO_E_DRIVER, "its poll says that the channel cannot go on");
    }
    assert!(owned());

    // By a device that lies: a slot that has no job, and more bytes than it was given.
    let more = contigo_completion { bytes: 65, has_bytes: 1, ..end(0) };
    for (lie, code) in [(end(3), CONTIGO_E_NO_SUCH_JOB), (more, CONTIGO_E_BAD_COMPLETION)] {
        core.poll = 0;
        let jobs = start_all();
        core.ends = vec![lie];
        for job in jobs {
            assert_eq!(wait(job, 100), code, "{}", last_error());
        }
        assert!(owned());
    }

    // By a job that it did not take: only that one is refused.
    let jobs = start_all();
    core.submit = 3;
    let spare = board.take();
    let (status, none) = start(engine, spare, &[]);
    refused(status, CONTIGO_E_DRIVER, "its submit refused the job");
    assert_eq!(none, 0);
    ok(contigo_buf_take_back(spare));
    core.submit = 0;
    for job in jobs {
        assert_eq!(wait(job, 100), CONTIGO_E_CANCELLED, "{}", last_error());
    }
    assert!(owned());
    // By what it says of its operands, and by its check: nothing is touched.
    let strict = contigo_operand_spec { align_bytes: 128, min_bytes: 8, max_bytes: 256, ..WRITTEN };
    let ops = contigo_driver_ops { operands: &strict, ..own_driver(&strict) };
    let aligned = open_driver(&ops, ptr::null_mut::<u8>(), board.port);
    let try_part = |offset_bytes, len_bytes| {
        try_job(aligned, &[contigo_operand { buf: spare, offset_bytes, len_bytes }], &[]).0
    };
    refused(try_part(64, 128), CONTIGO_E_BUFFER_ALIGN, "operand 0");
    refused(try_part(0, 4), CONTIGO_E_BUFFER_SIZE, "operand 0");
    refused(try_part(0, 257), CONTIGO_E_OPERAND_TOO_LONG, "256");
    assert_eq!(
        answer(|spec| unsafe { contigo_engine_get_operand(aligned, 0, spec) }).max_bytes,
        256
    );
    ok(contigo_engine_close(aligned));

    core.check = -5;
    refused(start(engine, spare, &[]).0, CONTIGO_E_DRIVER_CHECK, "its check answered -5");
    assert_eq!(bytes(spare).len(), SLOT);
    bufs.into_iter().chain([spare]).for_each(|buf| ok(contigo_buf_release(buf)));
    ok(contigo_engine_close(engine));
    board.close();
}

#[test]
fn stuck_engine_keeps_buffers_until_stop() {
    let (board, mut core) = (Board::new(), Core::default());
    let engine = open(&board, &mut core, 0);
    let bufs = [(); 2].map(|()| board.take());
    let (_, first) = start(engine, bufs[0], &[]);
    // Neither does it take the second, nor does it stop: the job is under way for all that is
    // known.
    (core.submit, core.stop) = (1, 2);
    let (status, second) = start(engine, bufs[1], &[]);
    refused(status, CONTIGO_E_WILL_NOT_STOP, "before that");
    assert_ne!(second, 0);
    for buf in bufs {
        refused(contigo_buf_release(buf), CONTIGO_E_DEVICE_OWNED, "device's");
    }
    refused(contigo_queue_stop(engine), CONTIGO_E_WILL_NOT_STOP, "0x00000002");
    refused(contigo_engine_close(engine), CONTIGO_E_HAS_JOB, "2 jobs");
    refused(contigo_pool_close(board.pool), CONTIGO_E_STILL_USED, "2 still use this pool");
    (core.submit, core.stop) = (0, 0);
    ok(contigo_queue_stop(engine));
    assert_eq!([wait(second, 0), wait(first, 0)], [CONTIGO_E_CANCELLED; 2]);
    // With no job it is not closed either.
    core.stop = 4;
    refused(contigo_engine_close(engine), CONTIGO_E_WILL_NOT_STOP, "0x00000004");
    core.stop = 0;
    release(bufs);
    ok(contigo_engine_close(engine));
    // One that does not stop at the beginning gets no engine.
    core.stop = 6;
    let ops = contigo_driver_ops { stop: Some(stop), ..own_driver(&WRITTEN) };
    refused(try_driver(&ops, &raw mut core, board.port).0, CONTIGO_E_WILL_NOT_STOP, "0x00000006");
    board.close();
}

/// Ends that no call takes count too, and come in their order.
#[test]
fn engine_bounds_jobs_with_untaken_ends() {
    let (board, mut core) = (Board::new(), Core::default());
    let engine = open(&board, &mut core, 0);
    let bufs: Vec<_> = (0..65).map(|_| carve(board.region, 64, 0)).collect();
    let (mut free, mut kept) = (bufs.clone(), vec![]);
    // Four at a time, of which three are not taken: 63 after 21 times.
    for _ in 0..21 {
        let four = [(); 4].map(|()| {
            let buf = free.pop().unwrap();
            let (status, job) = start(engine, buf, &[]);
            ok(status);
            (buf, job)
        });
        core.ends = core.submitted[core.submitted.len() - 4..]
            .iter()
            .map(|(slot, ..)| end(*slot))
            .collect();
        ok(wait(four[3].1, 10));
        free.push(four[3].0);
        kept.extend(four[..3].iter().map(|(_, job)| *job));
    }
    kept.push(start(engine, free.pop().unwrap(), &[]).1);
    let spare = free.pop().unwrap();
    refused(start(engine, spare, &[]).0, CONTIGO_E_QUEUE_FULL, "jobs in flight: 64");
    assert_eq!((info_of(engine).ended, info_of(engine).in_flight), (63, 1));
    ok(contigo_queue_stop(engine));
    let last = kept.pop().unwrap();
    for job in kept {
        assert_eq!(next(engine, 0), (CONTIGO_OK, job));
    }
    assert_eq!((next(engine, 0), next(engine, 0)), ((CONTIGO_E_CANCELLED, last), (CONTIGO_OK, 0)));
    release(bufs);
    ok(contigo_engine_close(engine));
    board.close();
}
