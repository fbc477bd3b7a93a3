"""A language model of a Hugging Face folder writes text, token by token.

The folder has `config.json`, `tokenizer.json` and weights in one or more `.safetensors`: Llama,
SmolLM, Mistral, Qwen2, Qwen3, GPT-2 and models of their kind. On a machine with a network,
`hf download HuggingFaceTB/SmolLM2-135M --local-dir smollm` fetches one; it can be carried over.

    python examples/llm.py smollm --prompt "The sea is"
    python examples/llm.py smollm --prompt "The sea is" --prompt "A poem:" --temperature 0
    python examples/llm.py smollm --tokens --prompt "504 4098"    # without the `tokenizers` package

Several prompts are one batch. Keys and values of earlier tokens are kept in a cache of one size
(--context), so that every token costs the same.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from common import check_device, natural, positive
from decoder import Decoder, Sizes
from gpt import GPT, load_gpt2
from gpt import Sizes as GPTSizes
from writing import Numbers, Words, show

import picograd
from picograd import nn

DECODERS = ("llama", "mistral", "qwen2", "qwen3", "smollm")


def read_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", help="config.json, tokenizer.json, weights")
    parser.add_argument("--prompt", action="append", help="may be given several times")
    parser.add_argument("--length", type=natural, default=200, help="tokens to write")
    parser.add_argument("--context", type=positive, default=1024, help="tokens in the cache")
    parser.add_argument("--temperature", type=float, default=0.7, help="0: the likeliest")
    parser.add_argument("--most", type=float, default=0.95, help="chance of the tokens to draw of")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default=None, help="cpu, cuda; default: CUDA if usable")
    parser.add_argument("--bfloat16", action="store_true", help="weights and cache in bfloat16")
    parser.add_argument("--tokens", action="store_true", help="prompts are numbers of tokens")
    options = parser.parse_args(arguments)
    check_device(parser, options.device)
    return options


def explain(folder, name="llm", usage=None):
    """End with what an example misses in its folder, and how to get it."""
    lines = __doc__.split("\n\n")
    found = "no folder was given" if folder is None else f"{folder} has no config.json"
    sys.exit(f"{name}.py: {found}.\n\n{lines[1]}\n\n{usage or lines[2]}")


def decoder_sizes(config, context):
    """Read what Llama and its kin say of themselves."""
    rotary = config.get("rope_parameters") or {}
    stretch = config.get("rope_scaling") or rotary
    kind = stretch.get("rope_type", stretch.get("type", "default"))
    if kind not in ("default", "llama3"):
        sys.exit(f"llm.py: rope_scaling {kind!r} is not known here: default and llama3 are")
    heads, family = config["num_attention_heads"], config["model_type"]
    return Sizes(
        vocabulary=config["vocab_size"],
        context=min(context, config.get("max_position_embeddings", context)),
        width=config["hidden_size"],
        inside=config["intermediate_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        key_heads=config.get("num_key_value_heads", heads),
        head_size=config.get("head_dim") or config["hidden_size"] // heads,
        base=config.get("rope_theta") or rotary.get("rope_theta", 10000.0),
        epsilon=config.get("rms_norm_eps", 1e-6),
        bias=config.get("attention_bias", False) or family == "qwen2",
        head_norms=family == "qwen3",
        stretch=stretch if kind == "llama3" else {},
    )


def read_weights(folder):
    """Read all weights of a folder, of one file or several."""
    state = {}
    for path in sorted(folder.glob("*.safetensors")):
        state |= nn.load(path)
    if not state:
        sys.exit(f"llm.py: {folder} has no .safetensors with weights")
    return state


def load(folder, context, device=None, dtype=picograd.float32):
    """Build the model of a folder and load its weights."""
    config = json.loads((folder / "config.json").read_text())
    family = config.get("model_type")
    state = {name.removeprefix("model."): each for name, each in read_weights(folder).items()}
    if family == "gpt2":
        size = min(context, config["n_positions"])
        layers, heads, width = (config[f"n_{name}"] for name in ("layer", "head", "embd"))
        model = GPT(GPTSizes(config["vocab_size"], size, layers, heads, width))
        load_gpt2(model, state)
    elif family in DECODERS:
        model = Decoder(decoder_sizes(config, context))
        state.setdefault("lm_head.weight", state["embed_tokens.weight"])
        model.load_state_dict({name: each for name, each in state.items() if "rotary" not in name})
    else:
        known = ", ".join(("gpt2", *DECODERS))
        sys.exit(f"llm.py: model_type {family!r} is not known here: {known} are")
    return model.to(device, dtype) if device else model.to(dtype)


def find_codec(options):
    """Choose what turns prompts into tokens."""
    if options.tokens:
        return Numbers()
    path = options.folder / "tokenizer.json"
    if not path.exists():
        sys.exit(f"llm.py: {path} is missing; --tokens takes prompts as numbers")
    try:
        return Words(path)
    except ImportError:
        sys.exit("llm.py: pip install tokenizers, or give prompts as numbers with --tokens")


def main(arguments=None):
    """Load, write; returns the texts."""
    options = read_options(arguments)
    if options.folder is None or not (options.folder / "config.json").exists():
        explain(options.folder)
    codec = find_codec(options)
    dtype = picograd.bfloat16 if options.bfloat16 else picograd.float32
    start = time.perf_counter()
    model = load(options.folder, options.context, options.device, dtype)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{count:,} parameters, {time.perf_counter() - start:.1f} s to load", file=sys.stderr)
    prompts = options.prompt or ["1 2 3" if options.tokens else "Once upon a time"]
    start = time.perf_counter()
    chosen = {"temperature": options.temperature, "seed": options.seed, "most": options.most}
    texts = show(model, codec, prompts, options.length, **chosen)
    passed = time.perf_counter() - start
    rate = options.length * len(prompts) / passed
    print(f"{rate:.1f} tokens a second, compilation included", file=sys.stderr)
    return texts


if __name__ == "__main__":
    main()
