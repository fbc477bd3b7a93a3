"""Write what type checkers read of derived names: methods, public, special and functional.pyi.

    python docs/stubs.py

Each row of `picograd/tensor/core/function.py` gives signatures: those of its definition, with nodes
as tensors, and with the other names that calls may use. A package whose `__init__.py` is a table of
names has an `__init__.pyi`. `docs/regenerate.py` writes them too.
"""

import ast
import builtins
import copy
import inspect
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import picograd.distributions
import picograd.nn  # fills the tables, too
from picograd.tensor.core.calling import OTHER
from picograd.tensor.core.function import FUNCTIONS, MODULES, Function

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "picograd" / "tensor"
NOTE = '"""Written by docs/stubs.py: {}"""\n'
WORDS = {"Node": "Tensor", "Operand": "TensorLike", "Axes": "Axis", "DType": "DTypeLike"}
ELLIPSIS = ast.Constant(...)
HOME = "picograd.tensor.core.annotations"


@cache
def tree_of(module: ModuleType) -> ast.Module:
    """Read the source of a module."""
    return ast.parse(Path(inspect.getfile(module)).read_text())


def definitions(row: Function) -> list[ast.FunctionDef]:
    """Find a definition's overloads, or the definition."""
    definition = inspect.unwrap(row.definition)
    module = sys.modules[definition.__module__]
    *homes, name = definition.__qualname__.replace(".<locals>", "").split(".")
    body = tree_of(module).body
    for home in homes:  # a method of a class, or what a function makes
        body = next(node.body for node in body if getattr(node, "name", "") == home)
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    overloads = [node for node in found if "overload" in map(ast.unparse, node.decorator_list)]
    return overloads or found[-1:]


def is_shown(name: str, module: ModuleType) -> str:
    """Give the line that imports a name of a signature; empty for a builtin."""
    for node in tree_of(module).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return f"from {node.module} import {ast.unparse(alias)}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return f"import {ast.unparse(alias)}"
    return "" if hasattr(builtins, name) else f"from {module.__name__} import {name}"


class Words(ast.NodeTransformer):
    """This class turns the types of a definition into those that users see."""

    def __init__(self, row: Function) -> None:
        self.row, self.imports = row, set[str]()
        self.module = sys.modules[inspect.unwrap(row.definition).__module__]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Rename a type, and note where it comes from."""
        word = WORDS.get(node.id, node.id) if self.row.is_recorded else node.id
        word = "Tensor" if word == "Same" else word
        is_known = word in (*WORDS.values(), "Scalar", "Sizes", "Shape", "Data", "DeviceLike")
        self.imports.add(f"from {HOME} import {word}" if is_known else is_shown(word, self.module))
        return ast.Name(word, ast.Load())

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        """Turn the types of parameters alone."""
        for arg in (*node.args, node.vararg, *node.kwonlyargs, node.kwarg):
            if arg is not None and arg.annotation is not None:
                arg.annotation = self.visit(arg.annotation)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Read a type that is quoted."""
        if not isinstance(node.value, str):
            return node
        return self.visit(ast.parse(node.value, mode="eval").body)  # type: ignore[no-any-return]

    def result(self, node: ast.expr | None) -> str:
        """Write the type of a result: several are the named tuple of the row."""
        if self.row.pieces:
            return "tuple[Tensor, ...]"
        text = ast.unparse(self.visit(copy.deepcopy(node))) if node else "Any"
        if self.row.returns is None:
            return text
        name = self.row.returns.__name__
        self.imports.add(is_shown(name, self.module))
        parts = [part.strip() for part in text.split("|")]
        return " | ".join(name if part.startswith("tuple") else part for part in parts)


def module_page(title: str, rows: dict[str, Function], forms: tuple[str, ...]) -> str:
    """Write the functions of a module of rows; those that write over their input with "over"."""
    lines: list[str] = []
    imports = {"from typing import Any, overload", f"from {HOME} import Tensor"}
    for row in sorted(rows.values(), key=lambda row: row.name):
        for form in forms if row.in_place else ["function"]:
            found, needed = declared(row, form)
            lines += found
            imports |= needed
    over = [f"{row.name}_" for row in rows.values() if row.in_place and "over" in forms]
    names = [*rows, *over]
    everything = "__all__ = [" + ", ".join(f'"{name}"' for name in sorted(names)) + "]"
    head = [NOTE.format(title), *sorted(imports - {""}), everything]
    return formatted("\n".join([*head, *lines, ""]))


def declared(row: Function, form: str) -> tuple[list[str], set[str]]:
    """Write the declarations of one row as a method, a function or in place; and its imports."""
    words = Words(row)
    name = f"{row.name}_" if form in ("in place", "over") else row.name
    several = []
    for node in definitions(row):
        result = "Tensor" if form == "in place" else words.result(node.returns)
        args = words.visit(copy.deepcopy(node.args))
        several += [(spelt(each, row, form), result) for each in variants(row, args)]
    is_static = row.static and form == "method"
    mark = ["@overload"] * (len(several) > 1) + ["@staticmethod"] * is_static
    lines = [[*mark, f"def {name}({args}) -> {result}: ..."] for args, result in several]
    return [line for pair in lines for line in pair], words.imports


def variants(row: Function, args: ast.arguments) -> list[ast.arguments]:
    """Let parameters have their other names, too; one that must be there has another signature."""
    if not row.is_recorded:
        return [args]
    found = [args]
    pads: list[ast.expr | None] = [None] * (len(args.args) - len(args.defaults))
    by_place = dict(zip([arg.arg for arg in args.args], [*pads, *args.defaults]))
    known = {arg.arg: arg.annotation for arg in [*args.args, *args.kwonlyargs]}
    for other, name in (*OTHER.items(), *row.also):
        if name in known and by_place.get(name, ELLIPSIS) is not None:
            add_keyword(args, other, known[name], ELLIPSIS)
        elif name in known:
            found.append(by_keyword(args, list(by_place).index(name), other))
    if args.vararg:
        kind = ast.Name(f"Sequence[{ast.unparse(args.vararg.annotation or ELLIPSIS)}]")
        add_keyword(args, args.vararg.arg, kind, ELLIPSIS)
        args.vararg.arg = f"_{args.vararg.arg}"
    return found


def add_keyword(args: ast.arguments, name: str, kind: Any, default: ast.expr | None) -> None:
    """Add a parameter that goes by name."""
    args.kwonlyargs.append(ast.arg(name, kind))
    args.kw_defaults.append(default)


def by_keyword(args: ast.arguments, place: int, name: str) -> ast.arguments:
    """Let the parameters from a place on go by name, the first by its other one."""
    made, late = copy.deepcopy(args), args.args[place:]
    first_default = len(args.args) - len(args.defaults)
    values = [args.defaults[at - first_default] if at >= first_default else None
              for at in range(place, len(args.args))]  # fmt: skip
    made.args, made.defaults = made.args[:place], made.defaults[: max(0, place - first_default)]
    names = [name, *(arg.arg for arg in late[1:])]
    made.kwonlyargs = [ast.arg(n, a.annotation) for n, a in zip(names, late)] + made.kwonlyargs
    made.kw_defaults = [*values, *made.kw_defaults]
    return made


def spelt(args: ast.arguments, row: Function, form: str) -> str:
    """Write parameters; the first is the tensor."""
    first = args.args[0].annotation if args.args else None
    if form in ("function", "over"):
        is_method = "." in row.definition.__qualname__ and args.args and args.args[0].arg == "self"
        if is_method or (first is not None and ast.unparse(first).startswith("Tensor")):
            kind = ast.Name("Tensor") if is_method else first
            args.args = [ast.arg("input", kind), *args.args[1:]]
        if row.inplace and form == "function":
            args.args.append(ast.arg("inplace", ast.Name("bool")))
            args.defaults.append(ast.Constant(False))
        if args.kwarg is None:
            add_keyword(args, "out", ast.Name("Any"), ast.Constant(None))
    elif not row.static:
        args.args = [ast.arg("self"), *args.args[1:]]
    for default in (args.defaults, args.kw_defaults):
        default[:] = [each if is_plain(each) else ELLIPSIS for each in default]
    return ast.unparse(args)


def is_plain(default: ast.expr | None) -> bool:
    """Tell whether a default is a number, a text or None, and can be shown."""
    return default is None or not isinstance(default, (ast.Name, ast.Call, ast.Attribute))


def page(title: str, forms: tuple[str, ...], head: str, indent: str) -> str:
    """Write one file."""
    lines: list[str] = []
    imports = {"from typing import Any, overload", "from collections.abc import Sequence",
               f"from {HOME} import Tensor"}  # fmt: skip
    names = []
    for name in sorted(FUNCTIONS):
        row = FUNCTIONS[name]
        for form, is_wanted in (
            ("method", row.method), ("in place", row.in_place), ("function", row.function)
        ):  # fmt: skip
            if form in forms and is_wanted:
                found, needed = declared(row, form)
                lines += [indent + line for line in found]
                imports |= needed
                names.append(name)
    if "function" in forms:
        lines = ["__all__ = [" + ", ".join(f'"{name}"' for name in names) + "]", *lines]
    text = "\n".join([NOTE.format(title), *sorted(imports - {""}), head, *lines, ""])
    return formatted(text)


def formatted(text: str) -> str:
    """Format a stub as the tree is formatted."""
    for command in (["check", "--select", "I,F401,RUF022", "--fix-only", "-q"], ["format", "-q"]):
        tool = [sys.executable, "-m", "ruff", *command, "--stdin-filename", "picograd/x.pyi", "-"]
        done = subprocess.run(tool, input=text, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        text = done.stdout
    return text


def package_page(package: ModuleType) -> str:
    """Write from where a package has the names of its `__all__`."""
    lines = []
    for name in package.__all__:
        found = getattr(package, name)
        own = [home for home, names in package._NAMES.items() if name in names]
        if own:
            home = f"{package.__name__}.{own[0]}"
        elif isinstance(found, ModuleType):
            home = found.__name__.rpartition(".")[0]
        else:
            home = found.__module__
        lines.append(f"from {home} import {name} as {name}")
    title = NOTE.format(f"the names of {package.__name__}.")
    everything = "__all__ = [" + ", ".join(f'"{name}"' for name in sorted(package.__all__)) + "]"
    return formatted("\n".join([title, *lines, everything, ""]))


def write_stubs() -> dict[str, str]:
    """Write all files; returns the text by file name."""
    base = "from picograd.tensor.core.recording import Recorded\n\nclass Methods(Recorded):"
    return {
        "methods.pyi": page("the methods of Tensor.", ("method", "in place"), base, "    "),
        "public.pyi": page("the functions of picograd.", ("function",), "", ""),
        "math/special.pyi": module_page(
            "the functions of picograd.special.", picograd.special.ROWS, ("function",)
        ),
        "../nn/functional.pyi": module_page(
            "the functions of picograd.nn.functional.", MODULES["functional"], ("function", "over")
        ),
        "../nn/__init__.pyi": package_page(picograd.nn),
        "../distributions/__init__.pyi": package_page(picograd.distributions),
    }


def main() -> None:
    """Write the files that changed."""
    for name, text in write_stubs().items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
