"""Code and Workspace under the name codegen uses; `picograd/code.py` defines them."""

from picograd.code import Code, Workspace

__all__ = ["Code", "Workspace"]
