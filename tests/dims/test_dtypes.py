import jaxtyping
import pytest
import torch

from shapetrace.dims import dtype_fits, short_dtype

CLASSES = [
    "Bool",
    "UInt",
    "Int",
    "Integer",
    "Float",
    "Complex",
    "Inexact",
    "Real",
    "Num",
    "Shaped",
    "Key",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Float8e4m3fn",
    "Float8e4m3fnuz",
    "Float8e5m2",
    "BFloat16",
    "Float16",
    "Float32",
    "Float64",
    "Complex64",
    "Complex128",
]
DTYPES = [
    dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and "q" not in str(dtype) and dtype is not torch.complex32
]


@pytest.mark.filterwarnings("ignore:.*support is experimental")  # torch's half complex types
@pytest.mark.parametrize("name", CLASSES)
def test_verdicts_are_jaxtypings(name):
    annotation = getattr(jaxtyping, name)[torch.Tensor, "..."]
    for dtype in DTYPES:
        expected = isinstance(torch.empty(2, dtype=dtype, device="meta"), annotation)
        assert dtype_fits(name, str(dtype).removeprefix("torch.")) is expected, dtype


def test_a_class_of_the_users_own_is_not_known():
    assert dtype_fits("PaddedMask", "bool") is None


def test_short_names():
    assert [
        short_dtype(x)
        for x in (
            "float32",
            "bfloat16",
            "int64",
            "uint8",
            "bool",
            "complex64",
            "float8_e4m3fn",
            "bits8",
        )
    ] == [
        "f32",
        "bf16",
        "i64",
        "u8",
        "bool",
        "c64",
        "f8_e4m3fn",
        "bits8",
    ]
