"""bindings/python/README.md; it is compiled, and not run."""

import contigo, numpy as np

device = contigo.Device("contigo:copy@40000000", port="zynq-hp0")     # names of `contigo info`, `contigo boards`
region = device.memory("contigo", 1 << 20)
x, y = region.allocate((1080, 1920), "uint8"), region.allocate((1080, 1920), "uint8")
np.asarray(x)[:] = image                          # the same memory

with device.kernel("xcopy_hw.h", directions={"from": "reads", "to": "writes"}, timeout=0.1) as copy:
    copy(x, y, x.nbytes)                          # 0.1 s; then the device is stopped, and x and y are back
show(np.asarray(y))

with x.give() as handover:                        # no array of it is alive
    model(tvm.runtime.from_dlpack(handover))      # or device[0x10] = handover.address
    device.sync()                                 # the framework's stream has ended, its tensors are gone

queue = contigo.Queue(engine, timeout=0.5)        # as many in flight as the device takes
for pair in pairs[:queue.depth]:
    queue.push(pair)
for done in queue:                                # or `async for`
    work(done.buffers[1], done.nbytes, done.status)

for frame in contigo.Stream(camera, region.pool((1080, 1920), "uint8", 12)):
    show(np.asarray(frame))                       # exactly the bytes received; yours until the next

kernel = device.kernel("xfilter_hw.h", directions={"a": "reads", "out": "writes"}, lengths={"a": "4*n"})
peak = kernel(a, out, n=1024)                     # the C function's return value
