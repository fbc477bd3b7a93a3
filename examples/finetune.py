"""A language model learns a style by few weights: low-rank adaptation (Hu et al., 2021).

The weights of a Hugging Face folder (examples/llm.py says which) stay as they are. Beside the maps
to queries and values stand two thin ones, whose product is added: some thousandths of the weights.
They alone are trained, on two novels that ship with the examples or on a text of yours, and saved.

    python examples/finetune.py smollm --steps 200 --prompt "My dear friend, "
    python examples/finetune.py smollm --resume --steps 0 --prompt "My dear friend, "
"""

from pathlib import Path

import numpy as np
from common import OUTPUT, Clock, existing, natural, positive, read_options, shipped_text
from gpt import train
from llm import explain, find_codec, load
from writing import show

import picograd
from picograd import nn

STEPS = 200
ADAPTED = ("q_proj", "v_proj", "c_attn")  # of Llama and its kin; of GPT-2
SAVED = OUTPUT / "adapters.safetensors"


class Adapter(nn.Module):
    """A linear map that stays as it is, and a thin product beside it that is 0 at first."""

    def __init__(self, kept, rank):
        self.kept = kept
        self.down = nn.Linear(kept.in_features, rank, bias=False)
        self.up = nn.Linear(rank, kept.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.kept(x) + self.up(self.down(x))


def adapt(model, rank):
    """Freeze a model and put adapters beside its maps; returns their parameters by name."""
    for parameter in model.parameters():
        parameter.requires_grad = False
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in ADAPTED and isinstance(child, nn.Linear):
                weight = child.weight
                setattr(module, name, Adapter(child, rank).to(weight.device, weight.dtype))
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def more_options(parser):
    parser.add_argument("folder", type=Path, nargs="?", help="config.json, tokenizer.json, weights")
    parser.add_argument("--text", type=existing, help="a file to learn; default: two novels")
    parser.add_argument("--rank", type=positive, default=8, help="of the added products")
    parser.add_argument("--context", type=positive, default=128, help="tokens of a piece")
    parser.add_argument("--resume", action="store_true", help=f"go on from {SAVED.name}")
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16")
    parser.add_argument("--tokens", action="store_true", help="text and prompt are numbers")
    parser.add_argument("--prompt", default="It is a truth ")
    parser.add_argument("--length", type=natural, default=100, help="tokens to write")


def main(arguments=None):
    """Train the adapters, write text before and after; returns the losses."""
    options = read_options(__doc__, arguments, batch_size=4, more=more_options)
    if options.folder is None or not (options.folder / "config.json").exists():
        explain(options.folder, "finetune", __doc__.split("\n\n")[2])
    clock, codec = Clock(), find_codec(options)
    picograd.manual_seed(options.seed)
    model = load(options.folder, options.context, options.device)
    adapters = adapt(model, options.rank)
    if options.resume:
        model.load_state_dict(nn.load(SAVED), strict=False)
    count, most = (sum(p.numel() for p in each) for each in (adapters.values(), model.parameters()))
    print(f"{count:,} of {most:,} parameters are trained")
    show(model, codec, [options.prompt], options.length, seed=options.seed)

    def keep(*_):
        SAVED.parent.mkdir(exist_ok=True)
        nn.save({name: each.detach() for name, each in adapters.items()}, SAVED)

    steps = STEPS if options.steps is None else options.steps
    optimizer = nn.optim.AdamW(adapters.values(), 1e-3, weight_decay=0.0)
    text = options.text.read_text() if options.text else shipped_text()
    tokens = np.array(codec.encode(text)) if steps else []
    losses = train(model, optimizer, tokens, options, steps, 0, clock, keep)
    if steps:
        show(model, codec, [options.prompt], options.length, seed=options.seed)
    print(f"seconds: {clock}")
    return losses


if __name__ == "__main__":
    main()
