"""A stream in Python by the rules of runtime/core/src/job/stream.rs, on a camera with faults. interop.py
runs it as channels.py."""

import gc
import os
import sys

import contigo
import numpy as np
from camera import ERROR, PACKET, SLOTS, At, Rig, number, run
from common import refused
from contigo import _contigo

A_WHILE = 100e-6


def rig_and_stream(**settings):
    rig = Rig(**settings)
    return rig, contigo.Stream(rig.engine, rig.frames)


def test_frames_before_fault_come_then_the_error():
    rig, stream = rig_and_stream(error_at=20)
    assert not stream.is_running and stream.next(A_WHILE) is None, "nothing is started by looking"
    assert stream.start() == 8 and stream.is_running
    assert [number(stream.next(A_WHILE)) for _ in range(20)] == list(range(20))
    refused(contigo.ContigoError, lambda: stream.next(A_WHILE), "axi_dma s2mm", ERROR)
    assert not stream.is_running and rig.engine.in_flight == 0 and rig.frames.free == SLOTS - 8, "the others wait for the next start"
    pushed = stream.counts["pushed"]
    assert stream.next(A_WHILE) is None and stream.counts["pushed"] == pushed and not _contigo.camera_runs()
    assert stream.start() == 8
    assert number(stream.next(A_WHILE)) > 20
    counts = stream.counts
    assert [counts[what] for what in ("completed", "stopped", "underruns")] == [21, 1, 0], counts
    assert counts["pushed"] == counts["completed"] + counts["cancelled"] + 7, counts
    stream.stop()
    rig.at_rest()


def test_a_fault_starts_nothing_before_it_is_told():
    """The frames that had arrived by the stop come first. Until the error is raised, the device
    stays stopped. In a loop too."""
    for loop in [False, True]:
        rig, stream = rig_and_stream(unknown_at=5)
        seen = []

        def fetch():
            for frame in stream if loop else iter(lambda: stream.next(A_WHILE), None):
                seen.append(number(frame))
                assert len(seen) <= 5 or not _contigo.camera_runs() and rig.engine.in_flight == 0, seen

        if not loop:
            stream.start()
        refused(contigo.ContigoError, fetch, "camera")
        assert seen[:6] == list(range(6)) and stream.counts["stopped"] == 1, (seen, stream.counts)
        stream.stop()
        rig.at_rest()


def test_frame_failing_alone_stops_nothing():
    rig, stream = rig_and_stream(fails_at=2)
    stream.start()
    assert [number(stream.next(A_WHILE)) for _ in range(2)] == [0, 1]
    try:
        stream.next(A_WHILE)
    except contigo.ContigoError as error:
        assert "asked for" in str(error) and stream.is_running
        assert rig.frames.free == SLOTS - 7, "the exception is alive, and the frame is not its own"
        assert [number(stream.next(A_WHILE)) for _ in range(3)] == [3, 4, 5]
    else:
        raise AssertionError("it did not fail")
    counts = stream.counts
    assert (counts["failed"], counts["stopped"], counts["cancelled"]) == (1, 0, 0), counts
    stream.stop()
    rig.at_rest()
    # The error has ended the loop.
    rig, stream = rig_and_stream(fails_at=2)
    kept = []
    try:
        for frame in stream:
            kept.append(np.asarray(frame))
    except contigo.ContigoError as error:
        assert "asked for" in str(error) and rig.frames.free == SLOTS - 2 and not stream.is_running
    assert [number(array) for array in kept] == [0, 1]
    kept.clear()
    rig.at_rest()


def test_nothing_that_comes_late_stops_it():
    rig, stream = rig_and_stream(packets=2)
    stream.start()
    assert [number(stream.next(A_WHILE)) for _ in range(2)] == [0, 1]
    assert stream.next(A_WHILE) is None and stream.is_running and rig.engine.in_flight == 8 and stream.counts["stopped"] == 0
    # A loop cannot say so but by its end.
    refused(contigo.BusyError, contigo.Stream(rig.engine, rig.frames).start, "8")
    stream.timeout = A_WHILE
    refused(TimeoutError, lambda: list(stream), "0.0001 s")
    rig.at_rest()


def test_a_frame_is_exactly_the_bytes_received():
    rig, stream = rig_and_stream(short_every=3)
    stream.start()
    for expected in range(30):
        before = rig.region.stats()
        frame = stream.next(A_WHILE)
        nbytes = PACKET // 12 * 4 if expected % 3 == 0 else PACKET
        assert (frame.nbytes, frame.shape, number(frame)) == (nbytes, (nbytes,), expected)
        after = rig.region.stats()
        got, given = (after[what] - before[what] for what in ("bytes_synced_for_cpu", "bytes_synced_for_device"))
        # The lines received, and the descriptors' looks and writes, a line each. The device gets
        # all of the frame again.
        lines = -(-nbytes // 64) * 64
        assert lines <= got <= lines + 3 * 64, (got, lines)
        assert PACKET <= given <= PACKET + 64 if expected else given == 0, given
    stream.stop()
    rig.at_rest()


def test_where_it_runs_dry_is_counted():
    """As Rust counts it: by the channel where it tells, else where the last job ended before the
    next one was pushed."""
    for depth, dry in [(1, 19), (2, 0), (8, 0)]:
        rig, stream = rig_and_stream(depth=depth)
        assert stream.start() == depth
        assert [number(stream.next(A_WHILE)) >= 0 for _ in range(20)] == [True] * 20
        assert stream.counts["underruns"] == dry, (depth, stream.counts)
        stream.stop()
        assert stream.counts["underruns"] == dry, "a stop is no loss"
        rig.at_rest()


def test_a_frame_that_is_kept_is_the_pool_s_later():
    rig, stream = rig_and_stream(depth=4)
    stream.start()
    kept = [np.asarray(stream.next(A_WHILE)) for _ in range(SLOTS)]
    refused(MemoryError, lambda: stream.next(A_WHILE), f"all {SLOTS} frames of the pool are kept")
    assert stream.is_running and [number(array) for array in kept] == list(range(SLOTS))
    del kept[3:]
    # In a loop's body the device has a frame less, and `start` gives it one at once.
    frame = stream.next(A_WHILE)
    assert rig.engine.in_flight == 3 and stream.start() == 4 and number(frame) == SLOTS
    stream.stop()
    refused(BufferError, lambda: np.asarray(frame), "freed")
    rig.at_rest(SLOTS - 3)
    del kept
    rig.at_rest()


def test_a_stop_in_a_loop_ends_it():
    rig, stream = rig_and_stream()
    seen = []
    for frame in stream:
        seen.append(number(frame))
        if len(seen) == 3:
            stream.stop()
    assert seen == [0, 1, 2]
    rig.at_rest()
    # And the next loop begins anew.
    for frame in stream:
        assert number(frame) > 2 and stream.is_running
        break
    rig.at_rest()


def test_stuck_stream_keeps_frames_until_reset():
    rig, stream = rig_and_stream(stuck=1, packets=4)
    stream.start()
    assert number(stream.next(A_WHILE)) == 0
    refused(contigo.ContigoError, stream.stop, "did not stop")
    refused(contigo.ContigoError, stream.start, "stop")
    # Frames that come are told, and nothing is given.
    assert [number(stream.next(A_WHILE)) for _ in range(3)] == [1, 2, 3] and stream.next(A_WHILE) is None
    assert rig.engine.in_flight == 4 and rig.frames.free == SLOTS - 4
    rig.kept_to_itself()
    rig.device.reset()
    stream.stop()
    rig.at_rest()
    assert stream.start() == 8
    stream.stop()
    rig.at_rest()


def test_a_stream_that_is_dropped_is_stopped():
    rig, stream = rig_and_stream()
    stream.start()
    number(stream.next(A_WHILE))
    del stream
    # Not when garbage is collected.
    assert not _contigo.camera_runs() and rig.frames.free == SLOTS
    rig.at_rest()
    # One that never ran, or has stopped, stops no jobs of others.
    rig.push(2)
    contigo.Stream(rig.engine, rig.frames)
    stream = contigo.Stream(rig.engine, rig.frames)
    stream.start()
    stream.stop()
    refused(contigo.ContigoError, rig.drain, "cancelled: another")
    rig.drain()
    rig.push(2)
    del stream
    gc.collect()
    assert rig.engine.in_flight == 2
    rig.queue.stop()
    rig.drain()
    rig.at_rest()


def test_a_child_of_fork_stops_nothing():
    rig, stream = rig_and_stream()
    stream.start()
    number(stream.next(A_WHILE))
    if (child := os.fork()) == 0:
        sys.unraisablehook = lambda what: os._exit(1)
        del stream
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert stream.is_running and number(stream.next(A_WHILE)) == 1
    stream.stop()
    rig.at_rest()


def test_what_is_refused_goes_back_to_the_pool():
    rig = Rig()
    elsewhere = contigo.open_memory("sim", 1 << 16).pool(PACKET, "uint8", 3)
    stream = contigo.Stream(rig.engine, elsewhere)
    try:
        stream.start()
    except contigo.ContigoError as error:
        assert "operand 0" in str(error) and elsewhere.free == 3, "the exception is alive, and the frame is not its own"
        assert not stream.is_running and rig.engine.in_flight == 0
    else:
        raise AssertionError("not refused")

    class Printer:
        name, operands = "printer", [{"direction": "reads"}]

    refused(ValueError, lambda: contigo.Stream(Printer(), rig.frames), "['reads']", "none of them is a frame")
    rig.at_rest()
    # More than the device takes of a frame is not handed over: a length has 26 bits.
    device = contigo.Device("sim:camera")
    region = device.memory("sim", 66 << 20)
    engine, frames = device.driver("camera", memory=region, depth=1), region.pool(1 << 26, "uint8", 1)
    assert engine.operands[0]["max"] == (1 << 26) - 1
    with contigo.Stream(engine, frames) as stream:
        assert number(stream.next(A_WHILE)) == 0
    assert frames.free == 1


def test_ctrl_c_loses_no_frame():
    """Wherever it comes in `next`, the frame that it had taken comes next."""
    where = set()
    for step in range(1, 1000):
        (rig, stream), at, seen = rig_and_stream(), At(step), []
        stream.start()
        sys.settrace(at)
        try:
            for _ in range(2):
                seen.append(number(stream.next(A_WHILE)))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        where.add(at.raised)
        seen += [number(stream.next(A_WHILE)) for _ in range(3)]
        assert seen == list(range(len(seen))), (step, at.raised, seen)
        stream.stop()
        rig.at_rest()
        if at.raised is None:
            break
    assert where >= {"next", "_before", "_frame", "_arm"}, where


if __name__ == "__main__":
    sys.exit(run(globals(), "rules"))
