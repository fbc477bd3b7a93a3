"""Everyday programs of numbers for `bench/everyday.py`: no network learns in them."""

import math

import numpy as np


def kmeans(library, values):
    points = library.tensor(values.standard_normal((300, 2)).astype(np.float32))
    centers = points[:5].clone()

    def step():
        nonlocal centers
        distances = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(-1)
        labels = distances.argmin(1)
        chosen = library.nn.functional.one_hot(labels, 5).float()
        counts = chosen.sum(0).clamp(min=1.0)
        moved = (chosen.T @ points) / counts[:, None]
        shift = (moved - centers).norm().item()
        centers = moved
        if shift < 1e-4:
            centers = points[values.integers(0, 300, 5).tolist()].clone()
        return shift

    return step


def power_iteration(library, values):
    matrix = values.standard_normal((40, 40)).astype(np.float32)
    matrix = library.tensor(matrix @ matrix.T / 40)
    vector = library.ones(40)

    def step():
        nonlocal vector
        for _ in range(10):
            vector = matrix @ vector
            vector = vector / vector.norm()
        return (vector @ matrix @ vector).item()

    return step


def conjugate_gradient(library, values):
    matrix = values.standard_normal((30, 30)).astype(np.float32)
    matrix = library.tensor(matrix @ matrix.T / 30 + np.eye(30, dtype=np.float32))
    target = library.tensor(values.standard_normal(30).astype(np.float32))

    def step():
        x = library.zeros(30)
        residual = target - matrix @ x
        direction = residual.clone()
        square = residual @ residual
        for _ in range(20):
            product = matrix @ direction
            alpha = square / (direction @ product)
            x = x + alpha * direction
            residual = residual - alpha * product
            following = residual @ residual
            if following.item() < 1e-6:
                break
            direction = residual + (following / square) * direction
            square = following
        return x.sum().item()

    return step


def game_of_life(library, values):
    world = library.tensor((values.random((32, 32)) < 0.4).astype(np.int64))

    def step():
        nonlocal world
        neighbours = sum(
            library.roll(world, (i, j), (0, 1))
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        born = (world == 0) & (neighbours == 3)
        lives = (world == 1) & ((neighbours == 2) | (neighbours == 3))
        world = (born | lives).long()
        return world.sum().item()

    return step


def kalman(library, values):
    move = library.tensor([[1.0, 0.0, 0.1, 0.0], [0.0, 1.0, 0.0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1]])
    seen = library.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    process, noise = 0.01 * library.eye(4), 0.1 * library.eye(2)
    state, spread = library.zeros(4), library.eye(4)

    def step():
        nonlocal state, spread
        measured = library.tensor(values.standard_normal(2).astype(np.float32))
        state = move @ state
        spread = move @ spread @ move.T + process
        innovation = measured - seen @ state
        gain = spread @ seen.T @ library.linalg.inv(seen @ spread @ seen.T + noise)
        state = state + gain @ innovation
        spread = (library.eye(4) - gain @ seen) @ spread
        return state.norm().item()

    return step


def ray_marcher(library, values):
    ys, xs = library.meshgrid(
        library.linspace(-1, 1, 24), library.linspace(-1, 1, 24), indexing="ij"
    )
    directions = library.stack([xs, ys, library.ones_like(xs)], -1)
    directions = directions / directions.norm(dim=-1, keepdim=True)
    angle = 0.0

    def scene(points, center):
        sphere = (points - center).norm(dim=-1) - 0.8
        floor = points[..., 1] + 1.0
        return library.minimum(sphere, floor)

    def step():
        nonlocal angle
        angle += 0.1
        center = library.tensor([math.sin(angle), 0.0, 3.0])
        depth = library.zeros(24, 24)
        for _ in range(16):
            depth = depth + scene(directions * depth[..., None], center)
        image = (depth < 10).float() / (1 + depth * depth)
        return image.mean().item()

    return step


def n_body(library, values):
    position = library.tensor(values.standard_normal((12, 3)).astype(np.float32))
    velocity = library.zeros(12, 3)
    mass = library.tensor(values.random(12).astype(np.float32) + 0.5)

    def step():
        nonlocal position, velocity
        for _ in range(4):
            apart = position[None] - position[:, None]
            distance = (apart**2).sum(-1) + 0.1
            force = (mass[None, :, None] * apart / distance[..., None] ** 1.5).sum(1)
            velocity = velocity + 0.001 * force
            position = position + 0.001 * velocity
        return (0.5 * mass * (velocity**2).sum(-1)).sum().item()

    return step


def image_filters(library, values):
    picture = library.tensor(values.random((1, 3, 32, 32)).astype(np.float32))
    functional = library.nn.functional
    across = library.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]).reshape(1, 1, 3, 3)

    def step():
        shift = int(values.integers(1, 6))
        image = library.roll(picture, shift, 3)
        gray = (image * library.tensor([0.3, 0.59, 0.11])[None, :, None, None]).sum(1, keepdim=True)
        blurred = functional.avg_pool2d(functional.pad(gray, (1, 1, 1, 1), mode="reflect"), 3, 1)
        edges = functional.conv2d(blurred, across, padding=1)
        down = functional.conv2d(blurred, across.transpose(2, 3), padding=1)
        strength = (edges**2 + down**2).sqrt()
        return (strength > strength.mean()).float().mean().item() + strength.max().item()

    return step


def spectrogram(library, values):
    window = library.hann_window(64)
    times = library.arange(1024) / 1024.0
    pitch = 50.0

    def step():
        nonlocal pitch
        pitch = 50.0 + (pitch + 7.0) % 100
        signal = library.sin(2 * math.pi * pitch * times)
        frames = signal.unfold(0, 64, 32) * window
        power = library.fft.rfft(frames).abs() ** 2
        decibels = 10 * library.log10(power + 1e-6)
        loudest = power.mean(0).argmax().item()
        return decibels.mean().item() + loudest

    return step


def tsne(library, values):
    data = library.tensor(values.standard_normal((40, 8)).astype(np.float32))
    near = library.exp(-(library.cdist(data, data) ** 2) / 8) * (1 - library.eye(40))
    near = near / near.sum()
    places = library.tensor(values.standard_normal((40, 2)).astype(np.float32) * 0.1)
    speed = library.zeros(40, 2)

    def step():
        nonlocal places, speed
        apart = places[:, None] - places[None]
        kernel = 1 / (1 + (apart**2).sum(-1))
        kernel.fill_diagonal_(0)
        shared = kernel / kernel.sum()
        gradient = 4 * (((near - shared) * kernel)[..., None] * apart).sum(1)
        speed = 0.8 * speed - 5.0 * gradient
        places = places + speed
        places = places - places.mean(0)
        return (near * library.log((near + 1e-9) / (shared + 1e-9))).sum().item()

    return step


def pca(library, values):
    mixing = library.tensor(values.standard_normal((6, 6)).astype(np.float32))

    def step():
        data = library.tensor(values.standard_normal((100, 6)).astype(np.float32)) @ mixing
        centered = data - data.mean(0)
        _, singular, right = library.linalg.svd(centered, full_matrices=False)
        shares = singular**2 / (singular**2).sum()
        kept = centered @ right[:2].T
        restored = kept @ right[:2]
        error = ((restored - centered) ** 2).mean()
        return shares[:2].sum().item() + error.item()

    return step


def beam_search(library, values):
    table = library.tensor(values.standard_normal((20, 20)).astype(np.float32))
    width = 4

    def step():
        beams = [([0], 0.0)]
        scores = library.log_softmax(table + float(values.random()), -1)
        for _ in range(6):
            candidates = []
            for tokens, score in beams:
                best, places = library.topk(scores[tokens[-1]], width)
                for value, place in zip(best.tolist(), places.tolist(), strict=True):
                    candidates.append(([*tokens, place], score + value))
            beams = sorted(candidates, key=lambda pair: -pair[1])[:width]
        return beams[0][1]

    return step


def annealing(library, values):
    towns = library.tensor(values.random((15, 2)).astype(np.float32))
    order = library.arange(15)
    temperature = 1.0

    def length(tour):
        visited = towns[tour]
        return (visited - library.roll(visited, 1, 0)).norm(dim=1).sum()

    def step():
        nonlocal order, temperature
        for _ in range(5):
            i, j = sorted(values.choice(15, 2, replace=False).tolist())
            tried = order.clone()
            tried[i : j + 1] = order[i : j + 1].flip(0)
            change = (length(tried) - length(order)).item()
            if values.random() < math.exp(min(0.0, -change / temperature)):
                order = tried
            temperature *= 0.999
        return length(order).item()

    return step


def value_iteration(library, values):
    moves = values.random((4, 25, 25)).astype(np.float32)
    moves = library.tensor(moves / moves.sum(-1, keepdims=True))
    rewards = library.tensor(values.standard_normal((25, 4)).astype(np.float32))
    state = library.zeros(25)

    def step():
        nonlocal state
        worth = rewards + 0.9 * (moves @ state).T
        best, policy = worth.max(1)
        change = (best - state).abs().max().item()
        state = best
        return change + policy.sum().item()

    return step


NUMBERS = {
    function.__name__: function
    for function in (
        kmeans,
        power_iteration,
        conjugate_gradient,
        game_of_life,
        kalman,
        ray_marcher,
        n_body,
        image_filters,
        spectrogram,
        tsne,
        pca,
        beam_search,
        annealing,
        value_iteration,
    )
}
