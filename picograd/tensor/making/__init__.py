"""Making tensors: of data, of numbers, at random."""
