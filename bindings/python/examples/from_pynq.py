# %% [markdown]
# # From `pynq.allocate` to Contigo
#
# The same memory for NumPy, TVM and an accelerator, as with PYNQ. This is new: a buffer belongs to
# the CPU or to a device, never to both. It runs on any Linux machine: the board and its DMA engine
# are simulated. VS Code, Spyder and Jupytext read the cells; `python from_pynq.py` runs them all,
# and each checks what it says.

# %%
import contigo
import numpy as np

# %% [markdown]
# ## Memory
#
# PYNQ takes memory from the one CMA area of its image, and devices from its overlay. Here both have
# names: memory "sim", or on a board "contigo", "u-dma-buf:udmabuf0", "hugetlb"; a device
# "sim:zdma", or "uio:axi_dma@40400000", "contigo:f8003000". `contigo.inventory()` lists those of a
# machine. On a board `port="zynq-hp0"` says how the device is wired. A board that `contigo boards`
# does not know has a tuple: name, offset of its addresses, address bits, whether it sees the
# caches.

# %%
device = contigo.Device("sim:zdma")
region = device.memory("sim")
a = region.allocate((4, 16), "int32")  # PYNQ: allocate((4, 16), dtype="i4")
c = region.allocate((4, 16), "int32")
print(a)
assert a.shape == (4, 16) and a.nbytes == 256

# %% [markdown]
# ## NumPy
#
# A PYNQ buffer is an array. Here an array of the buffer is made where it is needed, shares its
# elements, and goes before a device gets the buffer.

# %%
view = np.asarray(a)
view[:] = np.random.default_rng(1).integers(-128, 128, view.shape)
np.asarray(c)[:] = 0  # no name, so gone at the end of the line
expected = view.copy()
assert np.asarray(a).ctypes.data == view.ctypes.data
print(a.views, "array looks at a,", c.views, "at c")
assert (a.views, c.views) == (1, 0)

# %% [markdown]
# ## The bus address
#
# The number for a device's register, as in PYNQ. The device may use it from `give` to `take_back`.

# %%
print(f"a begins at {a.device_address:#x} on the bus")
assert a.device_address % 256 == 0

# %% [markdown]
# ## What goes wrong on a board, and is an exception here
#
# `view` is alive. Its writes could lie in the cache while the device reads memory, and its reads
# could be older than the device's writes.

# %%
try:
    a.sync_to_device()
except BufferError as error:
    print(error)
    assert "1 view(s)" in str(error) and "race the device" in str(error)
else:
    raise AssertionError("a device has what an array looks at")
assert a.owner == "cpu" and (view == np.asarray(a)).all()  # nothing has happened
del view

# %% [markdown]
# ## Hand over
#
# For an accelerator whose registers the program writes itself (PYNQ: `MMIO`, or `ip.write`; here
# `device["CTRL"] = 1`, `device.wait("ISR", …)`). `give` says what the device does, `reads=` and
# `writes=`; caches are cleaned where the device does not see them. At the end of the block the
# device must have stopped, and the buffer is the CPU's again.

# %%
with a.give(reads=True, writes=False) as handover:
    assert a.owner == "device" and handover.address == a.device_address
    # device[0x10] = handover.address; device.wait(0x00, DONE, DONE, timeout=1.0)
    try:
        np.asarray(a)
    except BufferError as error:
        print(error)
    else:
        raise AssertionError("an array of what a device has")
assert a.owner == "cpu"

# %% [markdown]
# ## A job
#
# PYNQ has a class for each core that it knows: `dma.sendchannel.transfer(buf)`, `wait()`. Here a
# driver has a name, on every device, and jobs: it hands the buffers over and takes them back.
# "zdma" copies its first operand to its second.

# %%
before = region.stats()
engine = device.driver("zdma")
done = engine.start([a, c]).wait(timeout=1.0)  # seconds; after them the device is stopped, and the buffers are back
assert (np.asarray(c) == expected).all() and done.buffers[1] is c
after = region.stats()
print(np.asarray(c))
print("bytes copied by the CPU:", after["bytes_copied"] - before["bytes_copied"])
assert after["bytes_copied"] == before["bytes_copied"]

# %% [markdown]
# An array that is kept stops this as well, and both buffers stay the CPU's.

# %%
kept = np.asarray(c)
try:
    engine.start([a, c])
except BufferError as error:
    print(error)
else:
    raise AssertionError("the engine wrote under an array")
assert [buf.owner for buf in (a, c)] == ["cpu"] * 2
del kept

# %% [markdown]
# ## Many jobs
#
# A queue has as many in flight as the device takes; `for`, or `async for`, brings their ends. A
# loop that is left, by an exception too, leaves no device running and loses no buffer. A
# `contigo.Stream` does the same for frames of a pool, such as a camera's.

# %%
queue, left = contigo.Queue(engine), 3
queue.push([a, c])
for done in queue:
    left -= 1
    if left:
        queue.push(done.buffers)
print(queue.counts)
assert queue.counts["completed"] == 4 and len(queue) == 0
engine.close()

# %% [markdown]
# ## DLPack
#
# A framework that has `from_dlpack` shares the elements: NumPy, TVM, PyTorch, JAX. The other way,
# `region.from_dlpack` finds the bus address of a framework's array that lies in the region, a part
# of one too. An array that lies elsewhere is refused, never copied.

# %%
shared = np.from_dlpack(c)
assert shared.ctypes.data == np.asarray(c).ctypes.data
row = region.from_dlpack(np.asarray(c)[2], "numpy")  # not `shared[2]`, which NumPy 1 makes read-only and then exports no more
print(row)
assert row.device_address == c.device_address + 2 * 16 * 4
try:
    region.from_dlpack(np.zeros(8, "int32"))
except contigo.ContigoError as error:
    print(error)
else:
    raise AssertionError("an array of NumPy's own memory has a bus address")
del shared, row

# %%
try:
    import tvm
except ImportError:
    print("TVM is not installed: skipped")
else:
    tensor = tvm.runtime.from_dlpack(c)
    assert np.from_dlpack(tensor).ctypes.data == np.asarray(c).ctypes.data
    assert (tensor.numpy() == expected).all()
    del tensor

# %% [markdown]
# ## PYNQ's names
#
# | PYNQ | here |
# |---|---|
# | `allocate(shape, dtype)` | `region.allocate(shape, dtype)`, or `contigo.allocate(shape, dtype, memory="sim")` |
# | `buf[...]` | `np.asarray(buf)[...]` |
# | `buf.device_address`, `buf.physical_address` | `buf.device_address` |
# | `buf.sync_to_device()`, `buf.flush()` | `with buf.give():`, or `buf.sync_to_device()`; no array of it may be alive |
# | `buf.sync_from_device()`, `buf.invalidate()` | the end of `with buf.give():`, `buf.take_back()`, or `buf.sync_from_device()`; it was given before |
# | `buf.freebuffer()`, `buf.close()` | `buf.freebuffer()`; or nothing: it goes back when its last view and handle are gone |
# | `buf.coherent` | the region's port says it: `port="zynq-acp"`, or `port=(…, …, …, coherent)` |
# | `buf.cacheable` | always: caches are cleaned and invalidated for the device |
# | `MMIO(addr, length)`, `ip.read`, `ip.write` | `device[0x10]`, `device["CTRL"]` with `Device(name, registers={"CTRL": 0})` |
# | `dma.sendchannel.transfer(buf)`, `.wait()` | `device.driver(name).start([buf]).wait(timeout)`, for every driver |
# | `ip.interrupt.wait()` | `async for done in contigo.Queue(engine)`, or `device.arm()` for an event loop |
# | `Overlay` | not here: the FPGA manager loads bitstreams |

# %%
out = contigo.allocate(64, "float32", memory=region)
out.sync_to_device()
assert out.owner == "device"
out.sync_from_device()
assert out.owner == "cpu"
try:
    out.sync_from_device()
except BufferError as error:
    print(error)
else:
    raise AssertionError("taken back from no device")
out.freebuffer()
assert out.owner == "gone"
print("all cells have run")
