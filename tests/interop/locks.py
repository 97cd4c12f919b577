"""No call of the package waits for ever, whatever Python does meanwhile: a destructor of the
program's that looks at buffers while a refusal is made, and threads that are refused all at once.

`locks.py alone` is one thread; `locks.py threads SECONDS` three, `locks.py mixed SECONDS` many. A
call that waits for ever ends the program with the stacks of all threads. "For ever" is a minute, or
the seconds that follow: a program that hardly gets a processor (nice 19) waits longer than that.
"""

import faulthandler
import gc
import random
import sys
import threading
import time

import contigo
import numpy as np

#: Seconds without a sign of life, on a machine that does much else, and where nothing is said.
HUNG_S = 60
#: Of the buffers.
BYTES = 4096


def alive(hung_s=HUNG_S):
    """A sign of life. The watchdog is C's: it needs none of Python's locks."""
    faulthandler.dump_traceback_later(hung_s, exit=True)


class World:
    """What the program has, and each call of it that looks, gives, takes or is refused."""

    def __init__(self):
        self.device = contigo.Device("sim:zdma")
        self.region = self.device.memory("sim", 4 << 20)
        self.engine, other = self.device.driver("zdma"), contigo.Device("sim:zdma")
        self.far = other.memory("sim", 4 << 20)
        self.streaming = other.driver("zdma")
        self.queue = contigo.Queue(self.engine, timeout=0.01)
        self.bufs = [self.region.allocate(BYTES, "uint8") for _ in range(4)]
        self.pool, self.frames = self.region.pool(BYTES, "uint8", 4), self.far.pool(BYTES, "uint8", 4)
        self.sources = self.far.pool(BYTES, "uint8", 4)

    def looks(self, buf):
        """What a destructor may look at."""
        return (
            buf.owner, buf.views, repr(buf), self.engine.in_flight, self.engine.jobs, self.streaming.counts, self.pool.free,
            self.region.size, self.region.stats(), self.device.read32(0x11C) if self.engine is None else None,
        )

    def refusals(self, buf):
        """Each call that is refused while an array looks at `buf`, and no job is in flight."""
        pair, big, engine = [buf, self.bufs[1]], 1 << 40, self.engine
        pool = self.region.pool(16, "uint8", 1)
        out = self.bufs[2].give()
        last = pool.take()
        calls = [
            buf.give, buf.freebuffer, buf.take_back, buf.sync_to_device, buf.sync_from_device,
            lambda: buf.__dlpack__(stream=1), lambda: buf.__dlpack__(copy=True), lambda: buf.__dlpack__(dl_device=(2, 0)),
            lambda: np.asarray(self.bufs[2]), self.bufs[2].give, self.bufs[2].freebuffer,
            lambda: engine.start(pair), lambda: engine.push(pair), lambda: engine.start([self.bufs[1]] * 2),
            lambda: engine.start([self.bufs[1]]), lambda: engine.start([self.bufs[1], self.bufs[2]]),
            lambda: engine.start([self.bufs[1]] * 40), lambda: engine.next(-1.0),
            lambda: self.region.allocate(big, "uint8"), lambda: self.region.pool(big, "uint8", 8), pool.take,
            lambda: self.region.from_dlpack(np.zeros(16, np.uint8)), lambda: self.region.allocate(16, "uint8", align=3),
            lambda: self.device.memory("sim", -1 % (1 << 60)), lambda: contigo.open_memory("sin"), lambda: contigo.Device("sim:nothing"),
            lambda: contigo.Device("sim:zdma").driver("zdma", memory=self.region, memory_bytes=big),
            lambda: self.device.driver("zdma"), lambda: self.device.read32(3), lambda: self.device.wait32(0x11C, 1, timeout=0.0),
            lambda: self.device.fileno(), lambda: self.device.leave_stop([]), lambda: out.__dlpack__(stream=7),
        ]
        return calls, [out, last]


class Looks:
    """An ordinary cycle, with a destructor that looks at a buffer."""

    def __init__(self, world, buf):
        self.world, self.buf, self.me = world, buf, self

    def __del__(self):
        self.world.looks(self.buf)
        self.world.seen += 1


def alone():
    """A destructor runs, by the garbage collector, while an exception is made: in each call that is
    refused, and in one thread."""
    world = World()
    world.seen, made = 0, []
    classes = [one for one in vars(contigo.errors).values() if isinstance(one, type) and issubclass(one, contigo.ContigoError)]

    def collects(error, *args):
        made.append(type(error))
        gc.collect()

    for one in classes:
        one.__init__ = collects
    buf, gc_was = world.bufs[0], gc.isenabled()
    gc.disable()
    array = np.asarray(buf)
    calls, kept = world.refusals(buf)
    for number, call in enumerate(calls):
        alive()
        # Buffers, and a frame that was let go, of which an array is in a cycle: their memory goes
        # home by the collector, without a destructor of the program's.
        garbage = [world.region.allocate(16, "uint8")]
        garbage += [garbage, np.asarray(garbage[0])]
        frame = world.pool.take()
        kept_frame = [np.asarray(frame)]
        kept_frame.append(kept_frame)
        frame._let_go()
        del garbage, kept_frame, frame
        Looks(world, buf)
        before, errors = world.seen, len(made)
        try:
            call()
        except (contigo.ContigoError, ValueError):
            pass
        else:
            raise AssertionError(f"call {number} is not refused")
        if len(made) == errors:
            gc.collect()  # an exception of Python's own
        assert world.seen == before + 1 and world.pool.free == 4, (number, world.seen, world.pool.free)
    # The frame's own refusal: its array is in a cycle, and goes while the exception is made.
    alive()
    frame = world.pool.take()
    last = [np.asarray(frame)]
    last.append(last)
    del last
    made.clear()
    original = contigo.errors.BufferError.__init__

    def lets_go(error, *args):
        frame._let_go()
        original(error, *args)

    contigo.errors.BufferError.__init__ = lets_go
    try:
        frame.give()
    except BufferError:
        pass
    assert made and frame.owner == "gone" and world.pool.free == 4, (made, frame.owner, world.pool.free)
    assert len(made) > 0 and array.size == BYTES and gc_was
    kept[0].take_back()
    print(f"{len(calls)} refusals")


def threads(seconds, hung_s=HUNG_S):
    """One thread is refused (its buffer has a view), one looks at the buffer, one stops the
    engine."""
    world = World()
    buf, other, _, _ = world.bufs
    array, over, counts = np.asarray(buf), [], [0, 0, 0]

    def starts():
        try:
            world.engine.start([buf, other])
        except BufferError:
            return
        raise AssertionError("a buffer with a view was taken")

    def each(number, call):
        while not over:
            call()
            counts[number] += 1

    calls = [starts, lambda: buf.owner, world.engine.stop]
    run([lambda number=number, call=call: each(number, call) for number, call in enumerate(calls)], counts, seconds, over, hung_s)
    assert array.size == BYTES and buf.views == 1 and buf.owner == "cpu"


def run(bodies, counts, seconds, over, hung_s):
    """Runs each body in a thread for so long. Where none of them gets on, or one of them does not
    come to its end, the program ends."""
    failed = []

    def guarded(body):
        try:
            body()
        except BaseException as error:  # a panic is none of Exception
            failed.append(error)
            over.append(True)

    # Daemons: a program that fails does not wait for the others.
    all_threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in bodies]
    began, last = time.monotonic(), -1
    alive(hung_s)
    for thread in all_threads:
        thread.start()
    while time.monotonic() - began < seconds and not failed:
        time.sleep(0.05)
        if sum(counts) != last:
            alive(hung_s)
            last = sum(counts)
    over.append(True)
    alive(hung_s)
    for thread in all_threads:
        if not failed:
            thread.join()
            alive(hung_s)
    if failed:
        raise failed[0]
    print(f"{sum(counts)} calls in {time.monotonic() - began:.1f} s: {counts}")


class Foreign:
    """A producer of DLPack's tensors that calls back when it is asked, and when it goes."""

    def __init__(self, world, buf, of):
        self.world, self.buf, self.of, self.me = world, buf, of, self

    def __dlpack__(self, **options):
        self.world.looks(self.buf)
        return self.of.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __del__(self):
        self.world.looks(self.buf)


class Word:
    """An argument word that calls back."""

    def __init__(self, world, buf):
        self.world, self.buf = world, buf

    def __index__(self):
        self.world.looks(self.buf)
        return 0


def mixed(seconds, hung_s=HUNG_S):
    """Many threads call whatever can be refused, on the same buffers, engines and pools."""
    world = World()
    world.seen = 0
    over, counts = [], [0] * 6
    # What a program may run into here. A panic, or Python's SystemError, is none of it.
    fine = (contigo.ContigoError, BufferError, MemoryError, TimeoutError, ValueError)

    def body(number):
        draw = random.Random(number)

        def buf():
            return draw.choice(world.bufs)

        def view():
            array = np.asarray(buf())
            return array.size

        def cycle():
            kept = [np.asarray(buf()), world.pool.take()]
            kept.append(kept)

        def handed():
            with buf().give() as handover:
                capsule = handover.__dlpack__(max_version=(1, 1))
                try:
                    handover.take_back()
                finally:
                    del capsule
                    handover.take_back()

        def left():
            try:
                with buf().give(writes=False):
                    1 / 0
            except ZeroDivisionError:
                pass

        def operands(one, other):
            world.looks(one)
            yield one
            world.looks(other)
            yield other

        def started():
            job = world.engine.start(operands(buf(), buf()), *draw.choice([(), (Word(world, buf()),)]))
            draw.choice([job.wait, job.done, job.cancel, lambda: job.wait_for(0.01), lambda: None])()

        def pushed():
            world.queue.push([buf(), buf()])
            draw.choice([world.queue.next, world.engine.stop, lambda: None])()

        def looped():
            world.queue.push([buf(), buf()])
            for done in world.queue:
                if draw.random() < 0.5:
                    break

        def streamed():
            def of(frame):
                world.looks(frame)
                if draw.random() < 0.1:
                    raise ValueError("the program's own")
                return [world.sources.take(), frame]

            kept = []
            for count, frame in enumerate(contigo.Stream(world.streaming, world.frames, operands=of, timeout=0.05)):
                kept += [np.asarray(frame), kept] if draw.random() < 0.3 else []
                if count > 5:
                    break

        def imported():
            of = draw.choice([buf(), np.zeros(8, np.uint8)])
            return world.region.from_dlpack(Foreign(world, buf(), of)).device_address

        def reads_on():
            capsule = buf().__dlpack__(max_version=draw.choice([None, (1, 1)]))
            world.looks(buf())
            return capsule

        def pools():
            taken = [world.pool.take() for _ in range(draw.randrange(1, 6))]
            draw.choice(taken).freebuffer()
            draw.choice(taken)._let_go()

        def allocates():
            mine = world.region.allocate(draw.choice([1, 64, BYTES, 1 << 40]), "uint8")
            kept = [mine, np.asarray(mine)]
            kept.append(kept)

        def registers():
            draw.choice([lambda: world.device.read32(0x11C), lambda: world.device.wait32(0x11C, 7, timeout=0.0), world.device.arm])()

        calls = [
            view, cycle, handed, left, started, pushed, pools, imported, reads_on, allocates, registers,
            lambda: buf().give(), lambda: buf().take_back(), lambda: buf().sync_to_device(), lambda: buf().sync_from_device(),
            lambda: world.looks(buf()), lambda: Looks(world, buf()), lambda: world.engine.next(0), lambda: world.engine.take_back(),
            world.engine.stop, world.streaming.stop, lambda: world.engine.counts, gc.collect,
        ]
        # A loop is one thread's.
        calls += [streamed] * 4 if number == 0 else [looped] * 4 if number == 1 else []
        while not over:
            try:
                draw.choice(calls)()
            except fine:
                pass
            counts[number] += 1

    run([lambda number=number: body(number) for number in range(len(counts))], counts, seconds, over, hung_s)
    # All of it is the CPU's again, and at home.
    world.engine.stop()
    world.streaming.stop()
    world.engine.take_back()
    while world.engine.next(0) is not None or world.streaming.next(0) is not None:
        pass
    gc.collect()
    for buf in world.bufs:
        if buf.owner == "device":
            buf.take_back()
    state = [(buf.owner, buf.views) for buf in world.bufs], world.pool.free, world.frames.free, world.sources.free
    assert state == ([("cpu", 0)] * 4, 4, 4, 4), state
    assert world.seen > 0


if __name__ == "__main__":
    # Each thread has its turn as often as Python lets it.
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50, 2, 2)
    which, arguments = sys.argv[1], [float(number) for number in sys.argv[2:]]
    {"alone": alone, "threads": threads, "mixed": mixed}[which](*arguments)
    faulthandler.cancel_dump_traceback_later()
