"""What grouped-query attention saves: the same decoder with 8, 2 and 1 key/value heads.

python examples/grouped_heads.py
"""

import shapetrace
from shapetrace.cost import summarise
from shapetrace.units import format_bytes, format_flops


def main() -> None:
    print(f"{'h_kv':>4}  {'parameters':>10}  {'FLOPs':>12}  keys and values")
    for heads in (8, 2, 1):
        trace = shapetrace.forward(
            "tiny-decoder",
            settings=["h=8", f"h_kv={heads}", "d_k=16", "positions=rope"],
            batch=1,
            seq=256,
            device="meta",  # sizes and costs need no weights
        )
        totals = summarise(trace)
        kept = 2 * sum(  # keys are as large as values
            tensor.nbytes
            for tensor in trace.tensors
            if trace.sites[tensor.site].name == "v"
            and trace.scopes[tensor.scope].path.endswith(".attention")
        )
        row = (f"{totals.parameters:,}", format_flops(totals.flops), format_bytes(kept))
        print(f"{heads:>4}  {row[0]:>10}  {row[1]:>12}  {row[2]}")


if __name__ == "__main__":
    main()
