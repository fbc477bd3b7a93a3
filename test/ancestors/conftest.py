"""Let the tests of the ancestors' lists import their tools by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
