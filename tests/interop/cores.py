"""Each core by its driver's name, on its model: a device, its memory, a driver, and jobs with the
right bytes."""

import contigo
import numpy as np

LEN = 4096

#: The device, its driver, the driver's settings, and its jobs: "copy", "send" or "receive".
CORES = [
    ("sim:zdma", "zdma", {}, "copy"),
    ("sim:pl330", "pl330", {}, "copy"),
    ("sim:axi_cdma", "axi_cdma", {"dre": 1}, "copy"),
    ("sim:axi_dma", "axi_dma", {}, "copy"),
    ("sim:axi_dma", "axi_dma", {"depth": 4, "irq_packets": 4, "irq_delay": 10}, "copy"),
    ("sim:axi_dma_sink", "axi_dma", {"channel": 0}, "send"),
    ("sim:axi_dma_camera", "axi_dma", {"channel": 1}, "receive"),
    ("sim:axi_dmac", "axi_dmac", {}, "copy"),
    ("sim:axi_dmac_sink", "axi_dmac", {}, "send"),
    ("sim:axi_dmac_camera", "axi_dmac", {}, "receive"),
    ("sim:msgdma", "msgdma", {"max_bytes": 4096}, "copy"),
    ("sim:msgdma_prefetcher", "msgdma", {"max_bytes": 4096, "prefetcher_at": 0x60}, "copy"),
    ("sim:msgdma_sink", "msgdma", {"mode": 1, "max_bytes": 4096}, "send"),
    ("sim:msgdma_camera", "msgdma", {"mode": 2, "max_bytes": 4096, "resp_at": 0x40}, "receive"),
    ("sim:axi_mcdma_sink", "axi_mcdma", {"channel": 0}, "send"),
    ("sim:axi_mcdma_camera", "axi_mcdma", {"channel": 16}, "receive"),
    ("sim:axi_vdma_sink", "axi_vdma", {"channel": 0, "hsize_bytes": 64, "vsize_lines": 64}, "send"),
    ("sim:axi_vdma_camera", "axi_vdma", {"channel": 1, "hsize_bytes": 64, "vsize_lines": 64}, "receive"),
    ("sim:litepcie", "litepcie", {}, "copy"),
]


def test_each_core_does_its_jobs():
    for name, driver, settings, kind in CORES:
        device = contigo.Device(name)
        region = device.memory("sim", 1 << 20)
        with device.driver(driver, memory=region, **settings) as engine:
            for value in range(10):
                bufs = [region.allocate(LEN, "uint8") for _ in range(2 if kind == "copy" else 1)]
                np.asarray(bufs[0])[:] = value
                done = engine.start(bufs).wait(timeout=1.0)
                seen = np.asarray(bufs[-1])
                if kind == "receive":
                    # An AXI DMAC has no report of a packet that fills its buffer.
                    assert done.nbytes == (None if driver == "axi_dmac" else LEN), (name, done.nbytes)
                    # The packet's number and its length are its first words.
                    assert seen[4:8].view("uint32")[0] == LEN, (name, seen[:8])
                else:
                    assert (seen == value).all(), (name, settings, value)
                del seen, bufs, done


def test_descriptors_of_a_driver():
    device = contigo.Device("sim:axi_dma")
    region = device.memory("sim", 1 << 20)
    for settings, descriptors in [({}, "synced"), ({"coherent_memory": 1}, "coherent")]:
        with device.driver("axi_dma", memory=region, **settings) as engine:
            assert engine.descriptors == descriptors
    with contigo.Device("sim:axi_cdma").driver("axi_cdma") as engine:
        assert engine.descriptors is None


def test_both_channels_of_an_axi_dma_side_by_side():
    device = contigo.Device("sim:axi_dma")
    region = device.memory("sim", 1 << 20)
    send, receive = (device.driver("axi_dma", memory=region, channel=channel) for channel in (0, 1))
    packet, room = region.allocate(1000, "uint8"), region.allocate(LEN, "uint8")
    np.asarray(packet)[:] = 7
    jobs = [receive.start([room]), send.start([packet])]
    done = [job.wait(timeout=1.0) for job in jobs]
    assert done[0].nbytes == 1000 and (np.asarray(room)[:1000] == 7).all()


def test_what_is_written_between_jobs_reaches_the_device():
    """The buffers are kept, behind a port that does not snoop: each way to write marks them."""
    device = contigo.Device("sim:zdma")
    region = device.memory("sim", 1 << 20)

    def by_array(buf, value):
        np.asarray(buf)[:] = value

    def by_item(buf, value):
        buf[:] = value

    with device.driver("zdma", memory=region) as engine:
        pairs = [[region.allocate(LEN, "uint8") for _ in range(2)] for _ in range(3)]
        for value, write in enumerate([by_array, by_item] * 3, 1):
            for source, target in pairs:
                write(source, value)
                write(target, 0)
            jobs = [engine.start(pair, more=pair is not pairs[-1]) for pair in pairs]
            for job, (_, target) in zip(jobs, pairs):
                job.wait(timeout=1.0)
                assert (np.asarray(target) == value).all(), (write.__name__, value)
