"""The node functions of this room are tested with the leaves of the graph tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "graph"))
