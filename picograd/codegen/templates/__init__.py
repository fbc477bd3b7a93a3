"""Templates: how each kind of kernel is tiled; one module a hero."""
