"""Whose ends a queue or a stream gives: those of its own jobs, and of no others, whatever became of
the one before, or is beside it.

interop.py runs it as channels.py.
"""

import asyncio
import gc
import os
import signal
import sys
import warnings

import contigo
from camera import ERROR, SLOTS, At, Rig, number, run, taken
from common import in_threads, refused
from loops import WAYS, left


def buffers(jobs):
    return [job.buffers[0] for job in jobs]


def at_rest(rig):
    rig.engine.stop()
    rig.at_rest()


def ends(queue):
    """The buffers of all jobs that a loop over it gives."""
    return buffers(list(queue))


def in_an_event_loop(queue):
    async def loop():
        return [done.buffers[0] async for done in queue]

    return asyncio.run(loop())


def interrupted(over, leave, wait=False):
    """Leaves the loop by Ctrl-C, while its body runs."""
    # What a shell runs in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for count, _ in enumerate(over):
            if count == 2:
                signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return
    raise AssertionError("the loop came to its end")


def a_run_that_was_left(leave, wait, others_ended):
    """A rig and the eight jobs that were pushed, of which three came in a loop that was left then.
    All or none of the others had ended by then."""
    rig = Rig()
    jobs = rig.push()
    if others_ended:
        # To look for the last one brings the ends of all others, which are kept.
        jobs[7].wait()
    (interrupted if leave == "Ctrl-C" else left)(rig.queue, leave, wait)
    assert rig.engine.in_flight == 0 and {buf.owner for buf in buffers(jobs)} == {"cpu"}, (leave, wait)
    return rig, jobs


RUNS = [(*way, others_ended) for way in [*WAYS, ("Ctrl-C", False)] for others_ended in [True, False]]


def test_new_queue_gives_nothing_of_a_left_loop():
    for how in RUNS:
        rig, jobs = a_run_that_was_left(*how)
        old, queue, others_ended = rig.queue, contigo.Queue(rig.engine), how[2]
        back = old.take_back()
        # The last one was taken by its own `wait`.
        assert buffers(back) == buffers(jobs[3 : 7 if others_ended else 8]), ("nothing is lost", how)
        if others_ended:
            assert sorted(taken(job.wait()) for job in back) == [3, 4, 5, 6]
        del jobs, back
        gc.collect()  # what asyncio leaves
        pushed = [queue.push([rig.frames.take()]) for _ in range(8)]
        assert ends(queue) == buffers(pushed) and old.next(0) is None and old.take_back() == []
        del pushed
        at_rest(rig)


def test_nor_does_the_next_loop_over_the_same_queue():
    for how in RUNS:
        rig, jobs = a_run_that_was_left(*how)
        del jobs
        again = [rig.queue.push([rig.frames.take()]) for _ in range(4)]
        assert in_an_event_loop(rig.queue) == buffers(again)
        del again
        assert rig.queue.next(0) is None and rig.queue.take_back() != []
        at_rest(rig)


def test_a_dropped_queue_s_ends_come_in_no_other():
    for ended in [True, False]:
        rig = Rig()
        dropped = rig.push(2)
        if ended:
            dropped[1].wait()
        rig.queue = contigo.Queue(rig.engine)
        assert len(rig.queue) == 0
        last = rig.push(1)
        assert ends(rig.queue) == buffers(last) and rig.queue.take_back() == []
        # Its jobs went on, and who kept one has its end.
        assert [taken(job.wait()) for job in dropped] == [0, 1]
        del dropped, last
        at_rest(rig)


def test_a_dropped_queue_keeps_no_buffer_and_no_place():
    rig = Rig()
    rig.push(8)[7].wait()
    rig.queue = None
    assert rig.frames.free == SLOTS, "seven ends were kept for it"
    # One whose device takes one job at a time: the next push finds the place that it left.
    rig = Rig(depth=1)
    rig.push(1)
    rig.queue = contigo.Queue(rig.engine)
    while True:
        try:
            last = rig.push(1)
        except contigo.BusyError:
            continue
        break
    assert ends(rig.queue) == buffers(last)
    del last
    at_rest(rig)


def test_old_runs_fault_is_not_a_new_queues():
    for leaves in [True, False]:
        rig = Rig(error_at=3)
        jobs = rig.push()
        # All of them end by the fault, and the queue has not told of it yet.
        refused(contigo.ContigoError, jobs[7].wait, ERROR)
        if leaves:
            left(rig.queue, "break", False)
        old, queue = rig.queue, contigo.Queue(rig.engine)
        del jobs
        pushed = [queue.push([rig.frames.take()]) for _ in range(3)]
        assert ends(queue) == buffers(pushed)
        if not leaves:
            # Whose fault it was still hears of it, behind the ends before it.
            assert [taken(old.next(0)) for _ in range(3)] == [0, 1, 2]
            refused(contigo.ContigoError, old.next, ERROR)
        del pushed, old, queue
        rig.queue = None
        at_rest(rig)


def test_two_queues_of_an_engine_give_each_its_own():
    rig = Rig()
    both = [contigo.Queue(rig.engine) for _ in range(2)]

    def pushed():
        given = [[], []]
        for at in range(8):
            given[at % 2].append(both[at % 2].push([rig.frames.take()]))
        assert [len(queue) for queue in both] == [4, 4]
        return [buffers(jobs) for jobs in given]

    def one_after_the_other():
        return [ends(queue) for queue in both[::-1]][::-1]

    def in_turns():
        seen = [[], []]
        for dones in zip(*both):
            for at, done in enumerate(dones):
                seen[at].append(done.buffers[0])
        return seen

    def in_an_event_loop():
        async def one(queue):
            return [done.buffers[0] async for done in queue]

        async def together():
            return await asyncio.gather(*map(one, both))

        return asyncio.run(together())

    def each_in_a_thread():
        return in_threads(*[lambda queue=queue: ends(queue) for queue in both])

    for taken_so in [one_after_the_other, in_turns, in_an_event_loop, each_in_a_thread]:
        expected = pushed()
        assert taken_so() == expected, taken_so
        del expected
    assert rig.engine.counts["stopped"] == 0
    # A job that the engine pushed, one that it started alone, and one of the queue.
    own, alone, (queued,) = rig.engine.push([rig.frames.take()]), rig.engine.start([rig.frames.take()]), rig.push(1)
    assert ends(rig.queue) == buffers([queued]) and rig.engine.next().buffers == own.buffers and alone.done()
    assert rig.engine.next() is None
    del own, alone, queued
    at_rest(rig)


def test_other_queues_stop_raises_in_the_loop():
    """A loop that ended as if all had come would be wrong, and look right."""

    def by_a_loop(other):
        left(other, "break", False)

    def by_a_job_s_time(other):
        refused(TimeoutError, lambda: other.push([rig.frames.take()]).wait(0), "stopped")

    for stop in [contigo.Queue.stop, by_a_loop, by_a_job_s_time]:
        # Fewer packets than jobs: those that are left do not end by themselves.
        rig = Rig(packets=4)
        other = contigo.Queue(rig.engine)
        for _ in range(4):
            other.push([rig.frames.take()])
        mine = rig.push(3)
        stop(other)
        refused(contigo.ContigoError, lambda: list(rig.queue), "cancelled", "another", "take_back()")
        assert list(rig.queue) == [] and buffers(rig.queue.take_back()) == buffers(mine), "it is said once"
        # A stop that was asked for is no news.
        rig.push(1)
        rig.queue.stop()
        assert rig.queue.next(0) is None and len(rig.queue.take_back()) == 1
        del mine, other
        at_rest(rig)


def test_engine_stop_and_job_end_raise_in_loop():
    def by_a_job_s_time(rig, jobs):
        refused(TimeoutError, lambda: jobs[1].wait(0), "stopped")

    for stop in [lambda rig, jobs: rig.engine.stop(), lambda rig, jobs: jobs[1].cancel(), by_a_job_s_time]:
        rig = Rig(packets=0)
        jobs = rig.push(3)
        stop(rig, jobs)
        refused(contigo.ContigoError, lambda: list(rig.queue), "cancelled", "its stop()", "take_back()")
        assert list(rig.queue) == [] and buffers(rig.queue.take_back()) == buffers(jobs), "it is raised once"
        # Where the program has the jobs, its next ones begin anew.
        jobs = rig.push(2)
        stop(rig, jobs)
        assert buffers(rig.queue.take_back()) == buffers(jobs)
        (job,) = rig.push(1)
        assert rig.queue.next(0) is None
        # The loop says it of a job that was in flight meanwhile, too.
        rig.engine.stop()
        assert buffers(rig.queue.take_back()) == buffers([job])
        jobs = rig.push(2)
        rig.engine.stop()
        (job,) = rig.push(1)
        assert buffers(rig.queue.take_back()) == buffers(jobs)
        rig.engine.stop()
        refused(contigo.ContigoError, rig.queue.next, "cancelled", "its stop()")
        assert buffers(rig.queue.take_back()) == buffers([job])
        (job,) = rig.push(1)
        # The only one that it cancels has its own error.
        job.cancel()
        refused(contigo.ContigoError, job.wait, "cancelled")
        assert rig.queue.next(0) is None and rig.queue.take_back() == []
        # The engine's own taker asked for it.
        own = rig.engine.push([rig.frames.take()])
        rig.engine.stop()
        assert rig.engine.next(0) is None and buffers(rig.engine.take_back()) == buffers([own])
        del jobs, job, own
        at_rest(rig)


def test_a_fault_is_raised_once():
    """By the job's own `wait`, or by the loop. Where other jobs ended by it, the loop raises it."""
    rig = Rig(error_at=1)
    jobs = rig.push(2)
    refused(contigo.ContigoError, jobs[1].wait, ERROR)
    assert [taken(done) for done in rig.queue] == [0] and rig.queue.next(0) is None and rig.queue.take_back() == []
    del jobs
    at_rest(rig)
    rig = Rig(error_at=1)
    jobs = rig.push(4)
    refused(contigo.ContigoError, jobs[3].wait, ERROR)
    refused(contigo.ContigoError, jobs[2].wait, ERROR)
    assert taken(rig.queue.next(0)) == 0
    refused(contigo.ContigoError, rig.queue.next, ERROR)
    assert rig.queue.next(0) is None and buffers(rig.queue.take_back()) == buffers(jobs[1:2])
    # Each of them by its own wait: nothing is left to say.
    rig = Rig(error_at=1)
    jobs = rig.push(4)
    for job in jobs[:0:-1]:
        refused(contigo.ContigoError, job.wait, ERROR)
    assert [taken(done) for done in rig.queue] == [0]
    # Or the program has taken them back, and goes on.
    rig = Rig(error_at=1)
    jobs = rig.push(4)
    refused(contigo.ContigoError, jobs[1].wait, ERROR)
    assert buffers(rig.queue.take_back()) == buffers(jobs[2:])
    again = rig.push(2)
    assert ends(rig.queue) == buffers([jobs[0], *again])
    del jobs, job, again
    at_rest(rig)
    # One by which no job ended is raised also where `take_back` has looked in vain.
    rig = Rig(unknown_at=2)
    rig.push(3)
    assert [taken(rig.queue.next()) for _ in range(3)] == [0, 1, 2] and rig.queue.take_back() == []
    counts = rig.engine.counts
    assert (counts["completed"], counts["stopped"]) == (3, 1), counts
    (job,) = rig.push(1)
    refused(contigo.ContigoError, lambda: list(rig.queue), "camera")
    assert buffers(rig.queue.take_back()) == buffers([job])
    del job
    at_rest(rig)


def test_ends_that_are_not_taken_have_a_bound():
    """So many of one queue are kept, and then it takes no job before some are taken. Another one
    does."""
    for fills in ["ended", "left"]:
        rig = Rig()
        pushed = 0
        try:
            while pushed < 1100:
                # The same frames again: their ends are kept, and not their buffers' bytes.
                (job,) = rig.push(1)
                pushed += 1
                # Its end comes by the look of another's.
                if fills == "ended":
                    rig.engine.start([rig.frames.take()]).wait()
                else:
                    rig.queue.stop()
                job.buffers[0].freebuffer()
                del job
        except contigo.MemoryError as error:
            assert "1024 jobs" in str(error) and "next()" in str(error) and "take_back()" in str(error), error
        assert pushed == 1024, pushed
        other = contigo.Queue(rig.engine)
        assert ends(other) == [] and other.push([rig.frames.take()]) and len(list(other)) == 1
        if fills == "ended":
            assert rig.queue.next(0).buffers
        else:
            assert len(rig.queue.take_back()) == 1024
        rig.push(1)
        rig.queue.stop()
        rig.queue = None
        at_rest(rig)


def test_ctrl_c_loses_no_end():
    """Wherever it comes in a loop, in `next`, and while the loop is left."""

    def by_a_loop(queue, given):
        for done in queue:
            given.append(done.buffers[0])
            if len(given) == 2:
                break

    def by_an_event_loop(queue, given):
        async def loop():
            async for done in queue:
                given.append(done.buffers[0])
                if len(given) == 2:
                    break

        asyncio.run(loop())

    def by_next(queue, given):
        for _ in range(2):
            given.append(queue.next().buffers[0])

    where, rig = set(), Rig()
    for way in [by_a_loop, by_an_event_loop, by_next]:
        for step in range(1, 1000):
            rig.queue, at, given = contigo.Queue(rig.engine), At(step), []
            jobs = rig.push(5)
            # Two are ready, the third one has told its own end, and two are in flight.
            jobs[2].wait()
            expected = buffers(jobs[:2] + jobs[3:])
            hook, sys.unraisablehook = sys.unraisablehook, lambda what: None
            warnings.simplefilter("ignore", RuntimeWarning)  # of a coroutine that has not begun
            sys.settrace(at)
            try:
                way(rig.queue, given)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
                gc.collect()
                sys.unraisablehook = hook
            if at.raised is None:
                break
            where.add(at.raised)
            # A loop or a destructor that has not begun stops nothing.
            stopped = way is not by_next and at.raised not in ["__iter__", "__aiter__", "__init__", "__del__"]
            assert not stopped or rig.engine.in_flight == 0, (way.__name__, step, at.raised)
            rig.queue.stop()
            rest = [*buffers(iter(lambda: rig.queue.next(0), None)), *buffers(rig.queue.take_back())]
            assert given + rest == expected, (way.__name__, step, at.raised, len(given), len(rest))
        else:
            raise AssertionError("it has no end")
    assert where >= {"__next__", "__anext__", "_next", "_before", "_after", "_end", "_left", "next"}, where
    del jobs, given, rest, expected
    rig.queue = None
    at_rest(rig)


def test_stream_and_queue_give_each_its_own():
    rig = Rig()
    stream, jobs = contigo.Stream(rig.engine, rig.frames), rig.push(3)
    for count, frame in enumerate(stream):
        assert number(frame) >= 3
        if count == 3:
            break
    # Its stop takes nothing of the queue's.
    assert ends(rig.queue) == buffers(jobs) and [taken(job.wait()) for job in jobs] == [0, 1, 2]
    del jobs
    # A stream's rest is no queue's, nor another stream's.
    assert stream.start() == 8
    number(stream.next())
    rig.queue.stop()
    (last,) = rig.push(1)
    assert ends(rig.queue) == buffers([last])
    refused(contigo.ContigoError, lambda: [stream.next(0) for _ in range(9)], "cancelled", "another")
    assert not stream.is_running
    stream.stop()
    rig.push(8)
    refused(contigo.BusyError, stream.start)
    del last, stream
    rig.queue.stop()
    rig.queue = None
    at_rest(rig)


def test_a_child_of_fork_takes_no_ends_of_its_parent():
    rig = Rig()
    jobs = rig.push(4)
    jobs[3].wait()
    if (child := os.fork()) == 0:
        sys.unraisablehook = lambda what: os._exit(1)
        try:
            refused(contigo.ForkedError, lambda: rig.queue.next(0), "child")
            refused(contigo.ForkedError, rig.queue.take_back, "child")
            rig.queue = None
            gc.collect()
        except BaseException:
            os._exit(2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ends(rig.queue) == buffers(jobs[:3])
    del jobs
    at_rest(rig)


def test_failing_operands_end_no_other_job():
    rig = Rig()
    (job,) = rig.push(1)

    def operands():
        yield rig.frames.take()
        raise ZeroDivisionError

    refused(ZeroDivisionError, lambda: rig.queue.push(operands()))
    # A start that the device refuses stops it; the queue or take_back() returns the job before.
    assert len(rig.queue) == 1 and ends(rig.queue) == buffers([job])
    del job
    at_rest(rig)
    rig = Rig(refuses_at=2)
    old = rig.push(2)
    frame = rig.frames.take()
    refused(contigo.ContigoError, lambda: rig.queue.push([frame]))
    queue = contigo.Queue(rig.engine)
    new = queue.push([frame])
    assert ends(queue) == [frame] and queue.take_back() == []
    assert len(ends(rig.queue)) + len(rig.queue.take_back()) == len(old)
    del old, new, frame, queue
    at_rest(rig)


def test_a_refused_push_raises_in_the_other_queue():
    rig = Rig(packets=1, refuses_at=3)
    other, mine = contigo.Queue(rig.engine), rig.push(3)
    refused(contigo.ContigoError, lambda: other.push([rig.frames.take()]))
    refused(contigo.ContigoError, lambda: list(rig.queue))
    assert buffers(rig.queue.take_back())[-2:] == buffers(mine)[1:]
    del mine, other
    at_rest(rig)


def test_stream_gives_frames_a_queue_brought_out():
    rig = Rig()
    kept = [rig.frames.take() for _ in range(SLOTS - 4)]
    stream = contigo.Stream(rig.engine, rig.frames)
    assert stream.start() == 4
    rig.queue.push([kept[0]])
    assert rig.queue.next(1).buffers[0] is kept[0]
    # The device has none, and the pool neither.
    loop = iter(stream)
    assert [number(next(loop)) for _ in range(3)] == [0, 1, 2]
    del kept, loop
    stream.stop()
    del stream
    at_rest(rig)


if __name__ == "__main__":
    sys.exit(run(globals(), "ends"))
