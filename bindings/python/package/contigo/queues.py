"""Several jobs in flight, and their ends in a loop."""

from __future__ import annotations

from time import monotonic

from ._contigo import _seconds
from .errors import ForkedError, TimeoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, AsyncIterator, Iterator

    from ._contigo import Done, Engine, Job, Operands
    from .kernel import Kernel

# asyncio is imported where it runs: Debian's smallest Python has none.

#: Between two looks of an event loop at a device that has no interrupt: seconds. A short job has
#: ended before: so long it looks again whenever the other tasks have had their turn.
LOOKS_EVERY_S = 0.001

#: As long as an event loop sleeps at most, where there is an interrupt: seconds. Another thread's
#: wait, or the event loop of another thread or channel, may have taken the interrupt, and a stop
#: makes none. A thread that waits looks as often (src/shared.rs).
SLEEPS_S = 0.02

#: As long as anything waits at most: seconds. For less there is `asyncio.wait_for`.
LONGEST_S = 3600.0


#: Those that sleep until a file is readable, by their event loop and the file: two queues of one
#: engine have one.
_asleep = {}


async def _next(of, timeout, taken):
    """`next` of a queue or a stream, for an event loop."""

    def look():
        # Read before the look: a look of another thread's may bring the last job out in between,
        # and then this one finds it.
        flying = of._ends.in_flight
        done = of._ends.next(0, taken)
        return done is not None or flying == 0, done

    return await _until(look, of._engine.arm, of._ends.computes, timeout)


async def _ended(job, timeout=LONGEST_S):
    """The end of one job: `await job`. Who is cancelled meanwhile, as `asyncio.wait_for` does,
    stops the device, as `job.wait` does after its time."""
    import asyncio

    def look():
        is_over = job.done()
        return is_over, is_over

    asyncio.get_running_loop()  # without one nothing is stopped
    try:
        if not await _until(look, job._arm, job._computes, timeout):
            raise TimeoutError(f"the job did not end within {timeout:g} s; the device was stopped")
    except BaseException:
        try:
            job.cancel()
        except ForkedError:
            pass  # a child of fork collects its garbage, and stops nothing
        raise
    return job.wait(0)


async def _until(look, arm, computes, timeout):
    """Calls `look`, which answers whether it is over and what it found, until that or the time is
    over; what it found last.

    It sleeps until the interrupt's file is readable, or looks again and again.
    """
    import asyncio

    asleep = None
    loop, began = asyncio.get_running_loop(), monotonic()
    deadline = began + _seconds(timeout)
    while True:
        # Armed before the look: what ends after that makes the file readable. Not again where
        # another one sleeps, whose interrupt this would forget: that one armed it, and all of them
        # wake. The first time this may forget one, which costs the others SLEEPS_S.
        if timeout > 0 and not _asleep.get(asleep):
            fd = arm()
            asleep = loop, fd
        is_over, found = look()
        if computes():
            deadline = monotonic() + timeout
        left = deadline - monotonic()
        if is_over or left <= 0:
            return found
        if fd is None:
            is_short = deadline - left - began < LOOKS_EVERY_S
            await asyncio.sleep(0 if is_short else min(left, LOOKS_EVERY_S))
        else:
            await _readable(loop, fd, min(left, SLEEPS_S))


async def _readable(loop, fd, timeout):
    """Sleeps until the file is readable, for `timeout` seconds at most. Is it?"""
    import asyncio

    readable = loop.create_future()
    sleepers = _asleep.setdefault((loop, fd), set())
    if not sleepers:
        loop.add_reader(fd, _wake, loop, fd)
    sleepers.add(readable)
    try:
        # Until then at most: an interrupt that got lost costs time, and no result.
        await asyncio.wait([readable], timeout=timeout)
        return readable.done()
    finally:
        sleepers.discard(readable)
        if not sleepers and _asleep.get((loop, fd)) is sleepers:
            _quiet(loop, fd)


def _wake(loop, fd):
    for readable in _quiet(loop, fd):
        if not readable.done():
            readable.set_result(None)


def _quiet(loop, fd):
    loop.remove_reader(fd)
    return _asleep.pop((loop, fd), ())


class _Loop:
    """One `for`, or `async for`. Leaving it before its end, in any way, stops the device."""

    _of = None

    def __init__(self, of):
        self._of, self._first = of, True

    def __iter__(self):
        return self

    def __aiter__(self):
        return self

    def __next__(self):
        of, taken = self._of, []
        try:
            if of is not None:
                self._before()
                item = of._after(of._ends.next(of.timeout, taken), taken)
                if item is not None:
                    return item
            raise StopIteration
        except BaseException as error:
            # Here, and not in a function: Ctrl-C that comes at its entry would lose `taken`.
            try:
                self._end(error, taken)
            except KeyboardInterrupt:
                self._end(error, taken)
                raise
            raise

    async def __anext__(self):
        of, taken = self._of, []
        try:
            if of is not None:
                self._before()
                item = of._after(await _next(of, of.timeout, taken), taken)
                if item is not None:
                    return item
            raise StopAsyncIteration
        except BaseException as error:
            # Here, and not in a function: Ctrl-C that comes at its entry would lose `taken`.
            try:
                self._end(error, taken)
            except KeyboardInterrupt:
                self._end(error, taken)
                raise
            raise

    def _before(self):
        first, self._first = self._first, False
        self._of._before(first)

    def _end(self, error=None, taken=None):
        """`taken` has the end that came from the device, and that the loop's body does not get."""
        of = self._of
        if of is None:
            return
        try:
            of._left(error, taken)
        except KeyboardInterrupt:
            # It came in between. What was done is done again, and changes nothing.
            of._left(error, taken)
            self._of = None
            raise
        except BaseException:
            self._of = None  # the error of a device that would not stop is raised once
            raise
        self._of = None

    def __del__(self):
        try:
            self._end()
        except KeyboardInterrupt:
            self._end()  # it came before anything was done
            raise
        except ForkedError:
            pass  # a child of fork collects its garbage, and stops nothing


class Queue:
    """Several jobs in flight on an engine, or on a kernel's, and their ends.

        queue = contigo.Queue(engine)
        for source, target in pairs[:queue.depth]:
            queue.push([source, target])
        for done in queue:                      # or `async for`
            work(done.buffers[1])
            queue.push(…)                       # as long as there is work

    A loop ends when none of its jobs is in flight, also by this queue's `stop` in another thread or
    task, and raises `TimeoutError` where none ends in `timeout` seconds, an hour at most.
    A loop that is left before that, by an exception, `break` or `return`, stops the device. The
    buffers of all jobs are the CPU's then, and `take_back` has the jobs that the loop has not
    given. `next` looks outside of a loop, and stops nothing.

    A queue gives the ends of its own jobs, and of no others: not those of another queue of the same
    engine, nor those that an earlier loop left. A loop raises once where another's stop cancelled
    jobs of it: `Engine.stop`, another queue or stream, or a job's `wait` or `cancel`. The jobs of a
    queue that is dropped go on, and their ends are dropped. A queue keeps 1,024 ends for `next` and
    `take_back`; then `push` raises `MemoryError` until they are taken.
    """

    def __init__(self, engine: Engine | Kernel, *, timeout: float = 1.0) -> None:
        self._engine = getattr(engine, "engine", engine)
        self.timeout: float = _seconds(timeout)
        if not hasattr(self._engine, "next"):
            raise TypeError(f"{engine!r} takes no jobs: a queue is of an Engine, a Kernel or a Function")
        self._ends = self._engine._ends()

    def push(self, operands: Operands, *words: int, more: bool = False) -> Job:
        """Gives the device a job, and returns it: `Engine.start`.

        With `more`, other jobs follow at once: one doorbell is rung for all of them.
        """
        return self._ends.push(operands, *words, more=more)

    def next(self, timeout: float | None = None) -> Done | None:
        """The next job that ended; None where none has in `timeout` seconds, 0 to 3,600.

        Without `timeout` it is the queue's. Nothing is stopped.
        """
        taken = []
        try:
            return self._ends.next(self.timeout if timeout is None else timeout, taken)
        except BaseException:
            if taken:
                self._ends.untake(taken)  # Ctrl-C came behind it: the next call gives it
            raise

    def stop(self) -> None:
        """Stops the device, and ends a loop of another thread or task.

        Jobs that had ended still come from `next` or the loop, the others from `take_back`.
        """
        self._ends.stop()

    def take_back(self) -> list[Job]:
        """The jobs that had not ended when the device was stopped, the oldest first.

        Of a loop that was left: those too that had ended, and that it has not given. Their buffers
        are the CPU's.
        """
        return self._ends.take_back()

    @property
    def depth(self) -> int:
        """How many jobs can be in flight, of all that the engine has."""
        return self._engine.depth

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the jobs: `Engine.counts`."""
        return self._engine.counts

    def __len__(self) -> int:
        """How many of its jobs are in flight."""
        return self._ends.in_flight

    def __bool__(self):
        return True

    def __iter__(self) -> Iterator[Done]:
        return _Loop(self)

    def __aiter__(self) -> AsyncIterator[Done]:
        return _Loop(self)

    def close(self) -> None:
        """Stops the device, where jobs of it are in flight, and lets go of its ends.

        The buffers are the CPU's. The engine stays.
        """
        if self._ends.in_flight:
            self._ends.stop()
        self._ends.forget()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *exception: Any) -> bool:
        self.stop()
        return False

    def __repr__(self):
        return f"contigo.Queue({self._engine.name}, {len(self)} in flight)"

    def _before(self, first):
        pass

    def _after(self, done, taken):
        if done is None:
            # As in `_next`.
            flying = self._ends.in_flight
            done = self._ends.next(0, taken)
        if done is None and flying:
            raise TimeoutError(f"no job ended within {self.timeout} s; the device was stopped")
        return done

    def _left(self, error, taken):
        if taken:
            self._ends.untake(taken)
        if self._ends.in_flight:
            self._ends.stop()
        self._ends.leave()
