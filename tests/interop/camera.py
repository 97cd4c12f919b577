"""A camera behind an AXI DMA, a ring of descriptors in which things go wrong (own/src/camera.rs):
for programs that interop.py runs."""

import dis
import faulthandler
import gc
import sys
import traceback

import contigo
import numpy as np
from common import tests_of
from contigo import _contigo, queues, streams

PACKET, SLOTS = 4096, 12
# The text of the error that `error_at` makes.
ERROR = "memory answered with an error"


class Rig:
    """A camera, its frames, and its engine with eight buffers in flight."""

    def __init__(self, **settings):
        self.device = contigo.Device("sim:camera")
        self.region = self.device.memory("sim", 1 << 20)
        self.frames = self.region.pool(PACKET, "uint8", SLOTS)
        self.engine = self.device.driver("camera", memory=self.region, **settings)
        self.queue = contigo.Queue(self.engine)

    def push(self, count=8):
        return [self.queue.push([self.frames.take()]) for _ in range(count)]

    def drain(self):
        """Takes what ended before a stop, and what did not: it waits for the packet under way."""
        ended = 0
        while self.queue.next() is not None:
            ended += 1
        return ended + len(self.queue.take_back())

    def at_rest(self, free=SLOTS):
        """Nothing is in flight, nothing runs, no buffer is lost, and the device touched only its
        own memory."""
        gc.collect()
        assert self.engine.in_flight == 0 and not _contigo.camera_runs()
        assert self.frames.free == free, f"{self.frames.free} of {SLOTS} frames are free, and not {free}"
        self.kept_to_itself()

    def kept_to_itself(self):
        seen = self.device.simulated
        wrong = [seen[what] for what in ("stray_accesses", "unowned_accesses", "evictions", "lost_writes")]
        assert wrong == [0] * 4, seen


#: Python 3.12 leaves out steps, and never a line's first one.
STEPS = ["opcode", "line"] if sys.version_info[:2] == (3, 12) else ["opcode"]
#: The package's own loops.
LOOPS = [queues.__file__, streams.__file__]


class At:
    """Raises KeyboardInterrupt before the given step of the package's own loops, as Ctrl-C does
    between two of them, and never between a function's last step and its caller."""

    def __init__(self, step):
        self.left, self.raised = step, None

    def __call__(self, frame, event, arg):
        code = frame.f_code
        if code.co_filename not in LOOPS:
            return None
        frame.f_trace_opcodes = True
        if event in STEPS and not dis.opname[code.co_code[frame.f_lasti]].startswith("RETURN"):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self.raised = code.co_name
                raise KeyboardInterrupt
        return self


def packet(number, nbytes=PACKET):
    """The bytes of a packet: contigo::sim::stream::packet."""
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


def run(names, what):
    """Runs all tests of a module, given its `vars`; the status for the shell."""
    tests, failed = tests_of(names), 0
    for test in tests:
        # One that hangs is shown where it does.
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            test()
        except Exception as error:  # every test is run, whatever became of the one before
            failed += 1
            traceback.print_exception(type(error), error, error.__traceback__)
    print(f"{len(tests)} {what}" if not failed else f"{failed} failed")
    return 1 if failed else 0
