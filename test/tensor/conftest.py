"""Let these tests import their support files, and the leaves of the graph tests, by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "graph"))
sys.path.insert(0, str(Path(__file__).parent))
