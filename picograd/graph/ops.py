"""The op table: one row per op, assembled from the files that own the rows.

Elementwise rows are in graph/elementwise.py, views, reductions and effects in graph/structure.py,
contractions in graph/product_ops.py, gather and scatter in graph/indexing.py, sums in bins in
graph/binning.py, writes of parts in graph/parts.py, scans and sorts in graph/scanning.py and
graph/sorting.py, segments in graph/segments.py, gradients of products in graph/factors.py, loops
over time in graph/recurrence.py, host calls in graph/host_call.py, elimination in
graph/elimination.py, complex numbers in graph/complex_numbers.py, and composites in
graph/composites.py.
"""

from picograd.graph.binning import BINNING_ROWS
from picograd.graph.complex_numbers import COMPLEX_ROWS
from picograd.graph.composites import COMPOSITES, JOINS, NORMS
from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.elimination import ELIMINATION_ROWS
from picograd.graph.factors import FACTOR_ROWS
from picograd.graph.host_call import FUNCTIONS, HOST_ROWS, TRANSFORMS
from picograd.graph.host_draws import DRAWS
from picograd.graph.host_ldl import SYMMETRIC
from picograd.graph.host_lu import ELIMINATIONS
from picograd.graph.host_matrices import MATRICES
from picograd.graph.incomplete_gamma import INCOMPLETE
from picograd.graph.indexing import SCATTER_ROWS
from picograd.graph.parts import PART_ROWS
from picograd.graph.recurrence import RECURRENCE_ROWS
from picograd.graph.row import OPS, Op
from picograd.graph.scanning import SCAN_ROWS
from picograd.graph.segments import SEGMENT_ROWS
from picograd.graph.sorting import SORT_ROWS
from picograd.graph.structure import STRUCTURE

__all__ = ["OPS", "TABLES", "Op"]

TABLES = (  # each has added its rows to OPS
    ELEMENTWISE,
    STRUCTURE,
    COMPOSITES,
    NORMS,
    JOINS,
    FACTOR_ROWS,
    SCAN_ROWS,
    SORT_ROWS,
    SCATTER_ROWS,
    SEGMENT_ROWS,
    RECURRENCE_ROWS,
    PART_ROWS,
    COMPLEX_ROWS,
    HOST_ROWS,
    ELIMINATION_ROWS,
    BINNING_ROWS,
)
FUNCTIONS.update(MATRICES | ELIMINATIONS | SYMMETRIC | TRANSFORMS | INCOMPLETE | DRAWS)
