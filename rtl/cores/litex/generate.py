"""Makes LiteX's DMA as a core in Verilog, into the folder given: dma.v, the same each time.

LiteX's WishboneDMAReader reads words, a FIFO holds them, and its WishboneDMAWriter writes them.
Their registers are behind AXI-Lite: the reader's at 0x000, the writer's at 0x800. Each of the two
has an AXI-Lite master of its own; the reader has the channels AR and R, the writer AW, W and B.
"""

import pathlib
import sys

from litex.gen import LiteXModule
from litex.gen.fhdl.verilog import convert
from litex.soc.cores.dma import WishboneDMAReader, WishboneDMAWriter
from litex.soc.interconnect import axi, csr_bus, stream, wishbone
from migen import ClockDomain, Signal

# Words in the FIFO, and as many in the reader's own.
FIFO_WORDS = 16
# The words between the registers of two parts: LiteX's pages of 2 KiB.
PAGES = {"reader": 0, "writer": 1}


class Dma(LiteXModule):
    """The reader, the FIFO, the writer, and their ports: `ios`."""

    def __init__(self):
        self.clock_domains.cd_sys = ClockDomain("sys")
        self.ios = {self.cd_sys.clk, self.cd_sys.rst}
        buses = [wishbone.Interface(data_width=32, adr_width=30, addressing="word") for _ in range(2)]
        self.submodules.reader = WishboneDMAReader(buses[0], with_csr=True, fifo_depth=FIFO_WORDS)
        self.submodules.writer = WishboneDMAWriter(buses[1], with_csr=True)
        self.submodules.fifo = stream.SyncFIFO([("data", 32)], FIFO_WORDS)
        self.comb += [self.reader.source.connect(self.fifo.sink), self.fifo.source.connect(self.writer.sink)]

        # One of the two is at work, as their registers say.
        self.busy = Signal(name_override="busy")
        self.comb += self.busy.eq((self.reader.enable & ~self.reader.done) | (self.writer.enable & ~self.writer.done))
        self.ios.add(self.busy)

        registers = axi.AXILiteInterface(data_width=32, address_width=32)
        csr = csr_bus.Interface(data_width=32, address_width=14)
        self.submodules.bridge = axi.AXILite2CSR(registers, csr)
        self.submodules.banks = csr_bus.CSRBankArray(self, lambda name, memory: PAGES[name], data_width=32, address_width=14)
        self.submodules.interconnect = csr_bus.Interconnect(csr, self.banks.get_buses())
        self.wire("s_axil", registers, "aw w b ar r")
        for bus, channels in zip(buses, ("ar r", "aw w b")):
            master = axi.AXILiteInterface(data_width=32, address_width=32)
            self.submodules += axi.Wishbone2AXILite(bus, master)
            self.wire("m", master, channels)

    def wire(self, prefix, bus, channels):
        """These channels are ports, with names."""
        for channel in channels.split():
            record = getattr(bus, channel)
            for field in ("valid", "ready", "addr", "data", "strb", "resp"):
                signal = getattr(record, field, None)
                if signal is not None:
                    signal.name_override = f"{prefix}_{channel}{field}"
                    self.ios.add(signal)


def main(folder):
    dma = Dma()
    text = str(convert(dma, dma.ios, name="litex_dma"))
    # The header has the day.
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("//")]
    (folder / "dma.v").write_text("\n".join(lines) + "\n")


main(pathlib.Path(sys.argv[1]))
