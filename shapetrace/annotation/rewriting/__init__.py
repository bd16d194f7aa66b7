"""A plan into source, by LibCST: signatures, imports, dimension names, layout."""
