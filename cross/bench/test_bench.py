"""The bench itself, with boards that are not there: each failure ends in time, and says what to
do."""

import getpass
import os
import pty
import select
import shutil
import socket
import subprocess
import threading
import time
import tty

import pytest
from bench import Bench, BoardError
from labgrid import Environment

ENVIRONMENT = """
targets:
  main:
    resources:
      RawSerialPort:
        port: {port}
        speed: 115200
{network}
    drivers:
{ssh}
      SerialDriver: {{}}
      ContigoNoPowerDriver: {{}}
      ShellDriver:
        prompt: '# '
        login_prompt: 'login: '
        username: root
        login_timeout: {limit_s}
imports:
  - contigo_hil
"""
NETWORK = """
      NetworkService:
        address: 127.0.0.1
        port: {port}
        username: {user}
"""
SSH = """
      SSHDriver:
        keyfile: {key}
        connection_timeout: 10.0
"""
LIMIT_S = 4
# A limit, the last look at the line, and a busy machine.
PATIENCE_S = 30


class Line(threading.Thread):
    """A serial line: `work` gets its far end until the test is over."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.far, near = pty.openpty()
        tty.setraw(near)
        self.near, self.port, self.over = near, os.ttyname(near), threading.Event()
        self.work = work

    def run(self):
        self.work(self)

    def end(self):
        self.over.set()
        self.join(10)
        os.close(self.far)
        os.close(self.near)


def silence(line):
    line.over.wait()


def garbage(line):
    """As a wrong baud rate makes it: bytes that never stop."""
    while not line.over.wait(0.05):
        # Without a reader the write would block.
        if select.select([], [line.far], [], 0)[1]:
            os.write(line.far, bytes(0x80 | byte & 0x7F for byte in os.urandom(100)))


def boot_loader(line):
    while not line.over.wait(0.5):
        os.write(line.far, b"U-Boot SPL: no boot device, trying again\r\n")


def a_shell(line):
    """A board that is up: a shell of this machine's."""
    master, slave = pty.openpty()
    shell = subprocess.Popen(
        ["sh", "-i"], stdin=slave, stdout=slave, stderr=slave, env={"PS1": "# ", "PATH": os.environ["PATH"]}, start_new_session=True
    )
    os.close(slave)
    try:
        while not line.over.is_set():
            for end in select.select([line.far, master], [], [], 0.1)[0]:
                os.write(master if end == line.far else line.far, os.read(end, 4096))
    finally:
        shell.kill()
        shell.wait()
        os.close(master)


@pytest.fixture
def bench_on(tmp_path):
    """A bench on such a line."""
    lines = []

    def make(work, limit_s=LIMIT_S, network=None, **options):
        line = Line(work)
        line.start()
        lines.append(line)
        file = tmp_path / f"env{len(lines)}.yaml"
        words = {"network": "", "ssh": ""}
        if network:
            port, key = network
            words = {"network": NETWORK.format(port=port, user=getpass.getuser()), "ssh": SSH.format(key=key)}
        file.write_text(ENVIRONMENT.format(port=line.port, limit_s=limit_s, **words))
        target = Environment(str(file)).get_target("main")
        return Bench(target, {"login_limit_s": limit_s, "off_s": 0, "folder": str(tmp_path / "board"), **options})

    yield make
    for line in lines:
        line.end()


@pytest.mark.parametrize(
    "work, says",
    [
        (silence, "the board does not answer: its serial line said nothing"),
        (garbage, "the serial line prints garbage"),
        (boot_loader, "its last words: "),
    ],
)
def test_a_line_without_a_prompt_ends_in_time(bench_on, work, says):
    bench = bench_on(work)
    begun = time.monotonic()
    bench.power_on()
    with pytest.raises(BoardError) as failed:
        bench.login()
    assert says in str(failed.value)
    assert time.monotonic() - begun < PATIENCE_S


def test_a_reset_that_does_nothing_is_seen(bench_on):
    bench = bench_on(a_shell, limit_s=30)
    bench.power_on()
    bench.login()
    with pytest.raises(BoardError) as failed:
        bench.reset(bench.boot_id())
    assert "the reset did nothing" in str(failed.value)


def test_a_command_that_hangs_ends_in_time(bench_on):
    bench = bench_on(a_shell, limit_s=30)
    bench.login()
    assert bench.answers()
    begun = time.monotonic()
    with pytest.raises(BoardError) as failed:
        bench.run("sleep 60", limit_s=2)
    assert "did not end `sleep 60` within 2 s" in str(failed.value) and time.monotonic() - begun < PATIENCE_S
    assert not bench.answers(limit_s=2)


def test_files_go_over_a_line(bench_on, tmp_path):
    bench = bench_on(a_shell, limit_s=30)
    bench.login()
    content = os.urandom(5000)
    bench.put(content, f"{bench.folder}/file")
    assert (tmp_path / "board/file").read_bytes() == content
    assert bench.get(f"{bench.folder}/file") == content


def test_power_that_cannot_be_switched_is_said(bench_on):
    bench = bench_on(silence)

    def broken():
        raise OSError("no route to host")

    bench.power.on = broken
    with pytest.raises(BoardError) as failed:
        bench.power_on()
    assert "the power cannot be switched: no route to host" in str(failed.value)


def test_a_port_that_is_not_plugged_in_is_said(tmp_path):
    text = ENVIRONMENT.format(port="/dev/null", limit_s=LIMIT_S, network="", ssh="")
    text = text.replace("RawSerialPort", "USBSerialPort").replace("port: /dev/null", "match: {ID_SERIAL_SHORT: none-is-called-so}")
    path = tmp_path / "bench.yaml"
    path.write_text(text)
    with pytest.raises(BoardError) as failed:
        Bench(Environment(str(path)).get_target("main"), {"off_s": 0}).power_on()
    assert "a part of the bench is not on this machine" in str(failed.value)


@pytest.fixture
def sshd(tmp_path):
    """This machine's sshd on the loopback, with a key of its own: its port, the key."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if not program or not shutil.which("scp"):
        pytest.skip("sshd or scp is not installed here: apt install openssh-server")
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True, timeout=30)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = [
        f"ListenAddress 127.0.0.1:{port}",
        f"HostKey {tmp_path}/host",
        f"AuthorizedKeysFile {tmp_path}/key.pub",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        "PidFile none",
        "Subsystem sftp internal-sftp",
    ]
    (tmp_path / "sshd_config").write_text("\n".join(lines) + "\n")
    # As root it wants a folder that its service makes.
    if os.getuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    daemon = subprocess.Popen([program, "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=subprocess.DEVNULL)
    yield port, tmp_path / "key"
    daemon.terminate()
    daemon.wait(10)


def test_file_goes_by_network_if_possible(bench_on, sshd):
    port, key = sshd
    bench = bench_on(a_shell, limit_s=30, network=(port, key))
    bench.login()
    content = os.urandom(100_000)
    place = f"{bench.folder}/some folder/file"
    bench.put(content, place)
    assert bench.get(place) == content
    # It was scp's: the console would leave it without the right to be run.
    assert os.stat(place).st_mode & 0o111


def test_a_network_that_refuses_is_said(bench_on, sshd, tmp_path):
    port, _ = sshd
    bench = bench_on(a_shell, limit_s=30, network=(port, tmp_path / "host"))
    bench.login()
    with pytest.raises(BoardError) as failed:
        bench.put(b"nothing", f"{bench.folder}/file")
    assert "does `ssh` to the address of the environment file work by hand" in str(failed.value)
