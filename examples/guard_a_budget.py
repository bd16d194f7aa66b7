"""Fail a build when a model has grown: totals as JSON, from the command line's own report.

shapetrace forward --config gpt2 --device meta --seq 128 -o gpt2.json
python examples/guard_a_budget.py gpt2.json 130000000
"""

import json
import sys
from pathlib import Path


def main() -> int:
    report, budget = Path(sys.argv[1]), int(sys.argv[2])
    totals = json.loads(report.read_text(encoding="utf-8"))["totals"]
    parameters = totals["parameters"]
    print(f"{parameters:,} of {budget:,} parameters, {totals['flops']:,} FLOPs")
    for part, count in totals["parameters_by_part"].items():
        print(f"  {part:<14}{count:>13,}")
    return 0 if parameters <= budget else 1


if __name__ == "__main__":
    sys.exit(main())
