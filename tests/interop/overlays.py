"""Block designs: the cores of a `.hwh` by their names, on simulated cores."""

import asyncio
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import contigo
import numpy as np
from common import ROOT, refused

DESIGN = ROOT / "tests" / "tests" / "design" / "zynq.hwh"


def test_a_design_has_its_cores():
    ol = contigo.Overlay(DESIGN, simulated=7)
    assert (ol.name, ol.chip, ol.soc, ol.tool, ol.fabric) == ("loop", "7z020", "Zynq-7000", "2022.1", "simulated")
    assert list(ol.ip_dict) == ["axi_dma_0", "scale_0", "audio/gain", "axi_intc_0"]
    assert {"axi_dma_0", "audio", "memory"} <= set(dir(ol))
    dma = ol.ip_dict["axi_dma_0"]
    assert dma["port"] == ("zynq-hp0", 0, 32, False, 0x10_0000, 0x1FFF_FFFF) and dma["masters"][0]["port_bits"] == 64
    assert dma["windows"] == [("S_AXI_LITE", 0x4040_0000, 0x1_0000)] and dma["device"] == "contigo:axi_dma_0@40400000"
    assert [each["line"] for each in dma["interrupts"]] == [0, 1] and dict(dma["settings"])["length_bits"] == 23
    assert ol.ip_dict["scale_0"]["port"][3], "its port snoops"
    assert ol.ip_dict["scale_0"]["interrupts"][0]["controller"] == ("axi_intc_0", 2)
    assert ol.audio.gain is ol.core("audio_gain") is ol.audio_gain and repr(ol.audio) == "contigo.Hierarchy(audio)"
    refused(AttributeError, lambda: ol.nothing, "no core 'nothing'", "axi_dma_0")
    gain = ol.audio.gain
    assert gain["GAIN"] == 0, "a core without a driver is registers that remember"
    gain["GAIN"] = 3
    assert gain["GAIN"] == 3 and gain.wait("GAIN", 3) == 3
    refused(TimeoutError, lambda: gain.wait("GAIN", 4, timeout=0.01), "GAIN: the register at ")
    refused(ValueError, lambda: ol.memory(), "axi_dma_0, scale_0")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(DESIGN, Path(folder, "mine.hwh"))
        assert contigo.Overlay(Path(folder, "mine.bit")).name == "loop"
        Path(folder, "cut.hwh").write_bytes(DESIGN.read_bytes()[:9000])
        refused(ValueError, lambda: contigo.Overlay(Path(folder, "cut.bit")), "cut.hwh: line ", "the file ends before </EDKSYSTEM>")
        refused(FileNotFoundError, lambda: contigo.Overlay(Path(folder, "none.bit")), "none.hwh")
        os.mkfifo(Path(folder, "pipe.hwh"))
        with Path(folder, "long.hwh").open("wb") as long:
            long.truncate((32 << 20) + 1)
        for read in (contigo.Overlay, contigo.KernelMap):
            for odd in (Path(folder, "pipe.hwh"), "/dev/zero"):
                refused(ValueError, lambda: read(odd), f"{odd}: it is no file, but a pipe or a device")
            refused(IsADirectoryError, lambda: read(folder), folder)
            refused(ValueError, lambda: read(Path(folder, "long.hwh")), "it has 33554433 bytes, and no design")


def test_a_dma_sends_and_receives():
    with contigo.Overlay(DESIGN, simulated=7) as ol:
        dma = ol.axi_dma_0
        a, b = dma.allocate(5000, "uint8"), dma.allocate(8192, "uint8")
        for length in [1, 64, 4999]:        # no 8 KiB at least, no whole buffer
            np.asarray(a)[:length] = length % 251
            dma.recvchannel.transfer(b.writes(8192))
            assert dma.sendchannel.transfer(a.reads(length)).running
            assert dma.sendchannel.wait(1.0) is None and dma.recvchannel.wait(timeout=1.0) == length
            assert (np.asarray(b)[:length] == length % 251).all()
        refused(TimeoutError, lambda: dma.recv(b, timeout=0.02), "0.02 s; the device was stopped")
        refused(ValueError, dma.recvchannel.wait, "no transfer to wait for")
        np.asarray(b)[:] = 0                # the CPU's again
        dma.recvchannel.transfer(b)
        dma.send(a)
        assert dma.recvchannel.wait() == 5000 and dma.recvchannel.idle
        # A packet of two arrays: neither is a whole one without a word.
        dma.recvchannel.transfer(b.writes(1000))
        dma.sendchannel.transfer(a.reads(2000))
        refused(BufferError, dma.recvchannel.wait, "longer than its array", "first 1000 bytes")
        dma.sendchannel.wait()
        assert dma.recv(b) == 1000, "the rest, which is the packet's end"
        counts = dma.device.simulated
        assert counts["unowned_accesses"] == counts["stray_accesses"] == 0, counts


def test_a_kernel_is_a_function():
    with contigo.Overlay(DESIGN, simulated=7) as ol:
        scale = ol.scale_0
        assert scale.arguments == ["from_r", "to_r", "n"]
        a, b = scale.allocate(1000, "uint8"), scale.allocate(1000, "uint8")
        np.asarray(a)[:] = 9
        assert scale(a, b, 1000) == 1000 and (np.asarray(b) == 9).all(), "without more, both directions"
        scale.describe(directions={"from_r": "reads", "to_r": "writes"}, lengths={"from_r": "n", "to_r": "n"})
        assert scale(from_r=a, to_r=b, n=10) == 10 and scale.start(a, b, 20).wait().words[0] == 20
        refused(contigo.ContigoError, lambda: scale(a.reads(10), b, 20))


def test_a_kernel_of_either_protocol_has_a_model():
    with tempfile.TemporaryDirectory() as folder:
        hwh = Path(folder, "hs.hwh")
        hwh.write_text(DESIGN.read_text().replace("AP_CONTINUE", "RESERVED_4"))
        with contigo.Overlay(hwh, simulated=7) as ol:
            scale = ol.scale_0
            a, b = scale.allocate(100, "uint8"), scale.allocate(100, "uint8")
            np.asarray(a)[:] = 5
            assert scale(a, b, 100) == 100 and (np.asarray(b) == 5).all()
        hwh.write_text(DESIGN.read_text().replace("AP_START", "AP_GO"))
        refused(contigo.UnsupportedError, contigo.Overlay(hwh, simulated=7).scale_0, "has no field AP_START")


def test_another_engine_takes_jobs():
    with contigo.Overlay(DESIGN.with_name("zynqmp.hwh"), simulated=7) as ol:
        copy = ol.axi_cdma_0
        assert copy.port[0] == "zynqmp-hp2" and dict(copy.facts["settings"])["address_bits"] == 32
        a, b = copy.allocate(100, "uint8"), copy.allocate(100, "uint8")
        np.asarray(a)[:] = 3
        copy(a, b, timeout=1.0)
        assert (np.asarray(b) == 3).all() and copy.start(a.reads(10), b.writes(10)).wait().status == 0
        for job in [ol.capture.writer.driver, ol.capture.writer]:
            refused(contigo.UnsupportedError, job, "has no driver here: use its registers")
        assert "say which port it is, and whether it does" in ol.capture.writer.facts["no_port"]


def test_untold_port_is_the_programs_to_say():
    hwh = DESIGN.read_text()
    asks = next(each for each in hwh.splitlines() if "GMEM_USER_VALUE" in each)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "unsure.hwh").write_text(hwh.replace(asks + "\n", ""))
        ol = contigo.Overlay(Path(folder, "unsure.hwh"))
        assert ol.scale_0.port is None
        refused(ValueError, lambda: ol.scale_0(1, 2, 3), "does not tell whether the port snoops", "core.port = (")
        ol.scale_0.port = ("zynq-acp", 0, 32, False)
        try:
            ol.scale_0(1, 2, 3)
            raise AssertionError("there is no such core here")
        except (contigo.DeviceError, contigo.NotFoundError):
            pass


def test_what_is_not_here_is_said_and_not_touched():
    ol = contigo.Overlay(DESIGN)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if "no bitstream" in ol.fabric:
            refused(contigo.DeviceError, lambda: ol.axi_dma_0["MM2S_DMASR"], "nothing was touched")
        else:
            refused(FileNotFoundError, lambda: ol.axi_dma_0["MM2S_DMASR"], "contigo overlay FILE.hwh --dtso FILE.dtso")
            assert "unknown" not in ol.fabric or any("whether the fabric is loaded is unknown" in str(each.message) for each in said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = contigo.Overlay(DESIGN, loaded=True)
        refused(FileNotFoundError, lambda: loaded.axi_dma_0["MM2S_DMASR"], "contigo overlay FILE.hwh --dtso FILE.dtso")
    refused(FileNotFoundError, lambda: contigo.MMIO(0x4040_0000, 0x1000), "contigo:40400000")
    mmio = contigo.MMIO("sim:zdma", 0x100)
    assert mmio.read(0x110) == 0x80
    refused(ValueError, lambda: contigo.MMIO("sim:zdma", 1 << 30), "are asked for")
    device = contigo.Overlay(DESIGN, simulated=True).axi_dma_0
    try:
        asyncio.run(device.interrupt(timeout=0.01))
        raise AssertionError("no job, no interrupt")
    except (contigo.UnsupportedError, contigo.TimeoutError):
        pass


def written(folder, *cores):
    """A small design, by hand: for each core its name, its kind, and its parameters."""
    modules, windows = "", ""
    for at, (name, kind, parameters) in enumerate(cores):
        said = "".join(f'<PARAMETER NAME="{key}" VALUE="{value}"/>' for key, value in parameters.items())
        modules += f'<MODULE FULLNAME="/{name}" INSTANCE="{name}" VLNV="{kind}"><PARAMETERS>{said}</PARAMETERS></MODULE>\n'
        windows += f'<MEMRANGE BASEVALUE="{0x4040_0000 + at * 0x1_0000:#x}" HIGHVALUE="{0x4040_FFFF + at * 0x1_0000:#x}" '
        windows += f'INSTANCE="{name}" MEMTYPE="REGISTER" SLAVEBUSINTERFACE="S_AXI"/>\n'
    processor = f'<MODULE FULLNAME="/ps" INSTANCE="ps" VLNV="xilinx.com:ip:processing_system7:5.5"><MEMORYMAP>{windows}</MEMORYMAP></MODULE>'
    info = '<SYSTEMINFO ARCH="zynq" DEVICE="7z020" NAME="hand"/>'
    hwh = Path(folder, "hand.hwh")
    hwh.write_text(f'<EDKSYSTEM VIVADOVERSION="2022.1">{info}<MODULES>{modules}{processor}</MODULES></EDKSYSTEM>')
    return hwh


def untouched(core):
    counts = core.device.simulated
    assert counts["unowned_accesses"] == counts["stray_accesses"] == 0, counts


def test_an_mcdma_sends_and_receives_by_channel():
    with tempfile.TemporaryDirectory() as folder:
        parameters = {"C_NUM_MM2S_CHANNELS": 2, "C_NUM_S2MM_CHANNELS": 2}
        hwh = written(folder, ("mcdma", "xilinx.com:ip:axi_mcdma:1.1", parameters))
        with contigo.Overlay(hwh, simulated=7) as ol:
            mcdma = ol.mcdma
            assert mcdma.facts["parameters"] == {key: str(value) for key, value in parameters.items()}
            a, b = mcdma.allocate(1000, "uint8"), mcdma.allocate(4096, "uint8")
            for channel in (1, 0, 1):
                np.asarray(a)[:] = 3 + channel
                np.asarray(b)[:] = 0
                mcdma.recvchannels[channel].transfer(b)
                mcdma.send(a, channel)
                assert mcdma.recvchannels[channel].wait() == 1000
                assert (np.asarray(b)[:1000] == 3 + channel).all() and not np.asarray(b)[1000:].any()
            # Both at once: what channel 1 sends is not channel 0's.
            c = mcdma.allocate(4096, "uint8")
            mcdma.recvchannels[0].transfer(b)
            mcdma.recvchannels[1].transfer(c)
            mcdma.send(a.reads(100), 1)
            mcdma.send(a.reads(200), 0)
            assert [mcdma.recvchannels[channel].wait() for channel in (0, 1)] == [200, 100]
            refused(TimeoutError, lambda: mcdma.recv(b, timeout=0.01), "0.01 s")
            assert len(mcdma.sendchannels) == 2
            refused(contigo.ArgumentError, lambda: mcdma.send(a, 2), "mcdma.sendchannels has 2 channels, from 0, and no 2")
            untouched(mcdma)


def test_a_vdma_sends_and_receives_frames():
    with tempfile.TemporaryDirectory() as folder:
        hwh = written(folder, ("vdma", "xilinx.com:ip:axi_vdma:6.3", {"C_NUM_FSTORES": 3}))
        with contigo.Overlay(hwh, simulated=7) as ol:
            vdma = ol.vdma
            for lines, width in [(64, 64), (16, 32)]:
                a, b = (vdma.allocate((lines, width), "uint8") for _ in range(2))
                np.asarray(a)[:] = np.arange(width)
                vdma.recvchannel.transfer(b)
                vdma.send(a)
                assert vdma.recvchannel.wait() == lines * width
                assert (np.asarray(b) == np.arange(width)).all()
            vdma.recvchannel.transfer(b)
            other = vdma.allocate((8, 32), "uint8")
            refused(contigo.BufferError, lambda: vdma.recvchannel.transfer(other), "is under way", "wait for it")
            vdma.close()
            flat = vdma.allocate(64 * 64, "uint8")
            refused(contigo.ArgumentError, lambda: vdma.send(flat), "a frame has lines", "core.describe(hsize_bytes=…")
            # Lines of 32 bytes, 64 apart: a part of each.
            vdma.describe(hsize_bytes=32, vsize_lines=64, stride_bytes=64)
            np.asarray(flat)[:] = 9
            target = vdma.allocate(64 * 64, "uint8")
            np.asarray(target)[:] = 1
            vdma.recvchannel.transfer(target)
            vdma.send(flat)
            vdma.recvchannel.wait()
            seen = np.asarray(target).reshape(64, 64)
            assert (seen[:, :32] == 9).all() and (seen[:, 32:] == 1).all()
            untouched(vdma)


def test_a_dmac_is_one_direction():
    sides = {"out": ("0", "1"), "in": ("1", "0"), "both": ("0", "0")}
    cores = [(f"dmac_{name}", "analog.com:user:axi_dmac:1.0", {"DMA_TYPE_SRC": src, "DMA_TYPE_DEST": dest}) for name, (src, dest) in sides.items()]
    with tempfile.TemporaryDirectory() as folder:
        with contigo.Overlay(written(folder, *cores), simulated=7) as ol:
            out, into, both = ol.dmac_out, ol.dmac_in, ol.dmac_both
            assert out.send(out.allocate(1000, "uint8")) is None
            b = into.allocate(4096, "uint8")
            # An AXI DMAC has no report of a packet that fills its buffer.
            assert into.recv(b) is None and np.asarray(b)[4:8].view("uint32")[0] == 4096
            longer = into.allocate(8192, "uint8")
            assert into.recv(longer) == 4096
            a, b = both.allocate(100, "uint8"), both.allocate(100, "uint8")
            np.asarray(a)[:] = 6
            both(a, b)
            assert (np.asarray(b) == 6).all()
            refused(contigo.UnsupportedError, lambda: out.recv(b), "dmac_out receives nothing: as it is built it sends")
            refused(contigo.UnsupportedError, lambda: into.send(b), "dmac_in sends nothing: as it is built it receives")
            refused(contigo.UnsupportedError, lambda: both.send(b), "dmac_both sends nothing: as it is built it copies")
            for core in (out, into, both):
                untouched(core)


def test_a_transfer_without_a_wait_is_not_dropped():
    with contigo.Overlay(DESIGN, simulated=7) as ol:
        dma = ol.axi_dma_0
        a, b, c = (dma.allocate(1000, "uint8") for _ in range(3))
        np.asarray(a)[:] = 4
        dma.recvchannel.transfer(b)
        refused(contigo.BufferError, lambda: dma.recvchannel.transfer(c), "axi_dma_0.recvchannel: ", "wait for it")
        dma.send(a)
        assert dma.recvchannel.wait() == 1000 and (np.asarray(b) == 4).all(), "it is the first one still"
        dma.recvchannel.transfer(c)
        dma.send(a)
        assert dma.recvchannel.wait() == 1000
        # Nor is one whose limit was refused.
        dma.recvchannel.transfer(b)
        for wrong in [None, -1, 1e9]:
            refused((TypeError, ValueError), lambda: dma.recvchannel.wait(wrong))
        assert dma.recvchannel.running
        dma.send(a)
        while not dma.recvchannel.idle:
            pass
        refused(TypeError, lambda: dma.recvchannel.wait(None))
        assert dma.recvchannel.wait() == 1000 and not dma.recvchannel.running


def test_a_core_that_does_not_stop_leaves_none_running():
    def fails(of):
        def close():
            closed.append(of)
            raise contigo.DeviceError(of)
        return close

    closed = []
    with contigo.Overlay(DESIGN, simulated=7) as ol:
        dma, scale = ol.axi_dma_0, ol.scale_0
        channels = dma.sendchannel, dma.recvchannel
        for part, name in [*zip(channels, ["send", "recv"]), (scale, "scale")]:
            part.close = fails(name)
        refused(contigo.DeviceError, ol.close, "send")
        assert closed == ["send", "recv", "scale"], closed
        for part in (*channels, scale):
            del part.close


def test_a_port_is_a_core_s():
    words = "axi_dma_0's is zynq-hp0", "scale_0's is zynq-acp", "core.port"
    refused(contigo.ArgumentError, lambda: contigo.Overlay(DESIGN, port="zynq-hp0"), *words)
    dma = contigo.Overlay(DESIGN, simulated=7).axi_dma_0
    dma.port = "zynq-hp1"
    dma.device
    refused(contigo.ArgumentError, lambda: setattr(dma, "port", "zynq-hp2"), "axi_dma_0 is open", "before its first use")


def test_a_design_of_another_shape_is_told_whole():
    outside = '<MEMRANGE BASEVALUE="0x50000000" HIGHVALUE="0x5000FFFF" INSTANCE="M01_AXI_0" SLAVEBUSINTERFACE="M01_AXI_0"/>'
    text = DESIGN.read_text()
    at = text.index("<MEMRANGE", text.index("processing_system7:"))
    with tempfile.TemporaryDirectory() as folder:
        odd = Path(folder, "odd.hwh")
        odd.write_text(text[:at] + outside + text[at:].replace('CLKFREQUENCY="100000000"', 'CLKFREQUENCY="1e+08"'))
        ol = contigo.Overlay(odd, simulated=7)
    facts = ol.ip_dict["M01_AXI_0"]
    assert facts["outside"] and facts["windows"] == [("M01_AXI_0", 0x5000_0000, 0x1_0000)] and not facts["driver"], facts
    ol.M01_AXI_0[0x10] = 3
    assert ol.M01_AXI_0[0x10] == 3, "registers that remember"
    assert {hz for _, hz, _ in ol.ip_dict["axi_dma_0"]["clocks"]} == {100_000_000}
    streams = b"// 0x0 : Control signals\n//       bit 0  - ap_start (Read/Write/COH)\n#define XFLOW_CONTROL_ADDR_AP_CTRL 0x0\n"
    assert contigo.KernelMap(streams).arguments == [], "a kernel without a pointer has a map"


def test_a_design_s_file_is_read_once():
    with tempfile.TemporaryDirectory() as folder:
        hwh = Path(folder, "once.hwh")
        hwh.write_text(DESIGN.read_text())
        ol = contigo.Overlay(hwh, simulated=7)
        # Another file in its place is not read: the design is the one that the program opened.
        hwh.write_text("no design")
        with ol:
            a, b = ol.scale_0.allocate(100, "uint8"), ol.scale_0.allocate(100, "uint8")
            assert ol.scale_0(a, b, 100) == 100
            ol.scale_0.describe(directions={"from_r": "reads", "to_r": "writes"})
            assert ol.scale_0(a, b, 10) == 10 and ol.axi_dma_0.sendchannel.idle
