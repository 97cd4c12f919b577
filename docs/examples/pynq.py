"""bindings/python/README.md: a core with registers of its own."""

import contigo

core = contigo.Device("sim:zdma", registers={"STATUS": 0x11C})
buf = core.memory("sim", 1 << 16).allocate(1024, "uint8")
with buf.give(reads=True, writes=False) as handover:    # no array of it is alive
    where = handover.address                            # for a register: core["SRC"] = where
    core.wait("STATUS", 0, mask=3, timeout=0.1)         # bounded; TimeoutError says the register
assert buf.owner == "cpu"                               # the core has stopped: the program's word
assert where % 256 == 0
