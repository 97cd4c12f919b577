"""Each environment file names drivers and resources of labgrid, with settings that they take."""

from pathlib import Path

import attr
import pytest
from labgrid import Environment
from labgrid.factory import target_factory

FOLDER = Path(__file__).parent / "env"
FILES = sorted(FOLDER.glob("*.yaml"))
BOARDS = Path(__file__).parent.parent.parent / "boards"
OPTIONS = {
    "board", "emulated", "programs", "off_s", "login_limit_s", "run_limit_s", "arguments", "folder", "root",
}  # fmt: skip


def items(part):
    """Of a mapping, or of a list of mappings with one key."""
    if isinstance(part, dict):
        return list(part.items())
    return [pair for entry in part or [] for pair in entry.items()]


def wrong(data):
    """Everything in an environment that labgrid or these tests would not take."""
    found = []
    found += [f"options has no {key}" for key in set(data.get("options", {})) - OPTIONS]
    for name, target in data.get("targets", {}).items():
        for part, known in (("resources", target_factory.resources), ("drivers", target_factory.drivers)):
            for cls, settings in items(target.get(part)):
                if cls not in known:
                    found.append(f"{name}: labgrid has no {cls} among its {part}")
                    continue
                takes = {field.name for field in attr.fields(known[cls])} | {"name", "bindings"}
                found += [f"{name}: {cls} has no {key}" for key in set(settings or {}) - takes]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_environment_is_right(file):
    data = Environment(str(file)).config.data
    assert wrong(data) == []
    main = data["targets"]["main"]
    names = {cls for cls, _ in items(main["drivers"])}
    assert "ShellDriver" in names
    if file.stem.startswith("qemu-"):
        assert data["options"]["emulated"] and dict(items(main["drivers"]))["ContigoLabDriver"]["board"] == file.stem[5:]
    else:
        assert (BOARDS / data["options"]["board"] / "board.toml").exists()
        assert "SerialDriver" in names and any("Power" in name for name in names)
        assert "FILL-IN" in file.read_text(encoding="utf-8"), "a template has FILL-IN in the place of a bench's own values"


def test_a_wrong_environment_is_seen():
    data = {
        "targets": {"main": {"drivers": [{"ShellDriver": {"promt": "#"}}, {"RelayDriver": {}}], "resources": {"SerialPort": {}}}},
        "options": {"limit": 3},
    }
    assert len(wrong(data)) == 4, wrong(data)
