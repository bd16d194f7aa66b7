"""Annotated source run in a process of its own: does it hold, and give the same bits?"""
