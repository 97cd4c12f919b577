"""Several jobs in flight: their ends in a loop, and frames of a device that writes one after the other."""

from time import monotonic

from ._contigo import ForkedError

# asyncio is imported where it runs: Debian's smallest Python has none.

#: Between two looks of an event loop at a device that has no interrupt: seconds.
LOOKS_EVERY_S = 0.001


async def _next(engine, timeout):
    """`engine.next`, for an event loop: it sleeps until the interrupt's file is readable, or looks every millisecond."""
    from asyncio import sleep

    deadline = monotonic() + timeout
    while True:
        # Armed before the look: what ends after that makes the file readable.
        fd = engine.arm() if timeout > 0 else None
        done = engine.next(0)
        left = deadline - monotonic()
        if done is not None or left <= 0 or engine.in_flight == 0:
            return done
        if fd is None:
            await sleep(min(left, LOOKS_EVERY_S))
        else:
            await _readable(fd, left)


async def _readable(fd, timeout):
    import asyncio

    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
    try:
        # Until then at most: an interrupt that got lost costs time, and no result.
        await asyncio.wait([readable], timeout=timeout)
    finally:
        loop.remove_reader(fd)


class _Loop:
    """One `for`, or `async for`. Whoever leaves it before its end, by whatever way, stops the device."""

    def __init__(self, of):
        self._of = of

    def __iter__(self):
        return self

    def __aiter__(self):
        return self

    def __next__(self):
        of = self._of
        try:
            item = None
            if of is not None:
                of._before()
                item = of._after(of._engine.next(of.timeout))
            if item is None:
                raise StopIteration
            return item
        except BaseException:
            self._end()
            raise

    async def __anext__(self):
        of = self._of
        try:
            item = None
            if of is not None:
                of._before()
                item = of._after(await _next(of._engine, of.timeout))
            if item is None:
                raise StopAsyncIteration
            return item
        except BaseException:
            self._end()
            raise

    def _end(self):
        of, self._of = self._of, None
        if of is not None:
            of._left()

    def __del__(self):
        try:
            self._end()
        except ForkedError:
            pass  # a child of fork collects its garbage, and stops nothing


class Queue:
    """Several jobs in flight on an engine, and their ends.

        queue = contigo.Queue(engine)
        for source, target in pairs[:queue.depth]:
            queue.push([source, target])
        for done in queue:                      # or `async for`
            work(done.buffers[1])
            queue.push(…)                       # as long as there is work

    A loop ends when no job is in flight, and raises `TimeoutError` where none ends in `timeout`
    seconds. Whoever leaves it before that - by an exception, `break` or `return` - stops the
    device: the buffers of all jobs are the CPU's, and `take_back` has the jobs that had not ended.
    `next` looks outside of a loop, and stops nothing.
    """

    def __init__(self, engine, *, timeout=1.0):
        self._engine, self.timeout = engine, timeout

    def push(self, operands, *words):
        """Gives the device a job, and returns it: `Engine.start`."""
        return self._engine.push(operands, *words)

    def next(self, timeout=None):
        """The next job that ended, waiting `timeout` seconds at most; None where none has. Nothing is stopped."""
        return self._engine.next(self.timeout if timeout is None else timeout)

    def stop(self):
        """Stops the device. Jobs that had ended still come from `next`, the others from `take_back`."""
        self._engine.stop()

    def take_back(self):
        """The jobs that had not ended when the device was stopped, the oldest first. Their buffers are the CPU's."""
        return self._engine.take_back()

    @property
    def depth(self):
        """How many jobs can be in flight."""
        return self._engine.depth

    @property
    def counts(self):
        """What became of the jobs: `Engine.counts`."""
        return self._engine.counts

    def __len__(self):
        """How many jobs are in flight."""
        return self._engine.in_flight

    def __bool__(self):
        return True

    def __iter__(self):
        return _Loop(self)

    def __aiter__(self):
        return _Loop(self)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()
        return False

    def _before(self):
        pass

    def _after(self, done):
        if done is None and self._engine.in_flight:
            raise TimeoutError(f"no job ended within {self.timeout} s; the device was stopped")
        return done

    def _left(self):
        if self._engine.in_flight:
            self._engine.stop()


class Stream:
    """Frames that a device writes one after the other: a camera, a converter, a network port.

        frames = region.pool((1080, 1920), "uint8", 12)
        for frame in contigo.Stream(engine, frames):    # or `async for`
            show(np.asarray(frame))

    A frame is an array of exactly the bytes received. Whole, it has the pool's shape; otherwise one
    dimension. It is yours until the next one is taken: then its buffer goes to the device again. An
    array of it that is kept (`np.asarray(frame)`) keeps the buffer too, and the device gets another
    one of the pool, as long as there are some.

    `timeout` is for one frame, in seconds. The loop does not end by itself. However it is left, the
    device is stopped, and all buffers are the pool's. `operands` makes a job's operands of a frame,
    where it has more than the one that the device writes; `words` are the job's argument words.
    """

    def __init__(self, engine, pool, *words, timeout=1.0, operands=None):
        directions = [spec["direction"] for spec in engine.operands]
        if operands is None and directions != ["from_device"]:
            raise ValueError(f"a job of {engine.name} has the operands {directions}: say operands=lambda frame: […, frame, …]")
        self._engine, self._pool, self._words, self.timeout = engine, pool, words, timeout
        self._operands = operands or (lambda frame: [frame])
        #: Which operand is the frame, and the frame that somebody has.
        self._index, self._out = directions.index("from_device"), None

    def start(self):
        """Gives the device as many frames as it takes and the pool has. A loop does it by itself."""
        engine = self._engine
        while engine.in_flight < engine.depth:
            try:
                frame = self._pool.take()
            except MemoryError:
                if engine.in_flight == 0:
                    raise MemoryError(f"all {len(self._pool)} frames of the pool are kept, and the device has none") from None
                return
            engine.push(self._operands(frame), *self._words)

    def stop(self):
        """Stops the device. All buffers are the pool's, except for those of which arrays are kept."""
        self._give_back()
        # What had ended and nobody took is lost, as what comes later is.
        self._engine._clear()

    @property
    def counts(self):
        """What became of the frames: `Engine.counts`; `ran_dry` is how often the device had none to write."""
        return self._engine.counts

    def __iter__(self):
        return _Loop(self)

    def __aiter__(self):
        return _Loop(self)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()
        return False

    def _give_back(self):
        frame, self._out = self._out, None
        if frame is not None:
            frame._let_go()

    def _before(self):
        self._give_back()
        self.start()

    def _after(self, done):
        if done is None:
            raise TimeoutError(f"no frame came within {self.timeout} s; the device was stopped")
        frame = done.buffers[self._index]
        self._out = frame._first(frame.nbytes if done.nbytes is None else done.nbytes)
        return self._out

    def _left(self):
        self.stop()
