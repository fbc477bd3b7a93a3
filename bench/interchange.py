"""PyTorch's weights in picograd: do outputs, one training step and 100 steps' losses agree?

Every model starts in PyTorch, goes through a file (.pt, then .safetensors) and trains on the same
batches in picograd, in PyTorch, and in PyTorch in float64. A difference is the largest one of a
tensor, or of a loss curve, over the largest number in it.

    python bench/interchange.py [--steps 100] [--batch-size 16] [--small] [--only resnet18]
"""

import argparse
import copy
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import picograd
from picograd import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
BATCHES = 8  # different batches, used in turn
# Adam's first step is lr * g / (|g| + eps): where the true gradient is 0 (a bias of keys), rounding
# would decide about the sign of a whole step with the usual eps of 1e-8.
ADAM = dict(lr=1e-3, eps=1e-4)


class TorchBlock(torch.nn.Module):
    """The basic block of ResNet."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outside)
        self.conv2 = torch.nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outside)
        if stride != 1 or inside != outside:
            self.downsample = torch.nn.Sequential(
                torch.nn.Conv2d(inside, outside, 1, stride, bias=False),
                torch.nn.BatchNorm2d(outside),
            )
        else:
            self.downsample = torch.nn.Identity()

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class TorchResNet18(torch.nn.Module):
    """ResNet-18 with torchvision's names."""

    def __init__(self, classes, width):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(width)
        self.maxpool = torch.nn.MaxPool2d(3, 2, 1)
        for number, inside in enumerate([width, width, 2 * width, 4 * width]):
            outside, stride = width << number, 1 if number == 0 else 2
            blocks = TorchBlock(inside, outside, stride), TorchBlock(outside, outside, 1)
            setattr(self, f"layer{number + 1}", torch.nn.Sequential(*blocks))
        self.fc = torch.nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class TorchGPTBlock(torch.nn.Module):
    """A block of GPT-2."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.attn = torch.nn.LayerNorm(width), torch.nn.Module()
        self.attn.c_attn = torch.nn.Linear(width, 3 * width)
        self.attn.c_proj = torch.nn.Linear(width, width)
        self.ln_2, self.mlp = torch.nn.LayerNorm(width), torch.nn.Module()
        self.mlp.c_fc = torch.nn.Linear(width, 4 * width)
        self.mlp.c_proj = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attn.c_attn(self.ln_1(x)).split(width, 2)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn.c_proj(y.transpose(1, 2).reshape(x.shape))
        inside = torch.nn.functional.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh")
        return x + self.mlp.c_proj(inside)


class TorchGPT(torch.nn.Module):
    """GPT with nanoGPT's names."""

    def __init__(self, sizes):
        super().__init__()
        blocks = [TorchGPTBlock(sizes.width, sizes.heads) for _ in range(sizes.layers)]
        parts = dict(wte=torch.nn.Embedding(sizes.vocabulary, sizes.width))
        parts |= dict(wpe=torch.nn.Embedding(sizes.context, sizes.width))
        parts |= dict(h=torch.nn.ModuleList(blocks), ln_f=torch.nn.LayerNorm(sizes.width))
        self.transformer = torch.nn.ModuleDict(parts)
        self.lm_head = torch.nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1 and "ln" not in name:
                torch.nn.init.normal_(parameter, std=0.02)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        x = self.transformer.wte(tokens) + self.transformer.wpe(places)
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


class Case:
    """Two models of one kind, random batches for them, and how they are used."""

    def __init__(self, ours, reference, inputs, classes, optimizer, call=None, targets=()):
        self.ours, self.reference, self.classes = ours, reference, classes
        self.optimizer, self.call = optimizer, call or (lambda model, x: model(x))
        self.inputs, self.targets = inputs, targets

    def batches(self, size):
        """Random inputs and labels, always the same."""
        generator = np.random.default_rng(0)
        for _ in range(BATCHES):
            labels = generator.integers(0, self.classes, (size, *self.targets))
            if self.inputs is None:
                yield generator.integers(0, self.classes, labels.shape), labels
            else:
                yield generator.normal(size=(size, *self.inputs)).astype(np.float32), labels


def resnet18(small):
    """ResNet-18 for CIFAR-shaped batches."""
    from resnet18 import ResNet18

    width = 8 if small else 64
    optimizer = ("SGD", dict(lr=3e-4, momentum=0.9))
    return Case(ResNet18(10, width), TorchResNet18(10, width), (3, 32, 32), 10, optimizer)


def lstm(small):
    """Two layers of LSTM read a sequence, a linear layer names it."""
    length, wide = (6, 8) if small else (32, 128)

    def make(room):
        layers = room.LSTM(wide // 2, wide, num_layers=2, batch_first=True)
        return room.ModuleDict({"lstm": layers, "head": room.Linear(wide, 10)})

    call = lambda model, x: model["head"](model["lstm"](x)[0][:, -1])  # noqa: E731
    optimizer = ("Adam", ADAM)
    return Case(make(nn), make(torch.nn), (length, wide // 2), 10, optimizer, call)


def encoder(small):
    """TransformerEncoder: two layers before a linear one."""
    length, wide = (5, 8) if small else (32, 128)

    def make(room):
        layer = room.TransformerEncoderLayer(wide, 4, 2 * wide, 0.0, "gelu", batch_first=True)
        options = dict(enable_nested_tensor=False)
        layers = room.TransformerEncoder(layer, 2, room.LayerNorm(wide), **options)
        return room.ModuleDict({"encoder": layers, "head": room.Linear(wide, 10)})

    call = lambda model, x: model["head"](model["encoder"](x).mean(1))  # noqa: E731
    optimizer = ("AdamW", ADAM)
    return Case(make(nn), make(torch.nn), (length, wide), 10, optimizer, call)


def gpt(small):
    """The small GPT of examples/gpt.py, with a tied weight."""
    from gpt import GPT, Sizes

    sizes = Sizes(17, 6, 2, 2, 8) if small else Sizes(96, 64, 4, 4, 128)
    optimizer = ("AdamW", ADAM)
    targets = (sizes.context,)
    models = GPT(sizes), TorchGPT(sizes)
    return Case(*models, None, sizes.vocabulary, optimizer, targets=targets)


CASES = {"resnet18": resnet18, "lstm": lstm, "encoder": encoder, "gpt": gpt}


def transfer(case, folder):
    """Load PyTorch's weights through a .pt and a .safetensors file; raise unless they agree."""
    state = case.reference.state_dict()
    torch.save(state, folder / "weights.pt")
    loaded = nn.load(folder / "weights.pt")
    case.ours.load_state_dict(loaded)
    nn.save(loaded, folder / "weights.safetensors")
    again = nn.load(folder / "weights.safetensors")
    for name, value in state.items():
        for found in (case.ours.state_dict()[name], again[name]):
            np.testing.assert_array_equal(found.numpy(), value.numpy(), err_msg=name)
    names = list(case.ours.state_dict()), list(state)
    assert names[0] == names[1], names


def difference(found, wanted):
    """Largest difference over the largest number."""
    scale = float(np.abs(wanted).max(initial=0.0))
    return float(np.abs(found - wanted).max(initial=0.0)) / (scale or 1.0)


def loss_of(room, case, model, x, y):
    """Cross-entropy of the last axis."""
    scores = case.call(model, x)
    return room.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))


def train_reference(case, model, batches, steps, dtype):
    """Train in PyTorch; returns the losses, the first gradients, the first updated weights."""
    name, options = case.optimizer
    optimizer = getattr(torch.optim, name)(model.parameters(), **options)
    losses, gradients, weights = [], {}, {}
    for step in range(steps):
        x, y = map(torch.tensor, batches[step % BATCHES])
        x = x.to(dtype) if x.is_floating_point() else x
        optimizer.zero_grad()
        loss = loss_of(torch, case, model, x, y)
        loss.backward()
        if step == 0:
            gradients = {n: p.grad.numpy().copy() for n, p in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
        if step == 0:
            weights = {n: p.detach().numpy().copy() for n, p in model.named_parameters()}
    return losses, gradients, weights


def train_ours(case, batches, steps, device, is_captured):
    """Train in picograd; returns the same. The first step is seen, the rest may be captured."""
    model = case.ours
    name, options = case.optimizer
    optimizer = getattr(nn.optim, name)(model.parameters(), **options)

    @picograd.jit
    def train(x, y):
        optimizer.zero_grad()
        loss = loss_of(picograd, case, model, x, y)
        loss.backward()
        optimizer.step()
        return loss

    losses, gradients, weights = [], {}, {}
    for number in range(steps):
        x, y = (Tensor(part, device=device) for part in batches[number % BATCHES])
        if number and is_captured:
            losses.append(train(x, y).item())
            continue
        loss = loss_of(picograd, case, model, x, y)
        optimizer.zero_grad()
        loss.backward()
        loss.realize(*[parameter.grad for parameter in model.parameters()])
        if number == 0:
            gradients = {n: p.grad.numpy() for n, p in model.named_parameters()}
        optimizer.step()
        loss.realize(*model.parameters())
        if number == 0:
            weights = {n: p.numpy() for n, p in model.named_parameters()}
        losses.append(loss.item())
    return losses, gradients, weights


def compare(name, steps=100, batch_size=16, small=False, device="cpu", seed=0):
    """Compare one model; returns the differences by name."""
    torch.manual_seed(seed)
    picograd.manual_seed(seed)
    case = CASES[name](small)
    batches = list(case.batches(batch_size))
    with tempfile.TemporaryDirectory() as folder:
        transfer(case, Path(folder))
        case.ours.to(device)
        exact = copy.deepcopy(case.reference).double()
        found = case.ours.eval(), case.reference.eval()
        x = batches[0][0]
        mine = case.call(found[0], Tensor(x, device=device)).numpy()
        theirs = case.call(found[1], torch.tensor(x)).detach().numpy()
        case.ours.train(), case.reference.train()
        start = time.perf_counter()
        losses, gradients, weights = train_ours(case, batches, steps, device, not small)
        seconds = time.perf_counter() - start
    wanted = train_reference(case, case.reference, batches, steps, torch.float32)
    truth = train_reference(case, exact, batches, steps, torch.float64)
    pairs = ((gradients, wanted[1]), (weights, wanted[2]))
    grads, updates = (max(difference(a[n], b[n]) for n in b) for a, b in pairs)
    return dict(
        outputs=difference(mine, theirs),
        gradients=grads,
        weights=updates,
        losses=curve(losses, wanted[0]),
        ours_exact=curve(losses, truth[0]),
        theirs_exact=curve(wanted[0], truth[0]),
        first=losses[0],
        last=losses[-1],
        seconds=seconds,
    )


def curve(a, b):
    """Largest difference of two loss curves over the largest loss; NaN if one has it."""
    return max(abs(p - q) for p, q in zip(a, b)) / max(map(abs, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--small", action="store_true", help="the sizes of the tests")
    parser.add_argument("--only", choices=list(CASES), nargs="*", default=list(CASES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, NumPy {np.__version__}, {options}")
    print("model     outputs gradients weights  losses: to torch, ours to f64, torch to f64  loss")
    for name in options.only:
        found = compare(name, options.steps, options.batch_size, options.small, options.device)
        parts = [f"{found[key]:.1e}" for key in list(found)[:6]]
        text = f"{found['first']:.3f} -> {found['last']:.3f}, {found['seconds']:.1f} s"
        print(f"{name:9}", "  ".join(parts), text, flush=True)


if __name__ == "__main__":
    main()
