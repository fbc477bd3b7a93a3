"""Let the tests of optimizers import their support file by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
