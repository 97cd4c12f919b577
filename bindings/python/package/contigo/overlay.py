"""The cores of a block design, by the names that they have in Vivado."""

from __future__ import annotations

import os
import warnings

from . import _contigo
from .channels import Dma, Dmac, Mcdma, Vdma
from .cores import Core, Driven, Hls, close_all
from .errors import ArgumentError, DeviceError, NotFoundError
from .kernel import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._contigo import Path, Port, Region

#: The cores that are more than their registers, or than their jobs.
_KINDS = {"ap_ctrl": Hls, "axi_dma": Dma, "axi_dmac": Dmac, "axi_mcdma": Mcdma, "axi_vdma": Vdma}


class Overlay:
    """A block design: `contigo.Overlay("design.hwh")`, or "design.bit" with its .hwh beside it.

    Each core is an attribute by its name, and a core in a hierarchy is one of the hierarchy:
    `ol.axi_dma_0.send(buf)`, `ol.scale_0(a, b, 100)`, `ol.video.gain["GAIN"] = 3`. `ip_dict` has
    the facts of each. Addresses, ports, coherency and settings come from the file.

    It loads no bitstream. A core is opened when it is first used, as the node that
    `contigo overlay design.hwh --dtso` wrote: no root. Where the kernel reports that the fabric
    is not loaded, that raises `DeviceError`, and nothing is touched. Where the kernel does not
    report the fabric's state, there is a RuntimeWarning. By `loaded=True` the program promises that
    it is loaded, whatever the kernel reports.

    `simulated`: a core that has a model is a simulated one, on any machine. A number is the seed.
    The program promises that the design in the file is the one that is loaded.
    """

    name: str
    chip: str
    soc: str
    tool: str
    #: The facts of each core, by its path: "video/gain".
    ip_dict: dict[str, dict[str, Any]]

    def __init__(
        self,
        file: Path,
        *,
        simulated: bool | int = False,
        loaded: bool = False,
        port: Port | None = None,
    ) -> None:
        path = os.fspath(file)
        if path.endswith((".bit", ".bin")):
            path = path[:-4] + ".hwh"
        self._source = read(path)
        try:
            facts = _contigo._design(self._source)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        self.name, self.chip, self.soc, self.tool = facts["name"], facts["device"], facts["soc"], facts["tool"]
        self.ip_dict = {core["path"]: core for core in facts["cores"]}
        self._simulated = None if simulated is False else int(simulated)
        self._cores, self._looked = {}, bool(loaded)
        if port is not None:
            raise ArgumentError(f"a design has no port: each core has its own, and {self._wiring()}; another one is said with core.port")

    def _wiring(self):
        """The ports of the cores that master memory, in words."""
        told = [(path, facts["port"]) for path, facts in self.ip_dict.items() if facts["masters"]]
        words = [f"{path}'s is {port[0] if port else 'not known from the file'}" for path, port in told]
        return ", ".join(words) or "none of them masters memory"

    @property
    def fabric(self) -> str:
        """Whether a bitstream is loaded, in words."""
        return "simulated" if self._simulated is not None else _contigo._fabric()[1]

    def core(self, name: str) -> Core:
        """The core of this name or path: "video/gain" or "video_gain"."""
        for path, facts in self.ip_dict.items():
            if name in (path, facts["name"]):
                if path not in self._cores:
                    self._cores[path] = _KINDS.get(facts["driver"], Driven if facts["driver"] else Core)(self, facts)
                return self._cores[path]
        raise NotFoundError(f"{self.name} has no core {name!r}; there are: {', '.join(self.ip_dict)}")

    def memory(
        self,
        name: str | None = None,
        bytes: int | None = None,
        *,
        core: None | str | Core = None,
    ) -> Region:
        """Memory that `core` reaches: a Core or its name, or the only core that masters memory."""
        if core is None:
            masters = [path for path, facts in self.ip_dict.items() if facts["masters"]]
            if len(masters) != 1:
                raise ValueError(f"memory for which core? core=\"NAME\", one of: {', '.join(masters) or 'none masters memory'}")
            core = masters[0]
        return (core if isinstance(core, Core) else self.core(core)).memory(name, bytes)

    def _ready(self):
        """Refuses to touch a fabric that is not loaded."""
        if self._looked or self._simulated is not None:
            return
        loaded, words = _contigo._fabric()
        if loaded is False:
            hangs = "an access to a core would hang the processor, so nothing was touched"
            raise DeviceError(f"{self.name}: {words}; {hangs}; where it is loaded all the same: Overlay(…, loaded=True)")
        if loaded is None:
            warnings.warn(f"{self.name}: whether the fabric is loaded is {words}", RuntimeWarning, stacklevel=5)
        self._looked = True

    def close(self) -> None:
        """Stops the cores that were opened. So does the end of a `with`."""
        close_all(self._cores.values())

    def __enter__(self) -> Overlay:
        return self

    def __exit__(self, *exception: Any) -> bool:
        self.close()
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _below(self, "", name)

    def __dir__(self):
        return sorted({*super().__dir__(), *(path.partition("/")[0] for path in self.ip_dict)})

    def __repr__(self):
        return f"contigo.Overlay({self.name}: {', '.join(self.ip_dict)})"


def _below(overlay, folder, name):
    """The core or the hierarchy `name` in the hierarchy `folder`."""
    path = folder + name
    if path in overlay.ip_dict:
        return overlay.core(path)
    if any(other.startswith(path + "/") for other in overlay.ip_dict):
        return Hierarchy(overlay, path + "/")
    if not folder and any(facts["name"] == name for facts in overlay.ip_dict.values()):
        return overlay.core(name)
    raise AttributeError(f"{overlay.name} has no core {path!r}; there are: {', '.join(overlay.ip_dict)}")


class Hierarchy:
    """The cores of a hierarchy of the block design."""

    def __init__(self, overlay, folder):
        self._overlay, self._folder = overlay, folder

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _below(self._overlay, self._folder, name)

    def __repr__(self):
        return f"contigo.Hierarchy({self._folder[:-1]})"
