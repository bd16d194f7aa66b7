"""What a run left behind, as plain data: no tensor, no module, no torch.

A `Trace` holds tables of frozen records. One clock (`at`, a counter of events) orders
them all: the operators that ran for a statement are those with ``since < op.at <= at``
of the tensor that the statement made, calls inside the statement included.

Records refer to each other by index into the trace's tables, so a trace can be saved,
loaded, and sent elsewhere as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from shapetrace.dims import Declaration, Dim

FORMAT_VERSION = 1
"""Version of the saved form; see `trace/storage.py` for each version's story."""

Shape = tuple[int, ...]
RecordKind = Literal["argument", "local", "attribute", "return"]
ScopeKind = Literal["module", "function"]
Phase = Literal["forward", "backward"]
OriginKind = Literal["local", "argument", "attribute", "setting", "constructor", "parts"]
StorageKind = Literal["parameter", "buffer", "input", "activation", "gradient", "state"]


@dataclass(frozen=True, slots=True)
class Site:
    """One place in the source where a value is bound.

    Attributes:
        file: Path of the source file.
        line: Line of the statement, 1-based.
        function: Qualified name of the function: ``Attention.forward``.
        name: The variable, parameter, attribute (``self.cache``), or ``return``.
        kind: What the place is.
        internal: Whether the code is torch's own (``nn.Linear.forward``) and not the user's.
    """

    file: str
    line: int
    function: str
    name: str
    kind: RecordKind
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """One CALL of a module or function (a module used twice has two scopes).

    Attributes:
        parent: Index of the calling scope; None for the root, scope 0.
        path: Dotted path of the module in the traced model (``blocks.0.attention``), with
            ``()`` parts for functions called from it: ``blocks.0.attention.rotate()``. The
            root's path is empty.
        kind: Module or function.
        type_name: Class of the module, or qualified name of the function.
        file: Source file of the code that ran; empty when it has none.
        line: First line of that code.
        start: Clock at entry.
        end: Clock at exit.
        failed: Whether the call ended by raising.
    """

    parent: int | None
    path: str
    kind: ScopeKind
    type_name: str
    file: str
    line: int
    start: int
    end: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One named value in a scope: an argument, a variable after an assignment, a return.

    Attributes:
        site: Index into `Trace.sites`.
        scope: Index into `Trace.scopes`.
        element: Place inside a container value: ``[0]``, ``['mask']``, ``.logits``; else empty.
        since: Clock when the statement that made the value began.
        at: Clock when the value was recorded.
        shape: Sizes.
        dtype: Torch's name without the prefix: ``float32``.
        device: ``cpu``, ``cuda:0``, ``meta``.
        nbytes: Bytes of this tensor's elements (a view's own, not its storage's).
        storage: Index into `Trace.storages`; None where torch keeps none (sparse, ...).
        requires_grad: Whether autograd follows it.
        layout: Torch's layout when not strided: ``sparse_coo``, ``jagged``, ...
        declared: Its annotation, if the source has one.
        holds: Jaxtyping's verdict on the annotation; None when it was not checked.
        dims: A meaning per axis; None before naming.
    """

    site: int
    scope: int
    since: int
    at: int
    shape: Shape
    dtype: str
    device: str
    nbytes: int
    storage: int | None
    element: str = ""
    requires_grad: bool = False
    layout: str = ""
    declared: Declaration | None = None
    holds: bool | None = None
    dims: tuple[Dim, ...] | None = None


@dataclass(frozen=True, slots=True)
class OpRecord:
    """One operator that ran.

    Attributes:
        name: Namespace, name and overload: ``aten.addmm.default``.
        scope: Index of the innermost scope that ran it.
        at: Clock.
        inputs: Shape of each tensor argument, in order (lists flattened); None for an
            optional tensor argument that was not given.
        outputs: Shape of each tensor result.
        dtype: Dtype of the first result (of the first input when there is none).
        attributes: The few non-tensor arguments that a formula needs: name and value pairs.
        phase: Forward, or backward (recomputation under checkpointing is backward).
        nbytes: Bytes of new storage that it allocated.
        saw: Data-dependent value reads and the like, in words; else empty.
    """

    name: str
    scope: int
    at: int
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape, ...]
    dtype: str
    attributes: tuple[tuple[str, int | float | bool | str | Shape], ...] = ()
    phase: Phase = "forward"
    nbytes: int = 0
    saw: str = ""


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """One block of memory, shared by every view of it.

    Attributes:
        nbytes: Its size in bytes.
        kind: What it holds.
        device: Where it lies.
        born: Clock of its allocation; 0 for what was there before the run.
        died: Clock of its release; None when it outlived the run.
    """

    nbytes: int
    kind: StorageKind
    device: str
    born: int
    died: int | None = None


@dataclass(frozen=True, slots=True)
class ParameterRecord:
    """One parameter or buffer of the traced model.

    Attributes:
        path: Its dotted name; a tied tensor has one record per name.
        shape: Sizes.
        dtype: ``float32``, ...
        nbytes: Bytes.
        storage: Index into `Trace.storages`; equal for tied tensors.
        trainable: Whether it requires a gradient.
        buffer: Whether it is a buffer and not a parameter.
        dims: A meaning per axis; None before naming.
        gradient: Index into `Trace.storages` of its gradient; None where there was none.
        offset: Elements before it in its storage: parameters that are parts of one flat
            storage are told apart by it, tied ones are not.
    """

    path: str
    shape: Shape
    dtype: str
    nbytes: int
    storage: int
    trainable: bool = True
    buffer: bool = False
    dims: tuple[Dim, ...] | None = None
    gradient: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """What the size of an axis comes from, one step back.

    Attributes:
        text: What has the size there: ``memory``, ``self.heads``, ``longest``.
        kind: What that is; a setting is an argument of a module's constructor; parts are
            several, in words.
        axes: Which of its axes; none for a number.
        file: Where it was made; empty when unknown.
        line: The line there.
        source: What is written there for a setting: ``16 * 5 * 5``.
    """

    text: str
    kind: OriginKind
    axes: tuple[int, ...] = ()
    file: str = ""
    line: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Operand:
    """One value that went into the expression that failed.

    Attributes:
        text: Its expression as written (``hidden``, ``self.proj.weight``), or what it is.
        role: What it is to the operation: a parameter's name or position (``input``,
            ``weight``, ``0``), ``self`` for a method's tensor.
        shape: Sizes; None for a value that is no tensor.
        dtype: Dtype of a tensor.
        device: Its device.
        storage: Index into `Trace.storages`; None when the trace has not met it.
        value: A value that is no tensor, in words; for an index tensor its range.
        file: Where the module that holds it was made; empty when unknown.
        line: The line there.
        origins: For each axis what its size comes from, nearest first, as far as trying other
            sizes showed it; of a number, its own.
    """

    text: str
    role: str = ""
    shape: Shape | None = None
    dtype: str = ""
    device: str = ""
    storage: int | None = None
    value: str = ""
    file: str = ""
    line: int = 0
    origins: tuple[tuple[Origin, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception that ended the run.

    Attributes:
        type_name: Its class.
        message: Its text.
        scope: Index of the innermost scope that was running.
        file: Source file of the statement that failed, in traced code.
        line: Its line.
        at: Clock.
        statement: That statement's source.
        expression: The part of it that failed.
        operation: What the part does: ``@``, ``cat``, ``view``, or a module's class.
        operator: The operator that raised, where torch got so far: ``aten.mm.default``.
        operands: What went into it.
        callers: Calls that led there, outermost first: file, line and source of each.
        raised: The innermost line, where it lies in a library below that statement.
        fixes: What would let the expression run, of what was tried on weightless tensors.
    """

    type_name: str
    message: str
    scope: int
    file: str
    line: int
    at: int
    statement: str = ""
    expression: str = ""
    operation: str = ""
    operator: str = ""
    operands: tuple[Operand, ...] = ()
    callers: tuple[tuple[str, int, str], ...] = ()
    raised: tuple[str, int, str] | None = None
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """Stretches that are left out, because they lie on the line between two that are kept.

    The clocks from `start` on are one kept stretch of `stride` clocks, directly followed by
    the other; between them lie `times` more that `trace.folds.expand` puts back.

    Attributes:
        start: Clock at which the first kept stretch begins.
        stride: Clocks in each.
        times: How many are left out.
    """

    start: int
    stride: int
    times: int


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything recorded of one run.

    Attributes:
        target: What was traced, for people: ``Decoder``, ``transformers GPT2LMHeadModel``.
        config: The target's configuration, name and value pairs; empty when unknown.
        sizes: The sizes of the input's named axes: ``B``, ``n``, ...
        sites: Places in the source.
        scopes: Calls, in order of entry; scope 0 is the whole run.
        tensors: Named values, in order.
        ops: Operators, in order.
        storages: Blocks of memory.
        parameters: The model's parameters and buffers.
        tokens: The text's tokens and ids, one tuple of pairs per sequence.
        notes: What could not be seen or had to be approximated, one line each.
        failure: How the run failed; None when it did not.
        wall_time: Seconds that the recorded run took.
        environment: Versions and devices, name and value pairs.
        folds: Stretches that are left out of the tables.
        format_version: Version of the saved form.
    """

    target: str
    config: tuple[tuple[str, int | float | bool | str | None], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    sites: tuple[Site, ...] = ()
    scopes: tuple[Scope, ...] = ()
    tensors: tuple[TensorRecord, ...] = ()
    ops: tuple[OpRecord, ...] = ()
    storages: tuple[StorageRecord, ...] = ()
    parameters: tuple[ParameterRecord, ...] = ()
    tokens: tuple[tuple[tuple[str, int], ...], ...] = ()
    notes: tuple[str, ...] = ()
    failure: Failure | None = None
    wall_time: float = 0.0
    environment: tuple[tuple[str, str], ...] = ()
    folds: tuple[Fold, ...] = ()
    format_version: int = field(default=FORMAT_VERSION)
