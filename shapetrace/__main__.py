"""``python -m shapetrace``, and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from shapetrace.cli import app  # noqa: PLC0415

    app()


if __name__ == "__main__":
    main()
