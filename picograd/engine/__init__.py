"""The engine room: when graphs are computed, with which plans and compiled kernels."""
