"""More programs for `bench/everyday.py`: a size grows each step, and begins anew at `LONGEST`."""

import numpy as np

WORDS, WIDTH, HEADS, LONGEST = 50, 32, 4, 40


def block_of(library):
    nn, functional = library.nn, library.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.three, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, cache):
            batch, length, _ = x.shape
            heads = batch, length, HEADS, WIDTH // HEADS
            three = self.three(self.before(x)).chunk(3, -1)
            q, k, v = (each.view(heads).transpose(1, 2) for each in three)
            if cache:
                k, v = library.cat([cache[0], k], 2), library.cat([cache[1], v], 2)
            if cache is not None:
                cache[:] = k, v
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.down(functional.gelu(self.up(self.between(x))))

    return Block


def loaded(library, values, module):
    with library.no_grad():
        for each in module.parameters():
            drawn = values.standard_normal(tuple(each.shape)) * 0.2
            each.copy_(library.tensor(drawn.astype(np.float32)))
    return module.eval()


def model_of(library, values):
    nn, block = library.nn, block_of(library)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(64, WIDTH)
            self.blocks = nn.ModuleList([block() for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

        def forward(self, words, caches=(None, None), past=0):
            places = library.arange(past, past + words.shape[1])
            x = self.words(words) + self.places(places)
            for each, cache in zip(self.blocks, caches, strict=True):
                x = each(x, cache)
            return self.head(self.norm(x))

    return loaded(library, values, Model())


def prompt(library, values):
    return library.tensor(values.integers(0, WORDS, (1, 4)))


def text_by_history(library, values):
    """Each word of all that came before."""
    model, words = model_of(library, values), None

    def step():
        nonlocal words
        if words is None or words.shape[1] >= LONGEST:
            words = prompt(library, values)
        with library.no_grad():
            best = model(words)[:, -1].argmax(-1, keepdim=True)
            words = library.cat((words, best), 1)
        return best.item()

    return step


def text_by_cache(library, values):
    """Each word of the last one, and of keys and values of all that came before."""
    model, words, past, caches = model_of(library, values), None, LONGEST, []

    def step():
        nonlocal words, past, caches
        if past >= LONGEST:
            words, past, caches = prompt(library, values), 0, [[], []]
        with library.no_grad():
            logits = model(words, caches, past)[:, -1]
            past += words.shape[1]
            words = logits.argmax(-1, keepdim=True)
        return words.item()

    return step


def text_sampled(library, values):
    """Each word is drawn, of the five that are likely."""
    model, words = model_of(library, values), None

    def step():
        nonlocal words
        if words is None or words.shape[1] >= LONGEST:
            words = prompt(library, values)
        with library.no_grad():
            logits = model(words)[:, -1] / 0.8
            least = library.topk(logits, 5)[0][:, [-1]]
            logits[logits < least] = -float("inf")
            shares = library.softmax(logits, -1)
            noise = library.tensor(values.exponential(size=(1, WORDS)).astype(np.float32))
            words = library.cat((words, (shares / noise).argmax(-1, keepdim=True)), 1)
        return shares.max().item()

    return step


def text_by_beams(library, values):
    """The four best texts."""
    model, words, score = model_of(library, values), None, None

    def step():
        nonlocal words, score
        if words is None or words.shape[1] >= LONGEST:
            words, score = library.arange(4)[:, None] + 0, library.zeros(4)
        with library.no_grad():
            shares = library.log_softmax(model(words)[:, -1], -1)
            score, place = (score[:, None] + shares).view(-1).topk(4)
            words = library.cat([words[place // WORDS], (place % WORDS)[:, None]], 1)
        return score[0].item()

    return step


def states_listed(library, values):
    """A recurrent network that attends to all of its states."""
    nn = library.nn
    parts = nn.Embedding(WORDS, WIDTH), nn.GRUCell(2 * WIDTH, WIDTH), nn.Linear(WIDTH, WORDS)
    parts, seen, word = loaded(library, values, nn.ModuleList(parts)), [], None

    def step():
        nonlocal seen, word
        if not seen or len(seen) >= LONGEST:
            seen, word = [library.zeros(1, WIDTH)], library.tensor([1])
        with library.no_grad():
            states = library.stack(seen, 1)
            shares = library.softmax((states * seen[-1][:, None]).sum(-1), -1)
            mean = (shares[..., None] * states).sum(1)
            seen.append(parts[1](library.cat([parts[0](word), mean], -1), seen[-1]))
            word = parts[2](seen[-1]).argmax(-1)
        return word.item()

    return step


GROWING = {
    function.__name__: function
    for function in (text_by_history, text_by_cache, text_sampled, text_by_beams, states_listed)
}
