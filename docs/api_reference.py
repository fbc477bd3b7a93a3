"""Write docs/api/*.md, the reference of every public name, from signatures and docstrings.

    python docs/api_reference.py

A name is described once. A function of `picograd` and the method of `Tensor` of the same name share
an entry, and so do a function and its in-place form `name_`; the docstring is that of the first
that has an example. `docs/regenerate.py` writes the pages too.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import picograd
from picograd import Tensor, nn

FOLDER = Path(__file__).parent / "api"
NOTE = """Generated from docstrings by `docs/api_reference.py`; every example is a test, after
`import numpy, picograd` and `from picograd import Tensor, nn`."""
WORDS = """In calls `axis` may stand for `dim`, `keepdims` for `keepdim`, and `input` for the first
argument of a function, which takes `out=`, too.

Words of signatures (`picograd/tensor/core/annotations.py`), which type checkers follow:

| word | what it takes |
|---|---|
| `TensorLike` | a tensor, number, NumPy array or nested list |
| `Data` | the same, or memory of another library (DLPack) |
| `Scalar` | a Python number or bool |
| `Sizes` | one int, or several |
| `Axis` | one axis, several, or None for all |
| `DTypeLike` | `picograd.float32`, `"float32"`, `float`, a NumPy dtype |
| `DeviceLike` | `"cpu"`, `"cuda"`, `"cuda:1"` |
"""
MANY = 3  # parameters from which a table lists them
EXAMPLE = ">>> "
LONG = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")  # modules before a name in a signature
SELF = re.compile(r"^\(self(?:: [\w.\[\]]+)?(?:, )?(?:/(?:, )?)?")
OLD_UNION = re.compile(r"\b(Optional|Union)\[((?:[^\[\],]|, |\[[^\[\],]*\])+)\]")
ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")


@dataclass(frozen=True)
class Page:
    """One page: file, title, and the files in rooms of `picograd/tensor/` that it describes."""

    name: str
    title: str
    files: tuple[str, ...] = ()


TENSOR_PAGES = (
    Page("creation", "Making tensors", ("creation", "tensors_like", "dlpack", "exchange")),
    Page("random", "Random numbers",
         ("random", "distributions", "running_vmaps", "dropout")),
    Page("elementwise", "Elementwise functions",
         ("primitives", "elementwise", "transcendental", "normal_distribution", "gamma",
          "log_gamma", "arithmetic", "activation", "activation_functions",
          "methods_operator")),
    Page("reductions", "Reductions, sorting, statistics",
         ("reduce", "cumulative", "sorting", "statistics")),
    Page("movement", "Shapes and joining",
         ("movement", "assembling", "joining", "axis_formulas", "methods_movement",
          "methods_family")),
    Page("indexing", "Indexing, gathering, scattering",
         ("indexing", "selecting", "writing", "partial_writes")),
    Page("products", "Products, convolutions, pooling, attention, losses",
         ("products", "systems", "decompositions", "convolution_functions",
          "pooling_functions", "attention", "normalization", "losses", "interpolation")),
    Page("autograd", "Gradients and transformations",
         ("autograd", "custom", "vmap", "scan", "recording", "gradcheck", "pytree")),
    Page("in_place", "In-place operations", ()),
    Page("tools", "Tools: jit, plan, explain, profile, draw, view",
         ("jit", "inspect", "autocast", "show")),
    Page("tensor", "Tensor, dtypes, devices", ()),
)  # fmt: skip
BY_FILE = {file: page for page in TENSOR_PAGES for file in page.files}
STATIC = {  # names of picograd/tensor/tensor.py that belong elsewhere
    "creation": "arange empty eye from_dlpack from_numpy full linspace ones zeros",
    "random": "manual_seed normal rand randint randn randperm uniform",
    "movement": "cat concat concatenate stack",
    "products": "dot einsum",
    "autograd": "backward detach detach_ gradient register_hook requires_grad_ retain_grad grad"
    " register_post_accumulate_grad_hook requires_grad is_leaf grad_fn retains_grad",
    "tools": "profile",
    "in_place": "assign copy_ fill_ zero_ add_ sub_ mul_ div_",
}
BY_NAME = {name: page for page, names in STATIC.items() for name in names.split()}
BASES = {page.name: page for page in TENSOR_PAGES}
NAMESPACES = (
    (Page("linalg", "picograd.linalg"), picograd.linalg),
    (Page("fft", "picograd.fft"), picograd.fft),
    (Page("special", "picograd.special"), picograd.special),
    (Page("func", "picograd.func"), picograd.func),
    (Page("autograd", "Gradients and transformations"), picograd.autograd),
    (Page("amp", "picograd.amp"), picograd.amp),
    (Page("nn", "picograd.nn: layers, losses, data"), nn),
    (Page("functional", "picograd.nn.functional"), nn.functional),
    (Page("optim", "picograd.nn.optim: optimizers"), nn.optim),
    (Page("lr", "picograd.nn.optim.lr_scheduler: learning rates"), nn.optim.lr_scheduler),
    (Page("init", "picograd.nn.init: initial values"), nn.init),
    (Page("utils", "picograd.nn.utils"), nn.utils),
    (Page("datasets", "picograd.nn.datasets"), nn.datasets),
    (Page("transforms", "picograd.nn.transforms"), nn.transforms),
)
TOOLS = (("picograd.draw", "draw_dot"),)
NO_NAMES = ("node", "settle", "from_node", "kind", "name")  # the tensor room's own business


@dataclass
class Entry:
    """One name of a page: how it is spelt, and the objects of these spellings."""

    page: Page
    name: str
    spellings: list[str] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)

    @property
    def described(self) -> Any:
        """Find the object whose docstring is shown: the first with an example, or with any."""
        documented = [each for each in self.objects if docstring(each)]
        with_example = [each for each in documented if EXAMPLE in docstring(each)]
        return (with_example or documented or self.objects)[0]


def docstring(thing: Any) -> str:
    """Read a docstring of its own; a class does not speak for its instances."""
    if not is_documented(thing):
        return ""
    own = thing.__doc__ if isinstance(thing, type) else getattr(thing, "__doc__", None)
    return inspect.cleandoc(own or "")


def is_documented(thing: Any) -> bool:
    """Tell whether a thing can have a docstring: a function, a class, a property."""
    kinds = (type, property)
    return callable(thing) or isinstance(thing, kinds) or inspect.ismemberdescriptor(thing)


def public_names(module: ModuleType) -> list[str]:
    """List what a module offers: `__all__`, or what it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = ((name, getattr(thing, "__module__", "")) for name, thing in vars(module).items())
    return [name for name, home in own if home == module.__name__ and not name.startswith("_")]


def spellings() -> Iterator[tuple[Page, str, str, Any]]:
    """Yield (page, name, spelling, object) of every public name."""
    for name in public_names(picograd):
        thing = getattr(picograd, name)
        if not isinstance(thing, ModuleType):
            yield page_of(name, thing), name, f"picograd.{name}", thing
    for name in dir(Tensor):
        if not name.startswith("_") and name not in NO_NAMES:
            thing = inspect.getattr_static(Tensor, name)
            thing = thing.__func__ if isinstance(thing, (classmethod, staticmethod)) else thing
            yield page_of(name, thing), name, f"Tensor.{name}", thing
    for page, module in NAMESPACES:
        prefix = module.__name__ if module.__name__.startswith("picograd.nn") else page.title
        for name in public_names(module):
            thing = getattr(module, name)
            if not isinstance(thing, ModuleType):
                yield page, name, f"{prefix.split(':')[0]}.{name}", thing
    for home, name in TOOLS:
        module = __import__(home, fromlist=[name])
        yield BASES["tools"], name, f"{home}.{name}", getattr(module, name)


def page_of(name: str, thing: Any) -> Page:
    """Find the page of a name of `picograd` or of `Tensor`."""
    if name in BY_NAME:
        return BASES[BY_NAME[name]]
    if file_of(thing) == "show":  # picograd.view is another function than Tensor.view
        return BASES["tools"]
    method = inspect.getattr_static(Tensor, name, thing)  # a function may be a wrapper of it
    inner = method.fget if isinstance(method, property) else method
    if hasattr(inner, "form_of"):
        return BASES["in_place"]
    inner = inner if isinstance(inner, type) else inspect.unwrap(inner)
    return BY_FILE.get(file_of(inner), BASES["tensor"])


def file_of(thing: Any) -> str:
    """Name the file that defines a thing."""
    return str(getattr(thing, "__module__", None) or "").rpartition(".")[2]


def entries() -> list[Entry]:
    """Gather the spellings of one name on one page, in the order of pages and names."""
    found: dict[tuple[str, str], Entry] = {}
    for page, name, spelling, thing in spellings():
        entry = found.setdefault((page.name, name), Entry(page, name))
        entry.spellings.append(spelling)
        if not any(thing is other for other in entry.objects):
            entry.objects.append(thing)
    share_functions(found)
    return sorted(
        found.values(), key=lambda entry: (entry.page.name, entry.name.lower(), entry.name)
    )


def share_functions(found: dict[tuple[str, str], Entry]) -> None:
    """Let entries without an example borrow from the same name, or what a name in place is of."""
    by_name: dict[str, list[Any]] = {}
    for entry in found.values():
        if not isinstance(entry.objects[0], type):
            by_name.setdefault(entry.name, []).extend(entry.objects)
    for entry in found.values():
        if not isinstance(entry.objects[0], type):
            others = [*by_name[entry.name], *by_name.get(entry.name.removesuffix("_"), [])]
            entry.objects += [
                thing for thing in others if not any(thing is o for o in entry.objects)
            ]


def lacks_docstring() -> list[str]:
    """List the names that nothing describes; constants, dtypes and settings describe themselves."""
    return [e.spellings[0] for e in entries() if needs_words(e) and not docstring(e.described)]


def lacks_example() -> list[str]:
    """List the names whose docstrings have no example."""
    found = (e for e in entries() if needs_words(e) and EXAMPLE not in docstring(e.described))
    return sorted(entry.spellings[0] for entry in found)


def needs_words(entry: Entry) -> bool:
    """Tell whether an entry is a function, a class or a property."""
    return is_documented(entry.objects[0])


def signature(thing: Any) -> str:
    """Write the signature of a function or class, with types by their short names."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [shorten(parameter) for parameter in found.parameters.values()]
    result = short_type(found.return_annotation)
    text = str(found.replace(parameters=parameters, return_annotation=result))
    text = ADDRESS.sub("...", SELF.sub("(", text, count=1))
    return text.removesuffix(" -> None") if isinstance(thing, type) else text


class Plain(str):
    """A text that is printed as it is."""

    def __repr__(self) -> str:
        return str(self)


def shorten(parameter: inspect.Parameter) -> inspect.Parameter:
    """Write the type of a parameter by its short name; a default that is a string stays quoted."""
    default = parameter.default
    if default is not inspect.Parameter.empty and not isinstance(default, str):
        default = Plain(LONG.sub("", repr(default)))
    return parameter.replace(default=default, annotation=short_type(parameter.annotation))


def short_type(annotation: Any) -> Any:
    """Write a type without modules, and without the quotes of names that come later in the file."""
    if annotation is inspect.Signature.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    is_literal = "Literal[" in text
    text = LONG.sub("", text if is_literal else text.replace("'", "").replace('"', ""))
    while text != (shorter := OLD_UNION.sub(bars, text)):
        text = shorter
    return Plain(text.replace("~Same", "Tensor"))


def bars(union: re.Match[str]) -> str:
    """Write Optional[A] and Union[A, B] with bars, None last."""
    parts = [*union[2].split(", "), *(["None"] if union[1] == "Optional" else [])]
    return " | ".join(sorted(parts, key=lambda part: part == "None"))


def describe(entry: Entry) -> str:
    """Write one entry: heading, spellings and signature, docstring with its example fenced."""
    thing = entry.described
    heads = ", ".join(f"`{spelling}`" for spelling in entry.spellings)
    called = f"  \n`{entry.name}{signature(thing)}`" if callable(thing) else ""
    lines = [f"### {entry.name}", "", heads + called]
    text = docstring(thing)
    if not text:  # a constant, or an object that its class describes
        value = ADDRESS.search(repr(thing))
        text = inspect.getdoc(type(thing)) or "" if value else f"`{thing!r}`"
    table = parameter_table(thing) if callable(thing) else []
    return "\n".join([*lines, "", *table, fence(text), ""])


def parameter_table(thing: Any) -> list[str]:
    """List the parameters of a function or class with their types and defaults, if it has many."""
    try:
        found = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return []
    shown = [shorten(each) for name, each in found.items() if name not in ("self", "cls")]
    if len(shown) < MANY:
        return []
    rows = [parameter_row(each) for each in shown]
    return ["| parameter | type | default |", "|---|---|---|", *rows, ""]


def parameter_row(each: inspect.Parameter) -> str:
    """Write a row of the table; bars, which part its cells, become words."""
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    cells = [f"{stars}{each.name}"]
    for value, text in (each.annotation, str), (each.default, repr):
        cells.append("" if value is each.empty else ADDRESS.sub("...", text(value)))
    quoted = [f"`{cell}`" if cell else "" for cell in cells]
    return f"| {' | '.join(cell.replace(' | ', ' or ') for cell in quoted)} |"


def fence(text: str) -> str:
    """Put the examples of a docstring into a fenced block, and indented parts into another."""
    blocks = []
    for block in text.split("\n\n"):
        is_table = any("  " in line.strip() or line.startswith("  ") for line in block.split("\n"))
        kind = "pycon" if block.startswith(EXAMPLE) else "text" if is_table else ""
        blocks.append(f"```{kind}\n{block}\n```" if kind else block)
    return "\n\n".join(blocks)


def write_pages() -> dict[str, str]:
    """Write every page and the list of pages; returns the text by file name."""
    by_page: dict[str, list[Entry]] = {}
    for entry in entries():
        by_page.setdefault(entry.page.name, []).append(entry)
    pages, index = {}, []
    titles = {page.name: page.title for page in (*TENSOR_PAGES, *(p for p, _ in NAMESPACES))}
    for name, title in titles.items():
        found = by_page.get(name, [])
        head = f"# {title}\n\n{NOTE}\n\n"
        pages[f"{name}.md"] = head + "\n".join(describe(entry) for entry in found)
        index.append(f"| [{title}]({name}.md) | {len(found)} |")
    head = f"# Reference\n\nEvery public name, generated by `docs/api_reference.py`.\n\n{WORDS}\n"
    pages["README.md"] = head + "\n".join(["| page | names |", "|---|---|", *index, ""])
    return pages


def main() -> None:
    """Write the pages that changed."""
    FOLDER.mkdir(exist_ok=True)
    pages = write_pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    print(f"docs/api: {len(pages)} pages, {len(lacks_example())} names without an example")


if __name__ == "__main__":
    main()
