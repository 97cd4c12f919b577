"""docs/jobs.md, on a simulated board."""

import contigo
import numpy as np

device = contigo.Device("sim:zdma")
region = device.memory("sim")
a, b = region.allocate(64, "uint8"), region.allocate(64, "uint8")
pairs = [(region.allocate(64, "uint8"), region.allocate(64, "uint8")) for _ in range(4)]
np.asarray(a)[:] = 7

engine = device.driver("zdma")                  # it copies its first operand to its second
done = engine.start([a, b]).wait(timeout=0.02)
assert (np.asarray(b) == 7).all() and done.buffers[1] is b

queue = contigo.Queue(engine, timeout=0.5)
for pair in pairs[:queue.depth]:
    queue.push(pair)
for done in queue:                              # or `async for`
    print(done.nbytes, done.status)

device.reset()
engine.stop()

of_a_device = device.memory("sim", 1 << 20)
alone = contigo.open_memory("sim:8", 1 << 20)
assert of_a_device.size == alone.size == 1 << 20
