"""FLOPs by family of operators: pure functions of shapes, kept in a registry."""
