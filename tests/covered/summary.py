"""What the coverage tests found, as a table: ``python -m tests.covered.summary [name...]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from _pytest.outcomes import Skipped

from tests.covered.odd_cases import ODD
from tests.covered.package_cases import PACKAGES
from tests.covered.study import EVIDENCE, Study, study
from tests.covered.transformer_cases import FAMILIES

HEAD = (
    "model",
    "records",
    "by evidence",
    "by attribute",
    "guessed",
    "by number",
    "FLOPs",
    "counted independently",
)
Row = tuple[str, ...]


def row(seen: Study) -> Row:
    """One model's line."""
    shares = (seen.share(*EVIDENCE), seen.share("attribute"), seen.share("guess"))
    unknown = seen.share("unknown")
    return (
        seen.case.name,
        str(len(seen.records)),
        *(f"{share:.1%}" for share in (*shares, unknown)),
        f"{seen.flops:,}",
        "equal" if seen.counted == seen.flops else f"{seen.counted:,}",
    )


def table(rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [HEAD, ("---", *("---:",) * (len(HEAD) - 1)), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(names: Sequence[str]) -> None:
    """Print the table of some cases, or of all."""
    rows = []
    for case in (*FAMILIES, *PACKAGES, *ODD):
        if not names or case.name in names:
            try:
                rows.append(row(study(case)))
            except Skipped as reason:
                print(f"{case.name}: {reason}", file=sys.stderr)
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
