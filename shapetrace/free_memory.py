"""How much memory can still be had."""

from __future__ import annotations

from pathlib import Path


def free_memory() -> int | None:
    """Bytes of main memory that can still be had; None where the system does not say."""
    known = [size for size in (_free_of_machine(), free_of_group()) if size is not None]
    return min(known, default=None)


def _free_of_machine() -> int | None:
    """Linux's own estimate of what can be had without swapping."""
    for line in _lines(Path("/proc/meminfo")):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def free_of_group(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a container's limit leaves; file caches count as free."""
    limit, used = (_lines(group / name) for name in ("memory.max", "memory.current"))
    if not limit or not used or limit[0] == "max":
        return None
    cached = [line.split()[1] for line in _lines(group / "memory.stat") if line.startswith("file ")]
    return max(0, int(limit[0]) - int(used[0]) + sum(map(int, cached)))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
