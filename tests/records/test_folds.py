"""What a fold leaves out comes back exactly."""

from dataclasses import replace

from shapetrace.records.folds import expand, steps_of
from shapetrace.records.storage import dumps, loads
from shapetrace.records.trace import (
    Fold,
    OpRecord,
    Scope,
    Site,
    StorageRecord,
    TensorRecord,
    Trace,
)

STRIDE = 4


def whole(steps, *, tail=True):
    """A run of equal steps: each makes a tensor one longer, freed in the step after it."""
    end = 2 + steps * STRIDE + 2
    scopes = [Scope(None, "", "function", "run", "", 0, 0, end)]
    tensors, ops, storages = [], [], []
    ops.append(OpRecord("aten.zeros.default", 0, 1, (), ((1,),), "float32", nbytes=4))
    storages.append(StorageRecord(4, "activation", "cpu", 1, 2 + 2))
    for step in range(steps):
        start = 2 + step * STRIDE
        scopes.append(Scope(0, "step()", "function", "step", "f.py", 3, start, start + 3))
        number, size = len(scopes) - 1, 5 + 3 * step
        attributes = (("dim", 0), ("size", (size,)), ("scale", 0.5))
        ops.append(
            OpRecord(
                "aten.cat.default", number, start + 1, ((size - 3,), None), ((size,),), "float32",
                attributes, nbytes=4 * size,
            )
        )  # fmt: skip
        storages.append(StorageRecord(4 * size, "activation", "cpu", start + 1, start + STRIDE + 2))
        # The tensor of the step before is looked at, then the new one.
        tensors.append(
            TensorRecord(0, number, start, start + 1, (size - 3,), "float32", "cpu", 4, step)
        )
        tensors.append(
            TensorRecord(
                1, number, start + 1, start + 3, (size,), "float32", "cpu", 4 * size, step + 1
            )
        )
    if tail:
        after = 2 + steps * STRIDE
        ops.append(OpRecord("aten.sum.default", 0, after + 1, ((9,),), ((),), "float32", nbytes=4))
        storages.append(StorageRecord(4, "activation", "cpu", after + 1, None))
        tensors.append(
            TensorRecord(2, 0, after, after + 1, (), "float32", "cpu", 4, len(storages) - 1)
        )
    sites = tuple(Site("f.py", n, "step", name, "local") for n, name in enumerate("abc"))
    return Trace("run", (), (), sites, tuple(scopes), tuple(tensors), tuple(ops), tuple(storages))


def folded(steps):
    """The same with the steps between the first and the last left out, written by hand."""
    two = whole(2)
    grow = steps - 1  # how much the last step is ahead of the first

    def sized(shape):
        return tuple(size + 3 * (grow - 1) for size in shape)

    tensors = [
        replace(t, shape=sized(t.shape), nbytes=t.nbytes + (12 * (grow - 1) if t.site else 0))
        if t.scope == 2
        else t
        for t in two.tensors
    ]
    ops = [
        replace(
            op,
            inputs=(sized(op.inputs[0]), None),
            outputs=(sized(op.outputs[0]),),
            attributes=(("dim", 0), ("size", sized(op.outputs[0])), ("scale", 0.5)),
            nbytes=op.nbytes + 12 * (grow - 1),
        )
        if op.scope == 2
        else op
        for op in two.ops
    ]
    storages = [
        replace(s, nbytes=s.nbytes + 12 * (grow - 1)) if number == 2 else s
        for number, s in enumerate(two.storages)
    ]
    return replace(
        two,
        tensors=tuple(tensors),
        ops=tuple(ops),
        storages=tuple(storages),
        folds=(Fold(2, STRIDE, steps - 2),),
    )


def test_what_was_left_out_comes_back():
    for steps in (3, 4, 9):
        assert expand(folded(steps)) == whole(steps)


def test_a_trace_without_folds_is_itself():
    trace = whole(3)
    assert expand(trace) is trace


def test_one_step_s_operators_alone():
    trace = folded(9)
    (fold,) = trace.folds
    steps = steps_of(trace, fold)
    wanted = [op for op in whole(9).ops if op.name == "aten.cat.default"]
    for number, op in enumerate(wanted):
        (got,) = steps.ops(trace, number)
        assert got.outputs == op.outputs
        assert got.inputs == op.inputs
        assert got.nbytes == op.nbytes


def test_a_folded_trace_is_saved_as_it_is():
    trace = folded(1000)
    data = dumps(trace)
    assert loads(data) == trace
    assert len(data) < 2000
