"""Lets the engine's tests import their shared module."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
