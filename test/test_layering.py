"""Imports point down, spell the whole path, and sit at the top of a file."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Lowest first. Rooms on one level are blind to each other.
LEVELS = [
    {"torch_paths", "version"},
    {
        "errors",
        "helpers",
        "html",
        "cores",
        "number_code",
        "late_names",
        "late_methods",
        "shared_parts",
    },
    {"traced_number", "first_import", "futures"},
    {"number"},
    {"config", "dtype", "target"},
    {"buffer", "code", "conversion", "device_name"},
    {"graph"},
    {"schedule"},
    {"codegen", "runtime"},
    {"engine"},
    {"tensor"},
    {"nn", "draw", "explain", "distributed", "settings", "typed", "cache", "scripting", "backends"}
    | {"in_place", "testing", "autoray_names", "einops_backend", "absent", "foreach", "profiler"}
    | {"processes", "opt_einsum_names", "fx_graph", "nested_rules"},
    # names of the ancestor and of PyTorch
    {
        "draw_utils",
        "func",
        "autograd",
        "amp",
        "array_api",
        "benchmark",
        "aten",
        "cuda",
        "distributions",
        "einops_layers",
        "fx",
        "higher_order",
        "hub",
        "library",
        "masked",
        "nested",
        "optim",
        "quasirandom",
        "return_types",
        "sparse",
        "utils",
        "view",
        "windows",
    },
    {"onnx"},
    {"accelerator", "cpu", "export", "mps"},
]
LEVEL = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}
# The command line and the front door may import anything.
TOP = {"__init__", "__main__"}
# One file loads backends by name, inside functions, so that a machine without CUDA can import it.
LATE_IMPORTS_ALLOWED = {Path("picograd/engine/backends.py")}
# One file names the class `Tensor` for type checkers, in a block that never runs.
NAMES_FOR_CHECKERS = Path("picograd/tensor/core/annotations.py")
# These name what is imported late, by `helpers.on_demand`, so that an import takes no longer.
NAMES_ON_DEMAND = {
    Path("picograd/engine/compile.py"),
    Path("picograd/schedule/plan.py"),
    Path("picograd/tensor/core/inspect.py"),
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module:
    """What the tests ask of one file of the package: its tree is not kept."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(ROOT)
        self.name = ".".join(self.path.with_suffix("").parts).removesuffix(".__init__")
        nodes = list(ast.walk(ast.parse(path.read_text())))
        self.imports = [each for node in nodes for each in internal_imports(node)]
        functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
        inside = {line for f in functions for line in range(f.lineno, (f.end_lineno or 0) + 1)}
        self.late = sorted({line for line, _ in self.imports} & inside)
        names = (getattr(node, "id", getattr(node, "attr", "")) for node in nodes)
        self.names_for_checkers = "TYPE_CHECKING" in names
        self.named = [each for node in nodes for each in modules_named(node, self.name)]


@cache
def modules() -> list[Module]:
    return [Module(path) for path in sorted((ROOT / "picograd").rglob("*.py"))]


def internal_imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of what a node imports of picograd."""
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: write the full path, no dots"
        names = [node.module or ""]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "on_demand":
        names = [ast.literal_eval(node.args[0])]
    else:
        return
    yield from ((node.lineno, name) for name in names if name.split(".")[0] == "picograd")


def modules_named(node: ast.AST, name: str) -> Iterator[tuple[str, set[str]]]:
    """Yield a package, and what may be modules that a node imports from it."""
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_NAMES":
        yield "", {f"{name}.{module}" for module in ast.literal_eval(node.value)}
    elif isinstance(node, ast.Import):
        yield "", {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
        yield node.module or "", {f"{node.module}.{alias.name}" for alias in node.names}


def test_every_room_has_a_level() -> None:
    rooms = {each.path.parts[1].removesuffix(".py") for each in modules()} - TOP
    assert rooms <= LEVEL.keys(), f"give these rooms a level: {rooms - LEVEL.keys()}"


def test_every_room_is_on_the_map() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    rooms = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "picograd").rglob("*.py")}
    missing = {room for room in rooms - {"picograd"} if f"{room}/" not in page}
    assert not missing, f"docs/architecture.md does not name {sorted(missing)}"


def test_imports_only_point_down() -> None:
    wrong = []
    for module in modules():
        path, room = module.path, module.path.parts[1].removesuffix(".py")
        if room in TOP:
            continue
        for line, name in module.imports:
            other = name.partition(".")[2].partition(".")[0]
            if not other:
                wrong.append(f"{path}:{line}: import from picograd.<room>, not from the root")
            elif other != room and LEVEL.get(other, 99) >= LEVEL[room]:
                wrong.append(f"{path}:{line}: {room} may not import {other}")
    assert not wrong, "\n".join(wrong)


def test_internal_imports_are_not_inside_functions() -> None:
    late = [each for each in modules() if each.path not in LATE_IMPORTS_ALLOWED]
    wrong = [
        f"{each.path}:{line}: move this import to the top" for each in late for line in each.late
    ]
    assert not wrong, "\n".join(wrong)


def test_blocks_that_never_run_import_in_few_files_alone() -> None:
    named = {each.path for each in modules() if each.names_for_checkers}
    late = Path("picograd/late_methods.py")  # checkers read dataclasses' own decorator
    assert named == {Path("picograd/__init__.py"), NAMES_FOR_CHECKERS, late, *NAMES_ON_DEMAND}


def imports_of(module: Module, names: set[str]) -> set[str]:
    """Modules of the package that a file imports; `from package import module` counts as it."""
    return {each for base, inner in module.named for each in inner & names or {base} & names}


def test_there_is_no_import_cycle() -> None:
    names = {each.name for each in modules()}
    graph = {each.name: imports_of(each, names) - {each.name} for each in modules()}
    graph[".".join(NAMES_FOR_CHECKERS.with_suffix("").parts)].discard("picograd.tensor.tensor")
    # Remove modules whose imports are all removed; what stays is in a cycle or imports one.
    while True:
        leaves = {name for name, imports in graph.items() if not imports & graph.keys()}
        if not leaves:
            break
        graph = {name: imports for name, imports in graph.items() if name not in leaves}
    assert not graph, f"in or above an import cycle: {sorted(graph)}"
