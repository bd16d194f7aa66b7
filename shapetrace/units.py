"""Numbers for people: bytes in KiB/MiB/GiB, FLOPs and counts with SI prefixes, seconds."""

from __future__ import annotations

FLOP_CONVENTION = "one multiply-add is 2 FLOPs; a causal mask is not discounted"


def format_bytes(count: int) -> str:
    """Bytes with a binary prefix and three significant digits: ``49.8 MiB``."""
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def format_flops(count: int) -> str:
    """FLOPs with an SI prefix: ``64.5 GFLOP``; zero is ``0``."""
    if count == 0:
        return "0"
    return _scaled(count, 1000, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"))


def format_count(count: int) -> str:
    """A count with thousands separators: ``124,439,808``."""
    return f"{count:,}"


def format_seconds(seconds: float) -> str:
    """A duration in the unit that keeps it readable: ``1.53 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _scaled(count: int, base: int, units: tuple[str, ...]) -> str:
    value, rank = float(count), 0
    while rank < len(units) - 1 and abs(value) >= base - 0.5:
        value /= base
        rank += 1
    digits = f"{value:.0f}" if rank == 0 or abs(value) >= 99.95 else f"{value:.3g}"  # noqa: PLR2004
    return f"{digits} {units[rank]}"
