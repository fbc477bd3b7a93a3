"""ONNX's own node tests, run through `picograd.onnx`: how many pass, and what the others say.

python docs/records/0013-ecosystem/onnx_nodes.py [pattern]
"""

import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "test" / "onnx"))

from node_cases import cases, run


def main(pattern: str) -> None:
    """Run the cases whose names the pattern is found in; print failures, and the count."""
    names = [name for name in cases() if re.search(pattern, name)]
    passed, start = 0, time.time()
    for name in names:
        try:
            run(name)
            passed += 1
        except Exception as error:
            reason = " ".join(str(error).split())[:160]
            print(f"{name}: {type(error).__name__}: {reason}", flush=True)
    print(f"{passed} of {len(names)} passed in {time.time() - start:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
