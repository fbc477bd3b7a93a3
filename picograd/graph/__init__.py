"""Graph IR: what to compute. Nodes, the op table, gradients, and the NumPy interpreter."""
