"""``shapetrace configs``: the presets."""

from shapetrace.cli.output import canvas, write

_COLUMNS = ("kind", "layers", "d_model", "h", "h_kv", "d_k", "d_ff", "vocab_size", "positions")
_DROPPED_FIRST = ("d_k", "positions", "kind")


def configs() -> None:
    """List the presets.

    Each is a name for --config, here with its sizes.

    \b
    Example:
      shapetrace configs

    Exits with 0 when all is well, 2 for bad input.
    """  # noqa: D301 - \b keeps the example's line apart
    from shapetrace import api  # noqa: PLC0415 - slow, and help needs none

    fields = {name: config.to_dict() for name, config in api.configs().items()}
    columns = [["config", *fields]]
    columns += [[key, *(str(values[key]) for values in fields.values())] for key in _COLUMNS]
    write(_grid(columns, canvas(None).width), None)


def _grid(columns: list[list[str]], width: int | None) -> str:
    """Columns side by side; the least telling ones go where the screen is narrow."""
    for key in _DROPPED_FIRST:
        if width is None or sum(_width(column) + 2 for column in columns) - 2 <= width:
            break
        columns = [column for column in columns if column[0] != key]
    padded = [[cell.ljust(_width(column)) for cell in column] for column in columns]
    lines = ("  ".join(cells).rstrip() for cells in zip(*padded, strict=True))
    return "".join(f"{line}\n" for line in lines)


def _width(column: list[str]) -> int:
    return max(map(len, column))
