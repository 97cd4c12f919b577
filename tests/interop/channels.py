"""A channel that fails with jobs in flight. Nothing is lost, and nothing runs afterwards.

interop.py runs it in a process of its own, with the build of `own/`: a camera, a ring
of descriptors in which things go wrong.
"""

import gc
import sys

import contigo
import numpy as np
from camera import ERROR, SLOTS, Rig, run, taken
from common import refused
from contigo import _contigo


def owners(jobs):
    return [job.buffers[0].owner for job in jobs]


def buffers_of(jobs):
    return [job.buffers for job in jobs]


def test_a_fault_in_a_ring_gives_all_jobs_back():
    rig = Rig(error_at=3)
    jobs = rig.push()
    assert [taken(rig.queue.next()) for _ in range(3)] == [0, 1, 2]
    refused(contigo.ContigoError, rig.queue.next, "axi_dma s2mm", ERROR)
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
    rig.drain()
    rig.at_rest()


def test_a_fault_is_each_job_s_own_too():
    """Of jobs that are waited for one by one."""
    rig = Rig(error_at=2)
    jobs = [rig.engine.start([rig.frames.take()]) for _ in range(4)]
    # The last one first: what ended before the fault ended well.
    refused(contigo.ContigoError, jobs[3].wait, ERROR)
    assert [taken(job.wait()) for job in jobs[:2]] == [0, 1]
    refused(contigo.ContigoError, jobs[2].wait, ERROR)
    assert [repr(job) for job in jobs] == ["contigo.Job(done)"] * 2 + ["contigo.Job(failed)"] * 2
    # The queue does not report it.
    assert rig.queue.next() is None and rig.queue.take_back() == []
    del jobs
    rig.at_rest()


def test_doorbell_that_fails_is_the_loop_s_error():
    """Whether the push of a burst's last job rings it, or the loop that looks for its ends."""
    silent = "no such doorbell"
    for rings, before in [(rings, before) for rings in ("push", "loop") for before in (0, 2)]:
        rig = Rig(silent_at=0)
        other = contigo.Queue(rig.engine)
        beside = other.push([rig.frames.take()])
        jobs = rig.push(before)
        jobs += [rig.queue.push([rig.frames.take()], more=True) for _ in range(3)]
        jobs += rig.push(1) if rings == "push" else []
        seen = []
        refused(contigo.ContigoError, lambda: seen.extend(rig.queue), silent)
        assert list(rig.queue) == [], "it raises once"
        assert len(seen) <= before and buffers_of(seen) == buffers_of(jobs[: len(seen)])
        lost = jobs[len(seen) :]
        assert buffers_of(rig.queue.take_back()) == buffers_of(lost)
        for job in lost:
            assert job.buffers[0].owner == "cpu"
            refused(contigo.ContigoError, job.wait, silent)
        # Its own queue has the end of the job beside them, or the fault.
        if beside.done() and "failed" in repr(beside):
            refused(contigo.ContigoError, lambda: list(other), silent)
        else:
            assert buffers_of(list(other)) == buffers_of([beside])
        del jobs, seen, lost, beside, other, job
        rig.at_rest()


def test_queue_reports_no_fault_of_other_jobs():
    """A queue whose jobs of an earlier stop were not taken back does not report a fault of other
    jobs."""
    rig = Rig(error_at=2)
    rig.push(2)
    rig.queue.stop()
    jobs = [rig.engine.start([rig.frames.take()]) for _ in range(4)]
    refused(contigo.ContigoError, jobs[3].wait, ERROR)
    assert rig.drain() == 2
    del jobs
    rig.at_rest()


def test_a_job_that_fails_alone_stops_nothing():
    rig = Rig(fails_at=1)
    rig.push(4)
    assert taken(rig.queue.next()) == 0
    error = refused(contigo.ContigoError, rig.queue.next, "asked for")
    assert error.job.buffers[0].owner == "cpu" and "failed" in repr(error.job)
    del error
    assert [taken(rig.queue.next()) for _ in range(2)] == [2, 3]
    counts = rig.engine.counts
    assert (counts["failed"], counts["stopped"], counts["completed"]) == (1, 0, 3), counts
    rig.queue.stop()
    rig.at_rest()


def test_a_lie_stops_the_device_and_loses_nothing():
    for lie in [{"twice_at": 2}, {"too_long_at": 2}]:
        rig = Rig(**lie)
        rig.push(6)
        assert [taken(rig.queue.next()) for _ in range(2)] == [0, 1]
        refused(contigo.ContigoError, rig.queue.next, "camera")
        assert not _contigo.camera_runs() and len(rig.queue) == 0, lie
        # The jobs that the device had ended by then ended well, or came back: each once.
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


def test_one_that_will_not_stop_keeps_its_buffers():
    # Four packets come, and then nothing that would end the other four.
    rig = Rig(stuck=1, packets=4)
    jobs = rig.push()
    assert taken(rig.queue.next()) == 0
    refused(contigo.ContigoError, rig.queue.stop, "did not stop", "reset it from outside")
    assert owners(jobs) == ["cpu"] * 4 + ["device"] * 4 and _contigo.camera_runs()
    refused(BufferError, lambda: np.asarray(jobs[4].buffers[0]), "in a job")
    refused(BufferError, jobs[4].buffers[0].sync_from_device, "in a job")
    assert rig.queue.take_back() == [] and rig.frames.free == SLOTS - 8
    spare = rig.frames.take()
    refused(contigo.ContigoError, lambda: rig.queue.push([spare]), "4")
    assert spare.owner == "cpu"
    # None of these ends the engine, and each reports that.
    for end in [rig.engine.close, rig.engine.stop, jobs[7].cancel, lambda: jobs[7].wait(0)]:
        refused(contigo.ContigoError, end, "did not stop")
    # The ends that come all the same are told.
    assert [taken(rig.queue.next()) for _ in range(3)] == [1, 2, 3] and rig.queue.next(0.001) is None
    rig.kept_to_itself()
    # Reset from outside, and stopped again: the others come back.
    rig.device.reset()
    assert owners(jobs[4:]) == ["device"] * 4, "no stop has succeeded yet"
    rig.queue.stop()
    back = rig.queue.take_back()
    assert [job.buffers for job in back] == [job.buffers for job in jobs[4:]] and owners(jobs) == ["cpu"] * 8
    for job in back:
        refused(contigo.ContigoError, job.wait, "cancelled")
    del jobs, job, spare, back
    rig.at_rest()
    rig.engine.close()
    refused(contigo.UnsupportedError, contigo.Device("sim:board").reset, "memory alone")


def test_refused_job_of_stuck_device_is_not_lost():
    """Its buffer belonged to no job once the device had stopped, and stayed "in a job" for ever."""
    rig = Rig(stuck=1, packets=1, refuses_at=2)
    jobs, frame = rig.push(2), rig.frames.take()
    refused(contigo.ContigoError, lambda: rig.queue.push([frame]), "did not stop")
    assert rig.engine.in_flight == 2 and [*owners(jobs), frame.owner] == ["cpu", "device", "device"], "one has ended meanwhile"
    rig.device.reset()
    rig.queue.stop()
    assert [*owners(jobs), frame.owner] == ["cpu"] * 3
    assert taken(rig.queue.next()) == 0
    back = rig.queue.take_back()
    assert [job.buffers for job in back] == [jobs[1].buffers, [frame]]
    del jobs, frame, back
    rig.at_rest()
    rig.engine.close()


def test_one_that_will_not_stop_says_its_fault():
    """A lie of one that will not stop: all others end well meanwhile, and the lie is told all the
    same."""
    rig = Rig(stuck=1, packets=3, unknown_at=2)
    rig.push(3)
    assert [taken(rig.queue.next()) for _ in range(2)] == [0, 1]
    refused(contigo.ContigoError, rig.queue.next, "did not stop")
    assert taken(rig.queue.next()) == 2 and rig.queue.next() is None
    refused(contigo.ContigoError, lambda: rig.push(1), "stop")
    rig.device.reset()
    rig.queue.stop()
    rig.at_rest()
    rig.push(1)
    assert rig.queue.next(0.001) is None
    rig.engine.close()


def test_dropped_stuck_engine_keeps_its_frames():
    rig = Rig(stuck=1, packets=4)
    rig.push()
    assert taken(rig.queue.next()) == 0
    del rig.queue, rig.engine
    gc.collect()
    assert rig.frames.free == SLOTS - 4 and _contigo.camera_runs(), "four are lost, and no other job gets them"
    rig.kept_to_itself()


if __name__ == "__main__":
    sys.exit(run(globals(), "channels"))
