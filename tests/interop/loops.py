"""Loops over jobs and frames in flight, `for` and `async for`, however they are left: the device is
stopped, and nothing is lost.

interop.py runs it as channels.py.
"""

import asyncio
import gc
import sys
from contextlib import contextmanager

import contigo
from camera import ERROR, SLOTS, Rig, run, taken
from common import refused
from contigo import _contigo


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


def a_loop_outlives_its_engine():
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


TESTS = [
    a_fault_ends_a_loop,
    a_loop_that_is_left_stops_the_ring,
    a_loop_over_one_that_will_not_stop_says_so,
    a_loop_outlives_its_engine,
]


if __name__ == "__main__":
    sys.exit(run(TESTS, "loops"))
