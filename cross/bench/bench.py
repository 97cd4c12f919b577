"""A board on a bench, by labgrid: its power, its console, its files. Each failure is one sentence
that says what to do, and each wait ends."""

import base64
import gzip
import re
import shlex
import time
from pathlib import Path

from labgrid.binding import BindingState
from labgrid.driver import ShellDriver, SSHDriver
from labgrid.driver.exception import ExecutionError
from labgrid.exceptions import NoDriverFoundError, NoResourceFoundError
from labgrid.protocol import ConsoleProtocol, PowerProtocol
from pexpect import EOF, TIMEOUT

# A console's last words are shown so far.
SHOWN_BYTES = 300
# busybox's shell edits lines of 1024 bytes at most; the command is around it.
CHUNK_BYTES = 700
# Of a console's text, this part may be no text: a boot loader prints some.
GARBAGE_PART = 0.2
# The shell answers `echo` so fast, on a board that is busy, too.
ANSWER_S = 10
SYNC_S = 30
BY_HAND = "does `ssh` to the address of the environment file work by hand, with no password?"
# Old bytes of a console are read for so long at most.
FORGET_S = 2


class BoardError(AssertionError):
    """The bench or the board, not the software under test. Its text says what to do."""


class Bench:
    """One target of labgrid's environment."""

    def __init__(self, target, options):
        self.target = target
        # Limits in seconds.
        self.login_s = int(options.get("login_limit_s", 120))
        self.run_s = int(options.get("run_limit_s", 3600))
        # Where the programs are: in the image already, or a file here that is copied.
        self.programs = options.get("programs", "copy")
        self.folder = options.get("folder", "/tmp/contigo-hil")
        self.root = options.get("root", "")
        self.arguments = shlex.split(options.get("arguments", ""))
        # Between off and on: capacitors.
        self.off_s = float(options.get("off_s", 5))

    def _driver(self, protocol):
        try:
            return self.target.get_driver(protocol)
        except NoResourceFoundError as error:
            raise BoardError(
                f"a part of the bench is not on this machine: {error}; is it plugged in, and is its path in the "
                "environment file right?"
            ) from error

    @property
    def power(self):
        return self._driver(PowerProtocol)

    @property
    def console(self):
        return self._driver(ConsoleProtocol)

    @property
    def shell(self):
        return self.target.get_driver(ShellDriver, activate=False)

    @property
    def ssh(self):
        """The network, where the environment has one."""
        try:
            return self.target.get_driver(SSHDriver)
        except NoDriverFoundError:
            return None
        except Exception as error:  # labgrid's own for a board that refuses is no class of its own
            raise BoardError(f"no ssh: {error}; {BY_HAND}") from error

    def power_on(self):
        """Off and on again, so that nothing is left from before: not in the console either."""
        self.power_off()
        time.sleep(self.off_s)
        self._forget()
        self._powered(self.power.on)

    def _forget(self):
        console = self.console
        console._expect = type(console._expect)(console)  # pylint: disable=protected-access
        end = time.monotonic() + FORGET_S
        # A line that never stops is for the login to judge.
        while time.monotonic() < end:
            try:
                console.read(size=4096, timeout=0.1)
            except (TIMEOUT, EOF, OSError, AttributeError):
                return

    def power_off(self):
        # A card's file system is mounted. A board that hangs does not answer, and is cut off.
        if self.shell.state is BindingState.active:
            try:
                self.run("sync", SYNC_S)
            except (BoardError, ExecutionError):
                pass
        self.target.deactivate(self.shell)
        self._powered(self.power.off)

    def _powered(self, action):
        try:
            action()
        except Exception as error:  # each power driver has errors of its own
            raise BoardError(f"the power cannot be switched: {error}; check the relay or PDU of the environment file") from error

    def login(self):
        """A shell on the console. The limit of the shell driver is the environment's."""
        shell = self.shell
        shell.login_timeout = self.login_s
        begun = time.monotonic()
        try:
            self.target.activate(shell)
        except (TIMEOUT, EOF, OSError, ExecutionError, ValueError) as error:
            raise BoardError(self._silence(error, time.monotonic() - begun)) from error

    def _silence(self, error, seconds):
        """The state of a console without a prompt, and a way out."""
        said = self._pending()
        after = f"within {seconds:.0f} s"
        if not said.strip():
            return (
                f"the board does not answer: its serial line said nothing {after}; is its power on, is the "
                "cable in the right port, does another program read the line?"
            )
        odd = sum(1 for byte in said if not (32 <= byte < 127 or byte in b"\r\n\t\x1b\x00\x08"))
        if odd > len(said) * GARBAGE_PART:
            return (
                f"the serial line prints garbage: {odd} of the last {len(said)} bytes are no text. Set `speed` of the "
                "environment file to the board's baud rate, and look at the cable's ground"
            )
        tail = said[-SHOWN_BYTES:].decode("ascii", "replace").strip()
        return (
            f"the board prints text and no prompt came {after} ({type(error).__name__}); compare `prompt` and "
            f"`login_prompt` of the environment file with its last words: {tail!r}"
        )

    def _pending(self):
        """The bytes that no call has returned yet: pexpect keeps those without a match."""
        console = self.console
        expected = getattr(console, "_expect", None)
        kept = getattr(expected, "before", None) or getattr(expected, "buffer", b"")
        kept = kept if isinstance(kept, bytes) else b""
        try:
            kept += console.read(size=4096, timeout=1)
        except (TIMEOUT, EOF, OSError):
            pass
        return kept[-4096:]

    def run(self, command, limit_s=30):
        """Lines and exit status of a command."""
        try:
            lines, _, status = self.shell.run(command, timeout=limit_s)
        except (TIMEOUT, EOF, OSError) as error:
            raise BoardError(
                f"the board did not end `{command[:80]}` within {limit_s} s; it may hang: reset it, and read the console's log"
            ) from error
        return lines, status

    def check(self, command, limit_s=30):
        lines, status = self.run(command, limit_s)
        assert status == 0, f"`{command}` ended with {status}: " + "\n".join(lines[-20:])
        return lines

    def answers(self, limit_s=ANSWER_S):
        """Does the shell still answer?"""
        mark = f"{time.monotonic_ns()}"
        self.console.sendline(f"echo '{mark[:4]}''{mark[4:]}'")
        try:
            self.console.expect(mark, timeout=limit_s)
        except TIMEOUT:
            return False
        self.console.expect(self.shell.prompt, timeout=limit_s)
        return True

    def boot_id(self):
        """The kernel makes a new one at each start."""
        return self.check("cat /proc/sys/kernel/random/boot_id")[-1].strip()

    def reset(self, before):
        """Power off and on, and back at a shell; `before` is the boot that must be over."""
        self.power_on()
        self.login()
        if self.boot_id() == before:
            raise BoardError(
                "the reset did nothing: the kernel has the boot id from before; is the board on that relay's "
                "output, and does nothing else feed it (USB, a debugger)?"
            )

    def put(self, content, place):
        """A file onto the board: by the network, else by the console, packed and in lines."""
        name = shlex.quote(place)
        if self.ssh is not None:
            self._by_network(content, place)
        else:
            self.check(f"mkdir -p {shlex.quote(str(Path(place).parent))} && : > {name}.b64")
            text = base64.b64encode(gzip.compress(content, mtime=0)).decode()
            for at in range(0, len(text), CHUNK_BYTES):
                self.check(f"printf %s {text[at : at + CHUNK_BYTES]} >> {name}.b64")
            self.check(f"base64 -d {name}.b64 | gunzip > {name} && rm {name}.b64", limit_s=120)
        lines = self.check(f"wc -c < {name}")
        assert int(lines[-1]) == len(content), f"{place}: {lines[-1]} bytes arrived of {len(content)}"

    def _by_network(self, content, place):
        import tempfile

        self.check(f"mkdir -p {shlex.quote(str(Path(place).parent))}")
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            Path(file.name).chmod(0o755)
            try:
                self.ssh.put(file.name, place)
            except ExecutionError as error:
                raise BoardError(f"scp failed: {error}; {BY_HAND}") from error

    def get(self, place):
        """A file of the board's."""
        lines = self.check(f"gzip -c {shlex.quote(place)} | base64", limit_s=600)
        text = "".join(lines)
        assert re.fullmatch(r"[A-Za-z0-9+/=]*", text), f"{place}: the console put other words into the file"
        return gzip.decompress(base64.b64decode(text))
