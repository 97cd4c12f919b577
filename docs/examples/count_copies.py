"""docs/frameworks.md: the counts of any function, here of
relax.py's two. With the counter: LD_PRELOAD=/tmp/libcopies.so python3 count_copies.py"""

import ctypes
from collections import Counter

import relax as program                                 # yours, in its place


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("allocations", "allocated_bytes", "copies", "copied_bytes")]


def counted(work):
    """Allocations and copies of 64 KiB or more, by every library of the process."""
    library, counts = ctypes.CDLL(None), Counts()
    if not hasattr(library, "copies_begin"):
        return "libcopies.so is not preloaded"
    work()                                              # pools are full then
    library.copies_begin(ctypes.c_size_t(65536))
    work()
    library.copies_end(ctypes.byref(counts))
    return {name: getattr(counts, name) for name, _ in Counts._fields_}


def calls(machine, work):
    """The calls of a virtual machine of TVM's: `machine` is a relax.VirtualMachine."""
    seen = Counter()

    def see(function, name, before_run, returned, *arguments):
        seen[name] += bool(before_run)                  # once before the call, once after it
        return 0                                        # go on; 1 before the call skips it

    machine.set_instrument(see)
    work()
    machine.set_instrument(lambda *_: 0)
    return dict(seen)


for name, work in (("before", lambda: program.before(program.array)), ("after", program.after)):
    print(f"{name}: {counted(work)}")
    print(f"{name}, calls: {calls(program.model, work)}")
