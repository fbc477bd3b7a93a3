"""Functions of networks: activations, convolutions, pooling, norms, attention, losses."""
