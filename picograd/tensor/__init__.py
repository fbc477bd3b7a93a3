"""The tensor room: the class `Tensor` and the functions on nodes behind its methods."""
