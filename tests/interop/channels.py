"""A channel that fails with jobs in flight: its ring, its buffers, and the loops over it. Nothing is lost, and nothing runs afterwards.

interop.py runs it in a process of its own, with the build of `own/`: the testkit's camera, a ring of descriptors in which things go wrong.
"""

import asyncio
import faulthandler
import gc
import sys
import traceback
from contextlib import contextmanager

import contigo
import numpy as np
from common import refused
from contigo import _contigo

PACKET, SLOTS = 4096, 12
ERROR = "memory answered a write with an error"


class Rig:
    """A camera, its frames, and its engine with eight buffers in flight."""

    def __init__(self, **settings):
        self.device = contigo.Device("sim:camera")
        region = self.device.memory("sim", 1 << 20)
        self.frames = region.pool(PACKET, "uint8", SLOTS)
        self.engine = self.device.driver("camera", memory=region, **settings)
        self.queue = contigo.Queue(self.engine)

    def push(self, count=8):
        return [self.queue.push([self.frames.take()]) for _ in range(count)]

    def at_rest(self, free=SLOTS):
        """Nothing is in flight, nothing runs, no buffer is lost, and the device touched nobody else's."""
        gc.collect()
        assert self.engine.in_flight == 0 and not _contigo.camera_runs()
        assert self.frames.free == free, f"{self.frames.free} of {SLOTS} frames are free, and not {free}"
        self.kept_to_itself()

    def kept_to_itself(self):
        seen = self.device.simulated
        wrong = [seen[what] for what in ("stray_accesses", "unowned_accesses", "evictions", "lost_writes")]
        assert wrong == [0] * 4, seen


def packet(number, nbytes=PACKET):
    """The bytes of a packet: contigo_testkit::camera::packet."""
    index = np.arange(nbytes // 4, dtype=np.uint32)
    words = (np.uint32(number) ^ (index << 16 | index >> 16)) * np.uint32(0x9E3779B1)
    words[:2] = number, nbytes
    return words.view(np.uint8)


def number(frame, nbytes=None):
    """Which packet it is, every byte of it."""
    seen = np.asarray(frame)[:nbytes].ravel()
    found = int(seen[:4].view(np.uint32)[0])
    assert (seen == packet(found, seen.size)).all(), f"packet {found}"
    return found


def taken(done):
    return number(done.buffers[0], done.nbytes)


def owners(jobs):
    return [job.buffers[0].owner for job in jobs]


def a_fault_in_a_ring_gives_all_jobs_back():
    rig = Rig(error_at=3)
    jobs = rig.push()
    assert [taken(rig.queue.next()) for _ in range(3)] == [0, 1, 2]
    refused(contigo.ContigoError, rig.queue.next, "camera", ERROR)
    assert rig.queue.next() is None and len(rig.queue) == 0 and not _contigo.camera_runs()
    back = rig.queue.take_back()
    assert [job.buffers for job in back] == [job.buffers for job in jobs[3:]] and rig.queue.take_back() == []
    for job in jobs[3:]:
        assert job.done() and job.buffers[0].owner == "cpu"
        refused(contigo.ContigoError, job.wait, ERROR)
    counts = rig.engine.counts
    assert [counts[what] for what in ("pushed", "completed", "cancelled", "stopped")] == [8, 3, 5, 1], counts
    # It begins anew, with what comes then.
    del jobs, job, back
    rig.push(2)
    assert taken(rig.queue.next()) > 3
    rig.queue.stop()
    rig.queue.take_back()
    rig.at_rest()


def a_fault_is_each_job_s_own_too():
    """Of jobs that are waited for one by one."""
    rig = Rig(error_at=2)
    jobs = [rig.engine.start([rig.frames.take()]) for _ in range(4)]
    # The last one first: what ended before the fault ended well.
    refused(contigo.ContigoError, jobs[3].wait, ERROR)
    assert [taken(job.wait()) for job in jobs[:2]] == [0, 1]
    refused(contigo.ContigoError, jobs[2].wait, ERROR)
    assert [repr(job) for job in jobs] == ["contigo.Job(done)"] * 2 + ["contigo.Job(failed)"] * 2
    # Nobody who takes queued jobs is told of it.
    assert rig.queue.next() is None and rig.queue.take_back() == []
    del jobs
    rig.at_rest()


def a_fault_that_a_queue_left_behind_is_not_the_next_one_s():
    """Jobs of an earlier stop, which nobody took back, are no reason to tell of a fault of other jobs."""
    rig = Rig(error_at=2)
    rig.push(2)
    rig.queue.stop()
    jobs = [rig.engine.start([rig.frames.take()]) for _ in range(4)]
    refused(contigo.ContigoError, jobs[3].wait, ERROR)
    assert rig.queue.next() is None and len(rig.queue.take_back()) == 2
    del jobs
    rig.at_rest()


def a_fault_ends_a_loop():
    rig, seen = Rig(error_at=5), []

    def loop():
        for done in rig.queue:
            seen.append(taken(done))
            rig.push(1)

    rig.push()
    refused(contigo.ContigoError, loop, ERROR)
    assert seen == [0, 1, 2, 3, 4]
    assert len(rig.queue.take_back()) == 8
    rig.at_rest()

    async def waits():
        async for done in rig.queue:
            seen.append(taken(done))

    rig, seen = Rig(error_at=5), []
    rig.push()
    refused(contigo.ContigoError, lambda: asyncio.run(waits()), ERROR)
    assert seen == [0, 1, 2, 3, 4] and len(rig.queue.take_back()) == 3
    rig.at_rest()


def a_job_that_fails_alone_stops_nothing():
    rig = Rig(fails_at=1)
    rig.push(4)
    assert taken(rig.queue.next()) == 0
    try:
        rig.queue.next()
    except contigo.ContigoError as error:
        assert "asked for" in str(error) and error.job.buffers[0].owner == "cpu" and "failed" in repr(error.job)
    else:
        raise AssertionError("it did not fail")
    assert [taken(rig.queue.next()) for _ in range(2)] == [2, 3]
    counts = rig.engine.counts
    assert (counts["failed"], counts["stopped"], counts["completed"]) == (1, 0, 3), counts
    rig.queue.stop()
    rig.at_rest()


def a_lie_stops_the_device_and_loses_nothing():
    for lie in [{"twice_at": 2}, {"too_long_at": 2}]:
        rig = Rig(**lie)
        rig.push(6)
        assert [taken(rig.queue.next()) for _ in range(2)] == [0, 1]
        refused(contigo.ContigoError, rig.queue.next, "camera")
        assert not _contigo.camera_runs() and len(rig.queue) == 0, lie
        # What the device had ended by then ended well, or came back: each once.
        ended = []
        while (done := rig.queue.next(0)) is not None:
            ended.append(done)
        back = rig.queue.take_back()
        assert len(ended) + len(back) == 4, (lie, ended, back)
        assert {buf.owner for job in [*ended, *back] for buf in job.buffers} == {"cpu"}
        del ended, back, done
        rig.at_rest()
        rig.push(1)
        assert taken(rig.queue.next()) >= 2
        rig.queue.stop()
        rig.at_rest()


def a_lie_is_told_where_every_job_ended_well():
    """Behind the lie comes the last job's own end, so that none is cancelled."""
    rig = Rig(nobodys_at=2)
    rig.push(3)
    ended = [taken(rig.queue.next()) for _ in range(3)]
    refused(contigo.ContigoError, rig.queue.next, "camera")
    assert ended == [0, 1, 2] and rig.queue.next() is None and rig.queue.take_back() == []
    counts = rig.engine.counts
    assert (counts["completed"], counts["stopped"]) == (3, 1), counts
    rig.at_rest()


def one_that_will_not_stop_keeps_its_buffers():
    # Four packets come, and then nothing that would end the other four.
    rig = Rig(stuck=1, packets=4)
    jobs = rig.push()
    assert taken(rig.queue.next()) == 0
    refused(contigo.ContigoError, rig.queue.stop, "camera did not stop", "reset it from outside")
    assert owners(jobs) == ["cpu"] * 4 + ["device"] * 4 and _contigo.camera_runs()
    refused(BufferError, lambda: np.asarray(jobs[4].buffers[0]), "in a job")
    refused(BufferError, jobs[4].buffers[0].sync_from_device, "in a job")
    assert rig.queue.take_back() == [] and rig.frames.free == SLOTS - 8
    spare = rig.frames.take()
    refused(contigo.ContigoError, lambda: rig.queue.push([spare]), "4")
    assert spare.owner == "cpu"
    # No end of it is an end of the engine, and each says so.
    for end in [rig.engine.close, rig.engine.stop, jobs[7].cancel, lambda: jobs[7].wait(0)]:
        refused(contigo.ContigoError, end, "did not stop")
    # What ended all the same comes.
    assert [taken(rig.queue.next()) for _ in range(3)] == [1, 2, 3] and rig.queue.next(0.001) is None
    rig.kept_to_itself()
    # Reset from outside, and stopped again: the others come back.
    rig.device.reset()
    assert owners(jobs[4:]) == ["device"] * 4, "nobody has said so yet"
    rig.queue.stop()
    back = rig.queue.take_back()
    assert [job.buffers for job in back] == [job.buffers for job in jobs[4:]] and owners(jobs) == ["cpu"] * 8
    for job in back:
        refused(contigo.ContigoError, job.wait, "cancelled")
    del jobs, job, spare, back
    rig.at_rest()
    rig.engine.close()
    refused(FileNotFoundError, contigo.Device("sim:board").reset)


def one_that_will_not_stop_says_its_fault():
    """A lie of one that will not stop: all others end well meanwhile, and the lie is told all the same."""
    rig = Rig(stuck=1, packets=3, nobodys_at=2)
    rig.push(3)
    assert [taken(rig.queue.next()) for _ in range(2)] == [0, 1]
    refused(contigo.ContigoError, rig.queue.next, "camera did not stop")
    assert taken(rig.queue.next()) == 2 and rig.queue.next() is None
    refused(contigo.ContigoError, lambda: rig.push(1), "stop")
    rig.device.reset()
    rig.queue.stop()
    rig.at_rest()
    rig.push(1)
    assert rig.queue.next(0.001) is None
    rig.engine.close()


def one_that_will_not_stop_and_that_nobody_keeps_gets_no_other_s_bytes():
    rig = Rig(stuck=1, packets=4)
    rig.push()
    assert taken(rig.queue.next()) == 0
    del rig.queue, rig.engine
    gc.collect()
    assert rig.frames.free == SLOTS - 4 and _contigo.camera_runs(), "four are lost, and given to nobody else"
    rig.kept_to_itself()


@contextmanager
def unraisable():
    """What Python cannot raise, because an object is gone: the texts."""
    said, old = [], sys.unraisablehook
    sys.unraisablehook = lambda what: said.append(str(what.exc_value))
    try:
        yield said
    finally:
        sys.unraisablehook = old


def in_a_loop(over, leave, wait=False):
    """Leaves the loop with its third item in hand."""

    def at_third(count):
        if count == 2 and leave == "raise":
            raise ZeroDivisionError
        return count == 2

    if not wait:
        for count, item in enumerate(over):
            if at_third(count):
                break
        return

    async def loop():
        count = 0
        async for item in over:
            if count == 2 and leave == "cancel":
                asyncio.current_task().cancel()
                await asyncio.sleep(0)
            if at_third(count):
                return
            count += 1

    asyncio.run(loop())


WAYS = [("raise", False), ("break", False), ("raise", True), ("break", True), ("cancel", True)]
ENDS = {"raise": ZeroDivisionError, "cancel": asyncio.CancelledError}


def left(over, leave, wait):
    try:
        in_a_loop(over, leave, wait)
    except BaseException as error:
        assert type(error) is ENDS.get(leave), error
    else:
        assert leave not in ENDS


def a_loop_that_is_left_stops_the_ring():
    for leave, wait in WAYS:
        rig = Rig()
        rig.push()
        left(rig.queue, leave, wait)
        assert rig.engine.in_flight == 0 and not _contigo.camera_runs(), (leave, wait)
        # Each of them ended, or is taken back.
        while rig.queue.next(0) is not None:
            pass
        rig.queue.take_back()
        rig.at_rest()
        rig = Rig()
        left(contigo.Stream(rig.engine, rig.frames), leave, wait)
        rig.at_rest()


def a_loop_over_one_that_will_not_stop_says_so():
    for leave, wait in WAYS:
        for over in [lambda rig: rig.push() and rig.queue, lambda rig: contigo.Stream(rig.engine, rig.frames)]:
            rig = Rig(stuck=1, packets=4)
            it = over(rig)
            with unraisable() as said:
                left(it, leave, wait)
                gc.collect()
            assert len(said) == 1 and "camera did not stop" in said[0], (leave, wait, said)
            inside = rig.engine.in_flight
            assert inside >= 4 and _contigo.camera_runs() and rig.frames.free <= SLOTS - inside
            rig.kept_to_itself()
            rig.device.reset()
            it.stop()
            while rig.queue.next(0) is not None:
                pass
            rig.queue.take_back()
            rig.at_rest()


def a_loop_outlives_its_engine():
    """Whoever closes the engine with a loop at work ends the loop, and nothing hangs."""
    for over in [lambda rig: rig.push() and rig.queue, lambda rig: contigo.Stream(rig.engine, rig.frames)]:
        rig = Rig()

        def loop():
            for item in over(rig):
                rig.engine.close()

        refused(contigo.ContigoError, loop, "closed")
        gc.collect()
        assert rig.frames.free == SLOTS and not _contigo.camera_runs()
        rig.kept_to_itself()


TESTS = [
    a_fault_in_a_ring_gives_all_jobs_back,
    a_fault_is_each_job_s_own_too,
    a_fault_that_a_queue_left_behind_is_not_the_next_one_s,
    a_fault_ends_a_loop,
    a_job_that_fails_alone_stops_nothing,
    a_lie_stops_the_device_and_loses_nothing,
    a_lie_is_told_where_every_job_ended_well,
    one_that_will_not_stop_keeps_its_buffers,
    one_that_will_not_stop_says_its_fault,
    one_that_will_not_stop_and_that_nobody_keeps_gets_no_other_s_bytes,
    a_loop_that_is_left_stops_the_ring,
    a_loop_over_one_that_will_not_stop_says_so,
    a_loop_outlives_its_engine,
]


def main():
    # What hangs is shown where it does.
    faulthandler.dump_traceback_later(60, exit=True)
    failed = 0
    for test in TESTS:
        try:
            test()
        except Exception as error:  # every test is run, whatever became of the one before
            failed += 1
            traceback.print_exception(error)
    print(f"{len(TESTS)} channels" if not failed else f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
