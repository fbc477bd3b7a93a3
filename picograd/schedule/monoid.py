"""Monoids: what a reduction starts from and how it combines, for schedule and codegen."""

from picograd.graph.scanning import identity as identity

# The elementwise operation that combines two values; the keys are all monoids there are.
COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
