"""Functions of functions: jit, vmap, scan, derivatives, gradients of one's own."""
