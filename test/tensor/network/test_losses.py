"""Cross-entropy and its kin against PyTorch; test_losses_*.py have the others."""

import numpy as np
import pytest
from nn_support import array, compare, compare_loss, half, torch, unit

from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.nn import functional

TOLERANCE = dict(rtol=1e-5, atol=1e-6)
CLASSES = np.array([1.0, 0.5, 2.0, 1.5], np.float32)


def both(ours, theirs, inputs, target, device):
    """Compare value and gradient of a loss of (inputs, target)."""
    a = Tensor(inputs, device=device, requires_grad=True)
    b = torch.tensor(inputs, requires_grad=True)
    mine, reference = ours(a, Tensor(target, device=device)), theirs(b, torch.tensor(target))
    np.testing.assert_allclose(mine.numpy(), reference.detach().numpy(), **TOLERANCE)
    mine.sum().backward()
    reference.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), **TOLERANCE)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"ignore_index": 2}, {"weight": CLASSES}], ids=str
)
@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 2)], ids=str)
def test_cross_entropy(shape, options, reduction, device):
    logits = np.random.randn(*shape).astype(np.float32) * 3
    target = np.random.randint(0, 4, (shape[0], *shape[2:]))
    target.flat[0], target.flat[1] = 2, 1
    mine = {k: Tensor(v, device=device) if k == "weight" else v for k, v in options.items()}
    theirs = {k: torch.tensor(v) if k == "weight" else v for k, v in options.items()}
    both(
        lambda x, y: functional.cross_entropy(x, y, reduction=reduction, **mine),
        lambda x, y: torch.nn.functional.cross_entropy(x, y, reduction=reduction, **theirs),
        logits,
        target,
        device,
    )


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("weight", [None, CLASSES])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_labels_of_minus_100_do_not_count(name, weight, is_seen, device):
    """The default of PyTorch; `is_seen`: the labels are computed before the loss is recorded."""
    both(
        lambda x, y: getattr(functional, name)(
            x.log_softmax(1),
            y if is_seen else y + Tensor([0], device=device),
            None if weight is None else Tensor(weight, device=device),
        ),
        lambda x, y: getattr(torch.nn.functional, name)(
            x.log_softmax(1), y, None if weight is None else torch.tensor(weight)
        ),
        np.random.randn(5, 4).astype(np.float32),
        np.array([0, -100, 3, 1, -100]),
        device,
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_with_probabilities(smoothing, device):
    target = np.random.dirichlet(np.ones(4), 5).astype(np.float32)
    both(
        lambda x, y: functional.cross_entropy(x, y, label_smoothing=smoothing),
        lambda x, y: torch.nn.functional.cross_entropy(x, y, label_smoothing=smoothing),
        np.random.randn(5, 4).astype(np.float32),
        target,
        device,
    )


@pytest.mark.parametrize("options", [{}, {"ignore_index": 0}, {"reduction": "sum"}], ids=str)
def test_nll_loss(options, device):
    both(
        lambda x, y: functional.nll_loss(x.log_softmax(1), y, **options),
        lambda x, y: torch.nn.functional.nll_loss(x.log_softmax(1), y, **options),
        np.random.randn(6, 3).astype(np.float32),
        np.array([0, 1, 2, 2, 1, 0]),
        device,
    )


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "binary_cross_entropy_with_logits"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_elementwise_losses(name, reduction, device):
    both(
        lambda x, y: getattr(functional, name)(x, y, reduction=reduction),
        lambda x, y: getattr(torch.nn.functional, name)(x, y, reduction=reduction),
        np.random.randn(3, 4).astype(np.float32) * 4,
        np.random.rand(3, 4).astype(np.float32),
        device,
    )


def test_binary_cross_entropy_does_not_overflow(device):
    logits = Tensor([1000.0, -1000.0], device=device)
    target = Tensor([1.0, 0.0], device=device)
    assert functional.binary_cross_entropy_with_logits(logits, target).item() == 0.0


def test_golden_values_of_the_ancestor(device):
    """The skipped tests of cudagrad: logits, label, loss and gradient to three decimals."""
    row = [2.0991, -0.3244, -1.4904, -0.9129, -0.1676, 0.9251, 0.1822, -0.0762, 0.3743, -0.6091]
    gradient = [0.4799, 0.0425, 0.0133, 0.0236, 0.0497, -0.8516, 0.0706, 0.0545, 0.0855, 0.0320]
    logits = Tensor([row], device=device, requires_grad=True)
    loss = functional.cross_entropy(logits, Tensor([5], device=device))
    loss.backward()
    assert abs(loss.item() - 1.9081) < 1e-3
    np.testing.assert_allclose(logits.grad.numpy()[0], gradient, atol=1e-3)


def test_classes_pass_their_options():
    logits, target = Tensor([[1.0, 2.0], [3.0, 0.0]]), Tensor([0, 1])
    loss = nn.CrossEntropyLoss(reduction="none")
    assert repr(loss) == "CrossEntropyLoss()"
    assert loss(logits, target).shape == (2,)
    assert nn.MSELoss()(logits, logits).item() == 0.0
    assert nn.L1Loss(reduction="sum")(logits, logits * 2).item() == 6.0
    assert nn.NLLLoss()(logits, target).item() == -0.5
    assert nn.BCEWithLogitsLoss()(logits * 0, logits * 0).item() == pytest.approx(np.log(2))


def test_wrong_targets_are_named():
    logits = Tensor.zeros(3, 4)
    with pytest.raises(ShapeError, match=r"target of shape \(4,\) .* Fix: .* shape \(3,\)"):
        functional.nll_loss(logits, Tensor([0, 1, 2, 3]))
    with pytest.raises(ShapeError, match=r"mse_loss: .*\(3, 4\).*\(3,\)"):
        functional.mse_loss(logits, Tensor.zeros(3))
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        with pytest.warns(UserWarning, match=rf"{name}: shapes differ: \(3, 4\) and \(4,\)"):
            loss = getattr(functional, name)(logits + 2, Tensor.zeros(4), reduction="none")
        assert loss.equal(getattr(functional, name)(logits + 2, logits, reduction="none"))
    with pytest.raises(ValueRangeError, match="reduction='avg' is unknown"):
        functional.mse_loss(logits, logits, reduction="avg")
    with pytest.raises(DTypeError, match="class numbers must be integers"):
        functional.nll_loss(logits, Tensor([0.0, 1.0, 2.0]))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_binary_cross_entropy_equals_pytorch(reduction, device):
    case = ("BCELoss", {}, lambda: [unit(5, 4), half(5, 4)])
    compare_loss(case, reduction, device)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [None, 2])
def test_cross_entropy_with_weight_and_smoothing(reduction, ignored, device):
    weight = unit(4)
    more = {} if ignored is None else {"ignore_index": ignored}
    options = dict(label_smoothing=0.2, reduction=reduction, **more)
    ours = nn.CrossEntropyLoss(Tensor(weight, device=device), **options)
    reference = torch.nn.CrossEntropyLoss(torch.tensor(weight), **options)
    compare(ours, reference, [array(5, 4, 2), np.arange(10).reshape(5, 2) % 4], device)
    assert list(ours.state_dict()) == list(reference.state_dict()) == ["weight"]


def test_binary_cross_entropy_is_finite_at_the_ends(device):
    x = Tensor([0.0, 1.0, 0.0], device=device, requires_grad=True)
    loss = nn.BCELoss(reduction="none")(x, Tensor([1.0, 0.0, 0.0], device=device))
    loss.sum().backward()
    assert loss.tolist() == [100.0, 100.0, 0.0] and np.isfinite(x.grad.numpy()).all()


def test_binary_cross_entropy_of_what_is_no_probability_is_no_number(device):
    """A layer whose sigmoid was forgotten: its values are not known, and raise nothing."""
    logits = Tensor([2.5, -1.0, 0.5, 0.0, 1.0], device=device, requires_grad=True) * 2
    loss = functional.binary_cross_entropy(logits / 2, Tensor.ones(5, device=device), None, "none")
    assert np.isnan(loss.numpy()).tolist() == [True, True, False, False, False]
    assert loss.tolist()[3:] == [100.0, 0.0]
