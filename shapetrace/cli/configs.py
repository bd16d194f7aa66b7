"""``shapetrace configs``: the presets."""


def configs() -> None:
    """List the presets that --config knows, with their sizes.

    \b
    Example:
      shapetrace configs
    """  # noqa: D301 - \b keeps the examples' lines apart
    from shapetrace import api  # noqa: PLC0415 - see forward
    from shapetrace.cli.output import write  # noqa: PLC0415

    write(api.configs(), None)
