"""Monoids: what a reduction starts from and how it combines, for schedule and codegen."""

from picograd.graph import scanning

identity = scanning.identity  # that of scans is that of all reductions

# The elementwise operation that combines two values; the keys are all monoids there are.
COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
