"""Take the pictures of docs/viewer.md: `python docs/screenshots.py`.

Needs what the tests of the page need: `pip install -e '.[browser]'`, and a Chromium.
"""

import os
import shutil
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import picograd
from picograd import Tensor, nn

FOLDER = Path(__file__).resolve().parent / "images"
COLORS = 48
SIZE = {"width": 1240, "height": 700}


def pages() -> list[str]:
    """Show two versions of a training step."""
    return [picograd.view(*training_step(norm), runs=50, browser=False) for norm in (False, True)]


def training_step(with_norm: bool) -> tuple[object, Tensor, Tensor]:
    """Make a jitted step and its arguments."""
    norm = [nn.LayerNorm(128)] if with_norm else []
    model = nn.Sequential(nn.Linear(64, 128), *norm, nn.ReLU(), nn.Linear(128, 10))
    for parameter in model.parameters():
        parameter.realize()
    optimizer = nn.optim.Adam(model.parameters())

    @picograd.jit
    def train(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y)
        loss.backward()
        optimizer.step()
        return loss

    x = Tensor(np.ones((256, 64), np.float32))
    return train, x, Tensor(np.zeros(256, np.int64))


def store(page: Page, name: str) -> None:
    """Write a picture of a page in few colours, which takes half of the space."""
    picture = Image.open(BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(COLORS).save(FOLDER / f"{name}.png", optimize=True)


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    _, last = pages()
    program = shutil.which("chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=program, args=options)
        page = browser.new_page(viewport=SIZE)
        page.goto(last)
        page.wait_for_selector("body[data-shown]")
        page.keyboard.press("j")
        page.wait_for_selector("#resources")
        page.click("#stages >> text=Loop IR")
        store(page, "viewer")
        page.click("#stages >> text=Machine code")
        page.keyboard.press("t")
        page.select_option("#other", "0")
        page.wait_for_selector("#view table")
        store(page, "viewer-compare")
        browser.close()


if __name__ == "__main__":
    main()
