"""``python -m shapetrace``, and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    try:
        from shapetrace.cli import main as run  # noqa: PLC0415 - so that Ctrl-C is quiet here too

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
