"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

Level: TypeAlias = Annotated[
    Literal["tensors", "modules", "ops"],
    typer.Option(help="What a row is."),
]
Layers: TypeAlias = Annotated[
    Literal["fold", "all"] | None,
    typer.Option(
        help="Show equal layers once, or all. Default: fold for table and md, all for json and csv.",
        show_default=False,
    ),
]
Lang: TypeAlias = Annotated[
    Literal["en", "zh"],
    typer.Option(help="Language of headings and meanings."),
]
Format: TypeAlias = Annotated[
    Literal["table", "json", "csv", "md"] | None,
    typer.Option(
        help="Default: by the suffix of -o, else table.",
        show_default=False,
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to this file, whole or not at all."),
]
