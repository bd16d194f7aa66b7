"""A wrong model for each rule, and what is said of it, to the letter."""

import pytest

X = "x:float32[B=2,n=5,6]"


def test_size_of_an_argument(texts):
    source = """
class Net(nn.Module):
    def add(self, x: Float[Tensor, "B n d"], y: Float[Tensor, "B d"]) -> Float[Tensor, "B n d"]:
        return x + y.sum()
    def forward(self, x):
        return self.add(x, x[:, :, 0])
"""
    assert texts(source, X) == [
        (
            "ST101 axis `d` is 5 in add() (argument `y`), but 6 since add() (argument `x`, FILE:8)\n"
            '  observed f32[2, 5]   annotated "B d"   FILE:8\n'
            "  fix: pass `y` with second axis 6, or correct the annotation"
        )
    ]


def test_size_that_shows_only_at_another_size_of_the_input(texts):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B 5 d"]:
        return x
"""
    (text,) = texts(source, X, select=("ST1",))
    assert text == (
        "ST101 axis `5` is 6 in Net (return value), but the annotation says 5\n"
        '  observed f32[3, 6, 6]   annotated "B 5 d"   FILE:9\n'
        "  fix: return a tensor with second axis 5, or correct the annotation\n"
        "  seen with B=3, n=6"
    )


def test_local_variable_and_rank(texts):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]):
        mean: Float[Tensor, "B d 1"] = x.mean(1)
        return mean
"""
    assert texts(source, X) == [
        (
            "ST102 2 axes in Net (local `mean`), but 3 declared\n"
            '  observed f32[2, 6]   annotated "B d 1"   FILE:9\n'
            "  fix: make `mean` with 3 axes, or correct the annotation"
        )
    ]


def test_dtype(texts):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]):
        mask: Bool[Tensor, "B n d"] = x.round()
        return mask
"""
    assert texts(source, X) == [
        (
            "ST103 dtype is float32 in Net (local `mask`), but Bool is declared\n"
            '  observed f32[2, 5, 6]   annotated "B n d"   FILE:9\n'
            "  fix: make `mask` with dtype Bool, or correct the annotation"
        )
    ]


def test_union(texts):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n"] | Int[Tensor, "B n d"]):
        return x + 1
"""
    (text,) = texts(source, X)
    assert text.startswith(
        "ST104 none of the 2 alternatives fits in Net (argument `x`)\n"
        '  Float "B n": 3 axes, but 2 declared\n'
        '  Int "B n d": dtype is float32, but Int is declared\n'
    )


def test_strings_and_variables_that_do_not_resolve(texts):
    source = """
class Net(nn.Module):
    def forward(self, x: "Flaot[Tensor, 'B n d']"):
        y: Float[Tensr, "B n d"] = x + 1
        z: Float[Tensor, "B, n d"] = x + 1
        return y + z
"""
    firsts = [text.splitlines()[0] for text in texts(source, X)]
    firsts[2] = firsts[2].replace("Axes", "Dimensions")  # jaxtyping's own words, by version
    assert firsts == [
        "ST201 the annotation cannot be evaluated in Net (argument `x`): NameError: name 'Flaot' is not defined",
        "ST201 the annotation cannot be evaluated in Net (local `y`): NameError: name 'Tensr' is not defined",
        "ST201 the annotation cannot be evaluated in Net (local `z`): ValueError: Dimensions should be separated with spaces, not commas",
    ]


def test_an_expression_of_names_that_nothing_binds(texts):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n h*d"]):
        return x + 1
"""
    assert texts(source, X) == [
        (
            "ST202 axis `h*d` is 6 in Net (argument `x`), but `h*d` uses `h`, `d`, which no axis before it binds\n"
            '  observed f32[2, 5, 6]   annotated "B n h*d"   FILE:8\n'
            "  fix: use only names that earlier values of the call bind, or give the axis a name of its own"
        )
    ]


def test_one_name_with_two_sizes_in_a_model(texts):
    source = """
class Part(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Linear(width, width)
    def forward(self, x: Float[Tensor, "B d_model"]) -> Float[Tensor, "B d_model"]:
        return self.w(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.small, self.up, self.large = Part(4), nn.Linear(4, 8), Part(8)
    def forward(self, x):
        return self.large(self.up(self.small(x)))
"""
    assert texts(source, "x:float32[B=2,4]") == [
        (
            "ST301 `d_model` is 8 in large (argument `x`), but 4 since small (argument `x`, FILE:11)\n"
            '  observed f32[2, 8]   annotated "B d_model"   FILE:11\n'
            "  fix: one name means one size in a whole run: correct the size, or give this axis a name of its own"
        )
    ]


def test_one_name_with_two_sizes_in_a_class(texts):
    source = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
    def narrow(self, x: Float[Tensor, "B width"]):
        return self.up(x)
    def wide(self, x: Float[Tensor, "B width"]):
        return x + 1
    def forward(self, x):
        return self.wide(self.narrow(x))
"""
    (text,) = texts(source, "x:float32[B=2,4]")
    assert text.splitlines()[0] == (
        "ST301 `width` is 8 in wide() (argument `x`), but 4 since narrow() (argument `x`, FILE:11)"
    )


def test_a_name_beside_its_attribute(texts):
    source = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 8
        self.up = nn.Linear(4, self.width)
    def forward(self, x: Float[Tensor, "B width"]):
        return self.up(x)
"""
    (text,) = texts(source, "x:float32[B=2,4]")
    assert text.splitlines()[0] == (
        "ST301 `width` is 4 in Net (argument `x`), but `self.width` is 8"
    )


HEADS = """
class Attention(nn.Module):
    def __init__(self, d_model, head_dim):
        super().__init__()
        self.head_dim = head_dim
        self.q = nn.Linear(d_model, head_dim)
    def forward(self, x: Float[Tensor, "B n d_model"]):
        q: Float[Tensor, "B n head_dim"] = self.q(x)
        return q
class Net(nn.Module):
    def __init__(self, d_model: int = 16, head_dim: int = 4):
        super().__init__()
        self.attention = Attention(d_model, d_model // 4)
    def forward(self, x: Float[Tensor, "AXES d_model"]):
        return self.attention(x)
"""


def test_a_name_of_modules_for_another_size(texts):
    (text,) = texts(HEADS.replace("AXES", "B head_dim"), "x:float32[B=2,n=5,16]")
    assert text.splitlines()[0] == (
        "ST301 `head_dim` is 5 in Net (argument `x`), but 4 since attention (local `q`, FILE:13)"
    )
    assert text.endswith("one name means one size in a model: give this axis a name of its own")
    assert texts(HEADS.replace("AXES", "B n"), "x:float32[B=2,n=5,16]") == []


ATTENTION = """
class Net(nn.Module):
    def __init__(self, d_model: int = 16, h: int = 4, d_k: int = 4):
        super().__init__()
        self.h, self.d_k = h, d_k
        self.q, self.o = nn.Linear(d_model, h * d_k), nn.Linear(h * d_k, d_model)
    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        q: Float[Tensor, "B n d_model"] = self.q(x)
        return self.o(q)
"""


def test_a_name_that_holds_only_by_todays_numbers(texts):
    assert texts(ATTENTION, "x:float32[B=2,n=5,16]") == [
        (
            "ST302 axis `d_model` in Net (local `q`) is really `h*d_k`: equal only by today's numbers\n"
            '  observed f32[2, 5, 16]   annotated "B n d_model"   FILE:13\n'
            "  fix: write `h*d_k`, or give the axis a name of its own"
        )
    ]


FORGOTTEN = """
class Net(nn.Module):
    @jaxtyped(typechecker=beartype)
    def first(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        return x + 1
    def second(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        return x + 1
    @jaxtyped(typechecker=None)
    def third(self, x: Float[Tensor, "B n d"]):
        return x + 1
    @jaxtyped(typechecker=None)
    @beartype
    def fourth(self, x: Float[Tensor, "B n d"]):
        return x + 1
    def forward(self, x):
        return self.first(self.second(self.third(self.fourth(x))))
"""


def test_a_decorator_forgotten(texts):
    assert texts(FORGOTTEN, X) == [
        (
            "ST401 the annotations of `Net.second` (`x`, `return`) are not enforced: it has no "
            "decorator, as `Net.first` in the same file has\n"
            "  FILE:11\n"
            "  fix: write @jaxtyped(typechecker=beartype) above it"
        ),
        (
            "ST401 the annotations of `Net.third` (`x`) are not enforced: `jaxtyped` has no type checker\n"
            "  FILE:14\n"
            "  fix: write @jaxtyped(typechecker=beartype), or put @beartype below it"
        ),
    ]


def test_a_file_that_enforces_nothing_is_a_choice(texts):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]):
        return x + 1
"""
    assert texts(source, X) == []
    (text,) = texts(source, X, select=("ST402",))
    assert text == (
        "ST402 the annotations of `Net.forward` (`x`) are not enforced: it has no decorator, and "
        "no import hook is in force\n"
        "  FILE:8\n"
        "  fix: write @jaxtyped(typechecker=beartype) above it, or install jaxtyping's import hook"
    )


BRACES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.d_k, self.h = 3, 2
    def split(self, x: Float[Tensor, "B n {self.h}*{self.d_k}"], k: int) -> Float[Tensor, "B n {k} {self.d_k}"]:
        y: Float[Tensor, "B n {self.h} {self.d_k}"] = x.unflatten(-1, (self.h, self.d_k))
        return y
    def forward(self, x):
        return self.split(x, K)
"""


def test_parts_in_braces_are_worked_out_for_each_call(texts):
    assert texts(BRACES.replace("K", "2"), X) == []
    assert texts(BRACES.replace("K", "4"), X) == [
        (
            "ST101 axis `{k}` is 2 in split() (return value), but 4 by {k} = 4 in the call's arguments\n"
            '  observed f32[2, 5, 2, 3]   annotated "B n {k} {self.d_k}"   FILE:13\n'
            "  fix: return a tensor with third axis 4, or correct the annotation"
        )
    ]
    (text,) = texts(BRACES.replace("K", "2").replace("{self.h}*", "{self.hh}*"), X)
    assert text.splitlines()[0] == (
        "ST201 the annotation cannot be evaluated in split() (argument `x`): "
        "AttributeError: 'Net' object has no attribute 'hh'"
    )


@pytest.mark.parametrize("comment", ["# shapetrace: ignore", "# shapetrace: ignore[ST101]"])
def test_a_comment_silences_its_line(checked, comment):
    source = f"""
class Net(nn.Module):
    def forward(
        self, x: Float[Tensor, "B n d"], flag=None
    ) -> Float[Tensor, "B d"]:  {comment.replace("ST101", "ST102")}
        y: Float[Tensor, "B n n"] = (  {comment}
            x + 1
        )
        return y
"""
    result = checked(source, X)
    assert (result.findings, result.silenced) == ((), 2)


def test_a_comment_for_another_rule_silences_nothing(checked):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n"]):  # shapetrace: ignore[ST101]
        return x + 1
"""
    assert [one.code for one in checked(source, X).findings] == ["ST102"]
