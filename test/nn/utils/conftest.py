"""Let these tests import the support file of the nn tests by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
