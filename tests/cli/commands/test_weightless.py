"""`generate` and `train` on meta: costs as on the CPU, and nothing said of what has no values."""

import json

import pytest

KINDS = ("tiny-decoder", "tiny-encoder-decoder")


@pytest.mark.parametrize("config", KINDS)
@pytest.mark.parametrize("cache", ["--cache", "--no-cache"])
def test_generating_costs_what_it_costs_with_weights(command, config, cache):
    found = {}
    for device in ("cpu", "meta"):
        code, out, err = command(
            "generate", "--config", config, "--prompt", "dog", "--prompt", "cats", cache,
            "--max-new-tokens", 5, "--device", device, "--format", "json",
        )  # fmt: skip
        assert code == 0, err
        found[device] = json.loads(out)
    cpu, meta = found["cpu"], found["meta"]
    assert meta["samples"] == [
        {"prompt": prompt, "text": None, "token_ids": None} for prompt in ("dog", "cats")
    ]
    assert all(step["seconds"] is None for step in meta["steps"])
    assert all(step["seconds"] > 0 for step in cpu["steps"])
    timed = ("seconds", "tokens_per_second")
    assert [meta["totals"][key] for key in timed] == [None, None]
    assert without(timed, meta["totals"]) == without(timed, cpu["totals"])
    assert cpu["totals"]["flops"] > 0
    assert [without(timed, step) for step in meta["steps"]] == [
        without(timed, step) for step in cpu["steps"]
    ]
    keys = ("pass", "path", "name", "dims", "shape", "dtype", "flops")
    assert [[t[key] for key in keys] for t in meta["tensors"]] == [
        [t[key] for key in keys] for t in cpu["tensors"]
    ]


def without(keys, values):
    return {key: value for key, value in values.items() if key not in keys}


def test_the_text_is_said_to_be_unknown(command):
    given = ("generate", "--config", "tiny-decoder", "--prompt", "ab", "--device", "meta",
             "--max-new-tokens", 3)  # fmt: skip
    code, out, err = command(*given)
    assert code == 0, err
    assert "not known without values: the text and its time" in out
    assert "tokens per second" not in out
    code, out, _ = command(*given, "--format", "csv")
    assert code == 0
    assert [line.split(",")[-1] for line in out.splitlines()] == ["seconds", "", "", ""]


@pytest.mark.parametrize("config", KINDS)
def test_a_step_of_training_costs_what_it_costs_with_weights(command, tmp_path, config):
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"word{n} of many\tynam fo {n}drow\n" for n in range(40)))
    found = {}
    for device in ("cpu", "meta"):
        code, out, err = command(
            "train", "--config", config, "--data", data, "--steps", 1, "--batch", 2, "--seq", 16,
            "--device", device, "--format", "json",
        )  # fmt: skip
        assert code == 0, err
        found[device] = json.loads(out)
        assert ("one step without values: the loss is not known" in err) == (device == "meta")
    cpu, meta = found["cpu"], found["meta"]
    for key in ("flops", "flops_forward", "flops_backward", "flops_by_part", "parameter_bytes"):
        assert meta["totals"][key] == cpu["totals"][key]
    assert meta["totals"]["flops_backward"] == 2 * meta["totals"]["flops_forward"] > 0
    for key in ("parameter_bytes", "gradient_bytes", "optimizer_state_bytes", "parameters"):
        assert meta["training"][key] == cpu["training"][key]


@pytest.mark.parametrize("config", KINDS)
def test_a_training_without_values_leaves_no_checkpoint(command, tmp_path, config):
    data, folder = tmp_path / "data.tsv", tmp_path / "model"
    data.write_text("a b\tc d\n" * 20)
    code, out, err = command(
        "train", "--config", config, "--data", data, "--seq", 8, "--device", "meta", "--out", folder
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not folder.exists()
