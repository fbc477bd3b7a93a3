"""Host calls that draw: NumPy's samplers, keyed by random bits that the graph draws.

    drawn(parameters..., key)    options = (a name of SAMPLERS,)

Parameters are float64 of one shape, which is that of the draws. `key` is a last axis of four words
of 32 bits, as float64: the key of a Philox generator (Salmon et al., 2011). Equal keys give equal
draws. Parameters outside of a distribution give NaN. Under `vmap` each row has a key of its own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from picograd.graph.host_call import HostFunction, functions

Array = Any
WORDS = 4  # of a key
MOST = float(1 << 62)  # NumPy refuses rates whose draws are beyond int64, and trials of 64 bits


def draw_poisson(source: Any, rates: Array) -> Array:
    """Draw counts of events."""
    is_fine = (rates >= 0) & (rates < MOST)
    fine_rates = np.where(is_fine, rates, 0)
    draws = source.poisson(fine_rates)
    return np.where(is_fine, draws, np.nan)


def draw_binomial(source: Any, trials: Array, chance: Array) -> Array:
    """Draw counts of successes."""
    is_count = (trials >= 0) & (trials < MOST)
    is_fine = is_count & (chance >= 0) & (chance <= 1)
    fine_trials = np.where(is_fine, trials, 0)
    fine_chance = np.where(is_fine, chance, 0)
    whole = fine_trials.astype(np.int64)
    draws = source.binomial(whole, fine_chance)
    return np.where(is_fine, draws, np.nan)


def draw_gamma(source: Any, shapes: Array) -> Array:
    """Draw gamma numbers of rate 1."""
    is_fine = shapes >= 0
    fine_shapes = np.where(is_fine, shapes, 1)
    draws = source.standard_gamma(fine_shapes)
    return np.where(is_fine, draws, np.nan)


def draw_log_gamma(source: Any, shapes: Array) -> Array:
    """Draw logarithms of gamma numbers.

    A draw of shape a is one of shape a + 1 times u ** (1 / a), which is too small for floats
    where a is.
    """
    larger = draw_gamma(source, shapes + 1.0)
    units = source.random(shapes.shape)
    return np.log(larger) + np.log1p(-units) / shapes


def draw_angles(source: Any, location: Array, spread: Array) -> Array:
    """Draw angles of the von Mises distribution."""
    is_fine = spread >= 0
    fine_spread = np.where(is_fine, spread, 0)
    draws = source.vonmises(location, fine_spread)
    return np.where(is_fine, draws, np.nan)


SAMPLERS: dict[str, Callable[..., Array]] = {
    "poisson": draw_poisson,
    "binomial": draw_binomial,
    "gamma": draw_gamma,
    "log_gamma": draw_log_gamma,
    "vonmises": draw_angles,
}


def drawn(*arrays: Array) -> Array:
    """Draw by the sampler that the last argument names, each row of keys by its own generator."""
    *parameters, words, name = arrays
    found = np.zeros(parameters[0].shape)
    if not found.size:
        return found
    pairs = words.reshape(-1, WORDS // 2, 2).astype(np.uint64)
    keys = pairs[..., 0] | pairs[..., 1] << np.uint64(32)
    count = len(keys)
    rows = [each.reshape(count, -1) for each in parameters]
    draws = found.reshape(count, -1)
    for place, key in enumerate(keys):
        source = np.random.Generator(np.random.Philox(key=key))
        given = [each[place] for each in rows]
        draws[place] = SAMPLERS[name](source, *given)
    return found


DRAWS = functions(HostFunction("drawn", drawn, lambda first, *rest: first))
