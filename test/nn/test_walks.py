"""Modules that know their parents, lists that hold themselves: every walk ends."""

import copy
from typing import Any

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import StateError

torch = pytest.importorskip("torch")


def family(library: Any) -> Any:
    """Make a child that holds its parent by `object.__setattr__`."""
    room = library.nn

    class Child(room.Module):  # type: ignore
        def __init__(self, parent: Any) -> None:
            super().__init__()
            object.__setattr__(self, "parent", parent)
            self.fc = room.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.fc(x) * self.parent.scale

    class Parent(room.Module):  # type: ignore
        def __init__(self) -> None:
            super().__init__()
            self.scale = room.Parameter(library.ones(1))
            self.child = Child(self)

        def forward(self, x: Any) -> Any:
            return self.child(x)

    return Parent()


def leaves(module: Any) -> int:
    """Count as programs do that replace layers: by their own recursion."""
    children = [child for _, child in module.named_children()]
    return sum(leaves(each) for each in children) if children else 1


def test_a_parent_is_not_inside_its_child() -> None:
    ours, theirs = family(picograd), family(torch)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert list(ours.child.state_dict()) == list(theirs.child.state_dict())
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert repr(ours) == repr(theirs) and leaves(ours) == leaves(theirs)
    assert list(ours.child._modules) == list(theirs.child._modules) == ["fc"]
    twin = copy.deepcopy(ours)
    assert twin.child.parent is twin and list(twin.state_dict()) == list(ours.state_dict())
    x = Tensor([[1.0, 2.0]])
    step = picograd.jit(ours)
    for _ in range(2):
        assert step(x).tolist() == ours(x).tolist()


class Ring(nn.Module):
    """This class is inside its own part, in an attribute and, hidden, in a list."""

    def __init__(self) -> None:
        self.fc = nn.Linear(2, 2)
        self.part = nn.Linear(2, 2)
        self.part.up = self
        self.part.owners = [self]
        self.items = nn.ModuleList([nn.Linear(1, 1)])


def test_walks_do_not_come_back_to_where_they_are() -> None:
    ring = Ring()
    layers = ("fc", "part", "items.0")
    names = [f"{layer}.{name}" for layer in layers for name in ("weight", "bias")]
    assert list(ring.state_dict()) == names == [name for name, _ in ring.named_parameters()]
    everything = ring.named_modules(remove_duplicate=False)
    assert [name for name, _ in everything] == ["", "fc", "part", "items", "items.0"]
    seen: list[nn.Module] = []
    ring.to(picograd.float64).train().eval().requires_grad_(False).apply(seen.append)
    assert seen == [ring.fc, ring.part, ring.items[0], ring.items, ring]
    ring.zero_grad()
    ring.load_state_dict(ring.state_dict())
    assert list(copy.deepcopy(ring).state_dict()) == names
    assert repr(ring).count("Ring") == 1 and ring._repr_html_().count("Ring") == 1
    assert repr(ring.part).startswith("Linear(")


def test_a_shared_module_is_not_a_ring() -> None:
    layer = nn.Linear(1, 1)
    both = nn.Sequential(layer, nn.Sequential(layer))
    assert list(both.state_dict()) == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert repr(both).count("Linear") == 2 and len(list(both.parameters())) == 2


def test_a_list_of_what_a_module_list_holds_names_nothing() -> None:
    def names(library: Any) -> list[str]:
        class Stack(library.nn.Module):  # type: ignore
            def __init__(self) -> None:
                super().__init__()
                self.blocks = [library.nn.Linear(2, 2), library.nn.ReLU()]
                self.layers = library.nn.ModuleList(self.blocks)

        return [*Stack().state_dict(), repr(Stack())]

    assert names(picograd) == names(torch)


def test_classes_that_load_their_own_state() -> None:
    def loaded(library: Any) -> Any:
        class Queue(library.nn.Module):  # type: ignore
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("kept", library.zeros(2))
                self.register_buffer("added", library.zeros(1))
                self.seen: list[Any] = []

            def _load_from_state_dict(self, state: Any, prefix: str, *others: Any) -> None:
                state.setdefault(prefix + "added", library.ones(1))
                super()._load_from_state_dict(state, prefix, *others)
                self.seen += [prefix, self.kept.tolist(), self.added.tolist(), others[1]]

        model = library.nn.Sequential(Queue())
        state = {"0.kept": library.ones(2) * 3}
        result = model.load_state_dict(state)
        return [model[0].seen, model[0].kept.tolist(), list(state), *map(list, result)]

    assert loaded(picograd) == loaded(torch)


def part_of(lib, log):
    """A part with methods of its own, which is asked where the whole is."""

    class Part(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = lib.nn.BatchNorm1d(2)
            self.plain = lib.ones(1)

        def train(self, mode=True):
            super().train(mode)
            self.norm.eval()  # stays frozen
            return self

        def _apply(self, fn, recurse=True):
            self.plain = fn(self.plain)
            return super()._apply(fn)

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "plain"] = self.plain

        def _load_from_state_dict(
            self, state_dict, prefix, local_metadata, strict, missing_keys, *others
        ):
            self.plain = state_dict.pop(prefix + "plain")
            super()._load_from_state_dict(
                state_dict=state_dict,
                prefix=prefix,
                local_metadata=local_metadata,
                strict=strict,
                missing_keys=missing_keys,
                unexpected_keys=others[0],
                error_msgs=others[1],
            )

        def state_dict(self, *args, **options):
            log.append(sorted(options))
            return super().state_dict(*args, **options)

        def _get_name(self):
            return "Renamed"

    return Part


def test_methods_of_parts_are_asked_as_in_pytorch():
    found = []
    for lib in (picograd, torch):
        log = []
        whole = lib.nn.Sequential(lib.nn.Sequential(part_of(lib, log)()), lib.nn.Linear(2, 2))
        part = whole[0][0]
        whole.train()
        modes = [each.training for each in whole.modules()]
        kinds = [str(whole.to(lib.float64)[0][0].plain.dtype), str(whole.float()[0][0].plain.dtype)]
        state = whole.state_dict()
        state["0.0.plain"] = lib.ones(1) * 5
        whole.load_state_dict(state)
        kinds = [kind.partition(".")[2] for kind in kinds]
        weight = part.__getattr__("norm").__getattr__("weight")
        found.append((modes, kinds, sorted(state), log, part.plain.item(), weight.tolist()))
        assert "(0): Renamed(" in repr(whole)
        with pytest.raises(AttributeError, match="no attribute 'missing'"):
            part.__getattr__("missing")
    assert found[0] == found[1]


def test_arguments_of_to_are_read_for_others() -> None:
    parse = picograd._C._nn._parse_to
    assert parse("cpu", picograd.float16, True) == (
        picograd.device("cpu"),
        picograd.float16,
        True,
        None,
    )
    assert parse(picograd.zeros(1, device="cpu"))[:2] == (picograd.device("cpu"), picograd.float32)
    assert parse(dtype=picograd.float64)[0] is None


def test_a_module_that_loads_all_by_itself_says_what_is_missing():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(Tensor([1.0]))
            self.inside = nn.Linear(1, 1)

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            destination[prefix + "doubled"] = self.weight.detach() * 2

        def _load_from_state_dict(self, state_dict, prefix, *others):
            self.weight.data.copy_(state_dict[prefix + "doubled"] / 2)

    saved, loaded = nn.Sequential(Own()), nn.Sequential(Own())
    saved[0].weight.data.fill_(5.0)
    loaded.load_state_dict(saved.state_dict())
    assert loaded[0].weight.item() == 5.0
    assert loaded[0].inside.weight.equal(saved[0].inside.weight)
    state = saved.state_dict()
    del state["0.inside.bias"]
    with pytest.raises(StateError, match="missing 0.inside.bias"):
        loaded.load_state_dict(state)


def test_what_else_holds_a_buffer_keeps_it() -> None:
    class Rotary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("frequencies", Tensor([1.0, 0.1]), persistent=False)
            self.original = self.frequencies
            self.inner = nn.BatchNorm1d(2)
            self.inner.register_buffer("shared", self.frequencies)

    model = Rotary()
    weight, count = model.inner.weight, model.inner.num_batches_tracked
    assert model.to(weight.device).frequencies is model.original
    model.half()
    assert model.original.dtype is picograd.float32 and model.frequencies.dtype is picograd.float16
    assert model.frequencies is model.inner.shared and model.inner.weight is weight
    assert model.inner.num_batches_tracked is count  # only floats change
    model._apply(lambda x: x * 2)
    assert model.original.tolist() == [1.0, picograd.tensor(0.1).item()]
    assert model.inner.shared.tolist()[0] == 2.0 and model.inner.weight is weight
    assert model._non_persistent_buffers_set == {"frequencies"}
    assert list(model.state_dict())[-1] == "inner.shared"


def test_modules_nested_deeper_than_calls_are_found() -> None:
    model: Any = nn.Linear(1, 1)
    innermost = model
    for _ in range(2000):
        model = nn.Sequential(model)
    path = ".".join("0" * 2000)
    assert model.get_submodule(path) is innermost
    assert [name.count("0") for name, _ in model.named_modules()] == list(range(2001))
