"""labgrid's drivers for the lab's boards, and for a bench in a test. An environment file imports
this."""

import json
import os
import subprocess

import attr
from labgrid.driver import Driver
from labgrid.driver.qemudriver import QEMUDriver
from labgrid.factory import target_factory
from labgrid.protocol import PowerProtocol
from labgrid.step import step

# QEMU opens its serial port in less than a second.
START_S = 30
END_S = 10


@target_factory.reg_driver
@attr.s(eq=False)
class ContigoLabDriver(QEMUDriver):
    """A board of `cargo lab`: the command line is the lab's own, which knows machines that
    QEMUDriver does not. It has a serial port and no network.

    `CONTIGO_LAB` is the folder with a folder for each board, as `cross/bench/run` makes it.
    """

    board = attr.ib(default="", validator=attr.validators.instance_of(str))
    qemu_bin = attr.ib(default="", validator=attr.validators.instance_of(str))
    machine = attr.ib(default="", validator=attr.validators.instance_of(str))
    cpu = attr.ib(default="", validator=attr.validators.instance_of(str))
    memory = attr.ib(default="", validator=attr.validators.instance_of(str))

    def get_qemu_base_args(self):
        folder = os.environ.get("CONTIGO_LAB")
        if not folder:
            raise RuntimeError("CONTIGO_LAB is not set: start this by cross/bench/run")
        with open(os.path.join(folder, self.board, "command.json"), encoding="utf-8") as file:
            argv = json.load(file)["argv"]
        # `virt` has -nodefaults, zynq-6.1 -nic none. Twice does no harm.
        network = [] if "-nodefaults" in argv or "-nic" in argv else ["-nic", "none"]
        return [*argv, *network]

    def on_activate(self):
        super().on_activate()
        self._socket.settimeout(START_S)

    def off(self):
        """As QEMUDriver's, but a QEMU that has ended by itself is off, too, and one that does not
        end is killed."""
        # Also one whose start failed half-way, where `status` is not set yet.
        if self._child is None:
            return
        try:
            if self._child.poll() is None:
                self.monitor_command("quit")
            self._child.wait(timeout=END_S)
        except Exception:  # it ends now in any case
            self._child.kill()
            self._child.wait(timeout=END_S)
        self._child = None
        self.status = 0
        if self._clientsocket is not None:
            self._clientsocket.close()
        self._clientsocket = None

    def _read(self, size=1, timeout=10, max_size=None):
        if self._clientsocket is None:
            raise OSError("the emulator is off")
        return super()._read(size, timeout, max_size)


@target_factory.reg_driver
@attr.s(eq=False)
class ContigoNoPowerDriver(Driver, PowerProtocol):
    """A relay that switches nothing: for the tests of the bench itself."""

    @step()
    def on(self):
        pass

    @step()
    def off(self):
        pass

    @step()
    def cycle(self):
        pass


@target_factory.reg_driver
@attr.s(eq=False)
class ContigoCommandPowerDriver(Driver, PowerProtocol):
    """A relay, PDU or USB hub that a program of yours switches, by two command lines."""

    switch_on = attr.ib(validator=attr.validators.instance_of(str))
    switch_off = attr.ib(validator=attr.validators.instance_of(str))
    delay_s = attr.ib(default=3, validator=attr.validators.instance_of(int))

    @step()
    def on(self):
        subprocess.run(self.switch_on, shell=True, check=True, timeout=60)

    @step()
    def off(self):
        subprocess.run(self.switch_off, shell=True, check=True, timeout=60)

    @step()
    def cycle(self):
        import time

        self.off()
        time.sleep(self.delay_s)
        self.on()
