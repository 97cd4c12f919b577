"""Loops over jobs and frames in flight, `for` and `async for`, however they are left: the device is
stopped, and nothing is lost.

interop.py runs it as channels.py.
"""

import asyncio
import gc
import sys
import time
from contextlib import contextmanager

import contigo
from camera import ERROR, SLOTS, Rig, run, taken
from common import in_threads, refused
from contigo import _contigo

#: Longer than any test, also in a simulated device's own time: seconds.
A_LONG_TIME = 3600.0


def test_a_fault_ends_a_loop():
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


@contextmanager
def unraisable():
    """The texts of errors that Python cannot raise, because an object is gone."""
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


def test_a_loop_that_is_left_stops_the_ring():
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


def test_a_loop_over_one_that_will_not_stop_raises():
    for leave, wait in WAYS:
        for over in [lambda rig: rig.push() and rig.queue, lambda rig: contigo.Stream(rig.engine, rig.frames)]:
            rig = Rig(stuck=1, packets=4)
            it = over(rig)
            with unraisable() as said:
                left(it, leave, wait)
                gc.collect()
            assert len(said) == 1 and "did not stop" in said[0], (leave, wait, said)
            inside = rig.engine.in_flight
            assert inside >= 4 and _contigo.camera_runs() and rig.frames.free <= SLOTS - inside
            rig.kept_to_itself()
            rig.device.reset()
            it.stop()
            while rig.queue.next(0) is not None:
                pass
            rig.queue.take_back()
            rig.at_rest()


def test_a_loop_outlives_its_engine():
    """An engine that is closed with a loop at work ends the loop, and nothing hangs."""
    for over in [lambda rig: rig.push() and rig.queue, lambda rig: contigo.Stream(rig.engine, rig.frames)]:
        rig = Rig()

        def loop():
            for item in over(rig):
                rig.engine.close()

        refused(contigo.ContigoError, loop, "closed")
        gc.collect()
        assert rig.frames.free == SLOTS and not _contigo.camera_runs()
        rig.kept_to_itself()


def counted(over):
    return sum(1 for _ in over)


def counted_by_an_event_loop(over):
    async def loop():
        return sum([1 async for _ in over])

    return asyncio.run(loop())


def test_stolen_interrupt_costs_no_timeout():
    """By another thread's wait, another thread's event loop, or that of another channel: here it is
    never readable."""
    rig = Rig(taken=1)
    queues = [contigo.Queue(rig.engine, timeout=A_LONG_TIME) for _ in range(2)]
    for queue in queues:
        queue.push([rig.frames.take()])
    assert in_threads(*[lambda queue=queue: counted_by_an_event_loop(queue) for queue in queues]) == [1, 1]
    assert rig.engine.counts["stopped"] == 0
    rig.engine.stop()
    rig.at_rest()


def test_a_stop_ends_a_loop_that_waits():
    """In another thread or task, and at once. By the queue's own stop it ends, and by another's it
    raises."""
    told = (contigo.ContigoError, "cancelled: another")
    stops = [
        (lambda rig: rig.queue.stop(), None),
        (lambda rig: rig.queue.__exit__(None, None, None), None),
        (lambda rig: rig.engine.stop(), told),
        (lambda rig: rig.engine.jobs[0].cancel(), told),
        (lambda rig: contigo.Queue(rig.engine).stop(), told),
        (lambda rig: rig.engine.close(), (contigo.ContigoError, "closed")),
    ]

    def ended(end, error, what):
        if error is None:
            assert end == 0, (what, end)
        else:
            assert isinstance(end, error[0]) and error[1] in str(end), (what, end)

    for number, (stop, error) in enumerate(stops):
        for kind in ["stream", "queue"]:
            for settings in [{}, {"taken": 1}]:
                for loop in [counted, counted_by_an_event_loop]:
                    rig = Rig(packets=0, **settings)
                    if kind == "queue":
                        rig.push(2)
                        rig.queue.timeout = A_LONG_TIME
                    else:
                        rig.queue = contigo.Stream(rig.engine, rig.frames, timeout=A_LONG_TIME)

                    def stops_soon():
                        # Behind the loop's first look.
                        while rig.engine.in_flight == 0:
                            time.sleep(0.001)
                        time.sleep(0.05)
                        stop(rig)

                    end, _ = in_threads(lambda: loop(rig.queue), stops_soon)
                    ended(end, error, (number, kind, settings, loop.__name__))
                    # An error's traceback has the loop, and that the queue.
                    rig.queue = end = None
                    rig.at_rest()

    # By a task of the same event loop.
    async def together(rig, stop):
        async def stops_soon():
            await asyncio.sleep(0.05)
            stop(rig)

        async def loop():
            return sum([1 async for _ in rig.queue])

        waits = asyncio.create_task(loop())
        await stops_soon()
        begun = time.monotonic()
        (end,) = await asyncio.gather(asyncio.wait_for(waits, 30), return_exceptions=True)
        assert time.monotonic() - begun < 30
        return end

    for number, (stop, error) in enumerate(stops):
        rig = Rig(packets=0, taken=1)
        rig.push(2)
        rig.queue.timeout = A_LONG_TIME
        ended(asyncio.run(together(rig, stop)), error, number)


def test_a_limit_is_from_0_to_an_hour():
    """None is no limit, and every wait has one: in a thread, and in an event loop."""
    for wrong, error, words in [
        (None, TypeError, "None: seconds, from 0 to 3600"),
        ("1", TypeError, "1: seconds, from 0 to 3600"),
        (-1.0, ValueError, "-1: seconds, from 0 to 3600"),
        (float("inf"), ValueError, "inf: seconds, from 0 to 3600"),
        (float("nan"), ValueError, "NaN: seconds, from 0 to 3600"),
        (3600.5, contigo.ArgumentError, "3600000000"),
    ]:
        rig = Rig(packets=0, taken=1)
        (job,) = rig.push(1)
        for call in [job.wait, job.wait_for, rig.engine.next]:
            refused(error, lambda: call(wrong), words)
        assert rig.engine.in_flight == 1, "nothing was done"
        refused(error, lambda: contigo.Queue(rig.engine, timeout=wrong), words)
        refused(error, lambda: contigo.Stream(rig.engine, rig.frames, timeout=wrong), words)
        rig.queue.timeout = wrong
        refused(error, rig.queue.next, words)
        refused(error, lambda: list(rig.queue), words)
        rig.push(1)
        refused(error, lambda: counted_by_an_event_loop(rig.queue), words)
        del job
        rig.queue.take_back()
        rig.at_rest()


if __name__ == "__main__":
    sys.exit(run(globals(), "loops"))
