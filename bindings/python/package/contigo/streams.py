"""Frames of a device that writes one after the other: a queue over a pool.

The rules are those of runtime/core/src/job/queue/stream.rs.
"""

from __future__ import annotations

from ._contigo import _seconds
from .errors import ForkedError, MemoryError, TimeoutError
from .queues import _Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, AsyncIterator, Callable, Iterator

    from ._contigo import Buffer, Engine, Operands, Pool


class Stream:
    """Frames that a device writes one after the other: a camera, a converter, a network port.

        frames = region.pool((1080, 1920), "uint8", 12)
        for frame in contigo.Stream(engine, frames):    # or `async for`
            show(np.asarray(frame))

    A frame is an array of exactly the bytes received. Whole, it has the pool's shape; otherwise one
    dimension. It is yours until the next one is asked for, or the loop ends: then its buffer goes
    to the device again, or to the pool. An array of it that is kept (`np.asarray(frame)`) keeps the
    buffer too, and the device gets another one of the pool, as long as there are some. `start()`
    gives it one at once.

    `timeout` is for one frame, in seconds, an hour at most. A loop ends when the stream is stopped,
    in it or by another thread or task. However it is left, the device is stopped, and all buffers
    are the pool's. `next` looks outside of a loop, and stops nothing.

    A fault of the channel stops the device: the frames before it come first, then the error, and
    `start`, or the next loop, begins anew. After a frame that failed alone, `next` goes on.

    `operands` makes a job's operands of a frame, where it has more than the one that the device
    writes; `words` are the job's argument words.
    """

    #: The engine's count of stops when this was started, by which it runs. None: nothing of it is
    #: left.
    _begun = None
    #: Has the frame that came last its packet's end? False: it was longer, and the next frame goes
    #: on with it. None: the device receives no packets, or no frame came.
    last: bool | None = None

    def __init__(
        self,
        engine: Engine,
        pool: Pool,
        *words: int,
        timeout: float = 1.0,
        operands: Callable[[Buffer], Operands] | None = None,
    ) -> None:
        specs = engine.operands
        directions = [spec["direction"] for spec in specs]
        if "writes" not in directions or (operands is None and len(directions) > 1):
            wanted = "say operands=lambda frame: […, frame, …]" if "writes" in directions else "none of them is a frame"
            raise ValueError(f"a job of {engine.name} has the operands {directions}: {wanted}")
        self._engine, self._pool, self._words = engine, pool, words
        self.timeout: float = _seconds(timeout)
        self._ends = engine._ends()
        #: Which operand is the frame, and the frame that the program has.
        self._index, self._out = directions.index("writes"), None
        #: How much of a frame the device takes.
        self._most = most = specs[self._index]["max"]
        # It does not name the stream, which is gone with its last handle, and stops the device
        # then.
        self._operands = operands or (lambda frame: [frame if frame.nbytes <= most else frame.writes(most)])

    def start(self) -> int:
        """Gives the device as many frames as it takes and the pool has; how many it has then.

        So it starts the device; after a stop or a fault, anew. Frames that were not fetched by
        then are lost. A loop does it by itself.
        """
        if not self.is_running:
            if self._begun is not None:
                self._ends.forget()
            self._begun = self._engine._stops
        try:
            return self._arm()
        except BaseException:
            self._begun = -1  # the frames that the device has already are to be stopped
            raise

    def next(self, timeout: float | None = None) -> Buffer | None:
        """The oldest frame that arrived, waiting `timeout` seconds at most; None where none did.

        Nothing is stopped, and nothing is started. First the device gets back the frame that came
        last, and what else the pool has. `MemoryError`: the device has no frame, nor has the pool.
        """
        taken = []
        try:
            self._before(False)
            return self._frame(self._ends.next(self.timeout if timeout is None else timeout, taken))
        except BaseException as error:
            _let_go(error)
            if taken:
                # Ctrl-C came behind it: the next call gives it.
                self._out = None
                self._ends.untake(taken)
            raise

    def stop(self) -> None:
        """Stops the device.

        All buffers are the pool's, except for those of which arrays are kept.
        """
        self._give_back()
        self._ends.stop()
        # Ends that were not taken are lost, as those that come later are.
        self._ends.forget()
        self._begun = None

    @property
    def is_running(self) -> bool:
        """Whether it is between `start` and a stop or a fault."""
        return self._begun is not None and self._begun == self._engine._stops

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the frames: `Engine.counts`.

        `underruns` is how often the device had none to write.
        """
        return self._engine.counts

    def __iter__(self) -> Iterator[Buffer]:
        return _Loop(self)

    def __aiter__(self) -> AsyncIterator[Buffer]:
        return _Loop(self)

    def __repr__(self):
        return f"contigo.Stream({self._engine.name}, {'running' if self.is_running else 'stopped'})"

    def __enter__(self) -> Stream:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> bool:
        self.stop()
        return False

    def __del__(self):
        try:
            if self.is_running or self._begun is not None and self._ends.in_flight:
                self.stop()
        except ForkedError:
            pass  # as a loop's

    def _arm(self):
        """A frame into each free place, while the pool has any; how many the device has."""
        engine, ends = self._engine, self._ends
        # Where other jobs have every place, the first push raises.
        while ends.expected == 0 or engine.in_flight < engine.depth:
            try:
                frame = self._pool.take()
            except MemoryError:
                if ends.expected == 0:
                    raise MemoryError(f"all {len(self._pool)} frames of the pool are kept, and the device has none") from None
                break
            try:
                ends.push(self._checked(frame), *self._words)
            except BaseException:
                frame._let_go()  # not when the exception goes
                raise
        if not self.is_running:
            ends.stop()  # another thread's stop came in between, and a push started it again
        return ends.expected

    def _checked(self, frame):
        operands = list(self._operands(frame))
        written = operands[self._index] if self._index < len(operands) else frame
        if getattr(written, "buffer", written) is not frame:
            raise ValueError(f"operands=: operand {self._index}, which {self._engine.name} writes, must be the frame, and is another buffer")
        return operands

    def _give_back(self):
        frame, self._out = self._out, None
        if frame is not None:
            frame._let_go()

    def _frame(self, done):
        if done is None:
            return None
        frame, self.last = done.buffers[self._index], done.last
        self._out = frame._first(min(frame.nbytes, self._most) if done.nbytes is None else done.nbytes)
        return self._out

    def _before(self, first):
        self._give_back()
        if first:
            self.start()
        elif self.is_running:
            self._arm()

    def _after(self, done, taken):
        if done is None:
            # A look of another thread's may have brought it out in between.
            done = self._ends.next(0)
        if done is None and self.is_running:
            raise TimeoutError(f"no frame came within {self.timeout} s; the device was stopped")
        return self._frame(done)

    def _left(self, error, taken):
        _let_go(error)
        self._give_back()
        # A device that a fault has stopped is at rest.
        if self.is_running or self._ends.in_flight:
            self._ends.stop()
        self._ends.forget()
        self._begun = None


def _let_go(error):
    """Gives the buffers of a frame that failed alone back to the pool.

    They are the pool's, even while the program keeps the exception.
    """
    if getattr(error, "job", None) is not None:
        del error.job
