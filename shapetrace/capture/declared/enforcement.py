"""Which functions check their own annotations when they are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType

from shapetrace.capture.declared.namespaces import living_function
from shapetrace.capture.declared.shaped import speaks_of_shape
from shapetrace.capture.source.live_functions import living_functions
from shapetrace.capture.source.registry import REGISTRY
from shapetrace.records.signature import Enforcement, Signature

_CHECKERS = ("/beartype/", "/typeguard/", "<@beartype")
"""Where the wrappers of type checkers have their code."""


def annotated_functions(
    called: Iterable[int], functions: Mapping[str, Sequence[FunctionType]]
) -> tuple[Signature, ...]:
    """The functions of a run whose signature has jaxtyping annotations.

    Args:
        called: Numbers of the functions that were called.
        functions: The functions that were looked into, by file.
    """
    wrappers = _wrappers()
    return tuple(_signatures(sorted(called), functions, wrappers))


def _signatures(
    called: Iterable[int],
    functions: Mapping[str, Sequence[FunctionType]],
    wrappers: Mapping[int, FunctionType],
) -> Iterator[Signature]:
    for number in called:
        site = REGISTRY.functions[number]
        function = living_function(site, functions)
        if function is None or site.internal:
            continue
        names = tuple(_annotated(function))
        if names:
            enforced = _enforcement(function, wrappers)
            yield Signature(site.file, site.line, site.qualname, names, enforced)


def _annotated(function: FunctionType) -> Iterator[str]:
    """The parameters with a jaxtyping annotation, and ``return``."""
    for name, annotation in function.__annotations__.items():
        value = annotation
        if isinstance(annotation, str):
            try:
                value = eval(annotation, function.__globals__)  # noqa: S307 - its own annotation
            except Exception:  # noqa: BLE001, S112 - a finding of its own elsewhere
                continue
        if speaks_of_shape(value):
            yield name


def checkers() -> Iterator[tuple[FunctionType, FunctionType]]:
    """Wrappers that check annotations, each with the function that it calls."""
    return ((wrapper, inner) for inner, wrapper in _pairs() if _is_checker(wrapper))


def _is_checker(wrapper: FunctionType) -> bool:
    place = wrapper.__code__.co_filename
    if any(checker in place for checker in _CHECKERS):
        return True
    # made with a type checker
    return "/jaxtyping/" in place and "param_signature" in wrapper.__code__.co_freevars


def _wrappers() -> dict[int, FunctionType]:
    """Wrappers by the identity of what they wrap."""
    return {id(inner): wrapper for inner, wrapper in _pairs()}


def _pairs() -> Iterator[tuple[FunctionType, FunctionType]]:
    """Functions, each with a wrapper of it."""
    for function in living_functions():
        wrapped = function.__dict__.get("__wrapped__")
        if isinstance(wrapped, FunctionType):
            yield wrapped, function


def _enforcement(function: FunctionType, wrappers: Mapping[int, FunctionType]) -> Enforcement:
    inside, bare = function, False
    while (wrapper := wrappers.get(id(inside))) is not None:
        if _is_checker(wrapper):
            return "checked"
        if "/jaxtyping/" in wrapper.__code__.co_filename:
            bare = True
        inside = wrapper
    return "unchecked" if bare else "none"
