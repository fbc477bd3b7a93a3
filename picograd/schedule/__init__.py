"""The schedule room: which kernels compute a graph, and where their results lie."""
