"""The page in a real browser: skipped where Playwright or a Chromium is missing."""

import os
import shutil

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine.backends import get_device
from picograd.graph import build
from picograd.schedule.schedule import schedule
from picograd.view.gather import gather
from picograd.view.server import Server

playwright = pytest.importorskip("playwright.sync_api")

NAMES = ("chromium", "chromium-browser", "google-chrome")
LAYOUT, SHOWN = 3000, 10_000  # milliseconds for 10,000 nodes; a bound for everything else


@pytest.fixture(scope="module")
def server():
    """Serve a module that has not run, a training step that has, and another of fewer layers."""
    made = Server()
    x = Tensor(np.ones((32, 20), np.float32), device="cpu")
    made.add(gather(network(2), (x,)))
    for depth in (3, 2):
        made.add(gather(trained(network(depth)), (x,)))
    made.add(gather(branching(10_000), ()))
    yield made
    made.close()


def network(depth):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(20, 20), nn.ReLU())]
    model = nn.Sequential(*layers, nn.LayerNorm(20)).to("cpu")
    for parameter in model.parameters():
        parameter.realize()
    return model


def trained(model):
    optimizer = nn.optim.Adam(model.parameters())

    @picograd.jit
    def step(x):
        optimizer.zero_grad()
        loss = (model(x).softmax(1) - x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def branching(count):
    """Plan so many launches: a long chain of products that old values join."""
    leaf = Tensor(np.ones((64, 64), np.float32), device="cpu").realize().node
    weight = Tensor(np.ones((64, 64), np.float32), device="cpu").realize().node
    recent = [leaf]
    for number in range(count):
        made = build.matmul(recent[-1], weight)
        recent.append(build.binary("add", made, recent[0]) if number % 11 == 0 else made)
        recent = recent[-40:]
    return schedule(recent[-1:], get_device("cpu").target, verify=False)


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, NAMES)), None)
    options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with playwright.sync_playwright() as engine:
        try:
            made = engine.chromium.launch(executable_path=program, args=options)
        except playwright.Error as error:
            pytest.skip(f"no Chromium: {str(error).splitlines()[0]}")
        yield made
        made.close()


@pytest.fixture
def page(browser, server):
    """A page of which nothing may go wrong, and no request may leave the machine."""
    made = browser.new_page(viewport={"width": 1300, "height": 850})
    made.set_default_timeout(SHOWN)
    wrong, asked = [], []
    made.on("console", lambda message: wrong.append(message.text))
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("request", lambda request: asked.append(request.url))
    yield made
    made.close()
    assert not wrong
    assert all(url.startswith((server.url, "data:")) for url in asked)


def show(page, server, run):
    page.goto(f"{server.url}#run={run}")
    page.wait_for_selector(f'body[data-shown^="{run}/"]')


def click(page, name):
    """Click on something of the graph."""
    at = page.evaluate("id => picogradView.positionOf(id)", name)
    box = page.locator("#graph canvas").bounding_box()
    page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])


def wait_for_address(page, text, is_there=True):
    """Wait until the page's address has a text, or not; its policy forbids scripts that ask."""
    for _ in range(SHOWN // 20):
        if (text in page.url) == is_there:
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"{page.url}: {text} is {'not ' * is_there}there")


def content(page):
    return page.inner_text("#content")


def test_it_opens_with_the_facts_of_the_plan(page, server):
    show(page, server, 0)
    assert "not yet" in content(page) and "launches" in page.inner_text("#facts")
    assert page.locator("#run option").count() == 4
    assert "run=0" in page.url


def test_a_click_leads_down_to_assembly(page, server):
    show(page, server, 0)
    click(page, "s0")
    page.wait_for_selector("#resources")
    assert "contract" in content(page) and "vector registers" in content(page)
    for stage, text in [
        ("Loop IR", "kernel contract"), ("Tile IR", "picograd/codegen/templates"),
        ("Program", "linearize_cpu.py"), ("Source", "define internal void"),
        ("Machine code", "\tret"),
    ]:  # fmt: skip
        page.click(f"#stages >> text={stage}")
        assert text in page.locator("#content").text_content()


def test_edges_say_why_an_array_is_in_memory(page, server):
    show(page, server, 1)
    plan = server.runs[1].data["plans"][0]
    kept = [
        number for number, (start, end, slot) in enumerate(plan["edges"])
        if plan["slots"][slot]["reasons"] and plan["slots"][slot]["kind"] != "output"
        and start[0] == end[0] == "s"
    ]  # fmt: skip
    assert kept, plan["reasons"]
    number = kept[0]
    page.goto(f"{server.url}#run=1&selected=e{number}")
    page.wait_for_selector("#content .reason")
    assert plan["slots"][plan["edges"][number][2]]["reasons"][0] in content(page)
    page.keyboard.press("3")
    assert page.locator("#view tr").count() > 1


def test_a_click_on_an_edge_and_links_between_arrays_and_kernels(page, server):
    show(page, server, 0)
    plan = server.runs[0].data["plans"][0]
    between = [edge[:2] for edge in plan["edges"]].index(("s0", "s1"))
    click(page, f"e{between}")
    page.wait_for_selector("text=why it is in memory")
    page.click("#content a >> nth=0")
    page.wait_for_selector("#resources")


def test_parameters_have_their_names(page, server):
    show(page, server, 0)
    page.keyboard.press("j")
    page.wait_for_selector("#content >> text=0.weight")


def test_keys(page, server):
    show(page, server, 0)
    page.keyboard.press("j")
    page.wait_for_selector("#stages button")
    assert "selected=s0" in page.url
    page.keyboard.press("]")
    assert page.inner_text('#stages button[aria-selected="true"]') == "Loop IR"
    page.keyboard.press("j")
    wait_for_address(page, "s1")
    page.wait_for_selector("#stages button")
    assert page.inner_text('#stages button[aria-selected="true"]') == "Loop IR"
    page.keyboard.press("k")
    wait_for_address(page, "s0")
    page.keyboard.press("Escape")
    wait_for_address(page, "selected", is_there=False)
    page.keyboard.press("?")
    assert page.is_visible("#keys")


def test_search(page, server):
    show(page, server, 1)
    page.keyboard.press("/")
    page.keyboard.type("reduce float32[32, 20]")
    assert page.locator("#found li").count() > 1
    page.keyboard.press("Enter")
    page.wait_for_selector("#stages button")
    assert "reduce" in content(page)
    page.keyboard.press("Escape")
    assert page.input_value("#search") == ""
    page.fill("#search", "nothing is called so")
    assert not page.is_visible("#found")


def test_the_timeline_selects_and_has_times(page, server):
    show(page, server, 1)
    box = page.locator("#view canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 30)
    last = len(server.runs[1].data["plans"][0]["steps"]) - 1
    wait_for_address(page, f"selected=s{last}")
    page.wait_for_selector("#content >> text=GB/s")


def test_the_roofline_of_what_was_measured(page, server):
    show(page, server, 1)
    page.click("text=roofline")
    page.wait_for_selector("#view .uplot canvas")
    assert "GFLOP/s over operations a byte" in page.inner_text("#view")
    page.select_option("#run", "0")
    page.wait_for_selector("#view >> text=No kernel was measured")


def test_two_runs_are_compared(page, server):
    show(page, server, 1)
    page.select_option("#other", "2")
    page.wait_for_selector("#view table")
    assert "launches" in page.inner_text("#view") and page.locator("#view tr").count() > 4
    page.select_option("#other", "0")
    page.wait_for_selector("#view tr.fresh a")
    page.click("#view tr.fresh a >> nth=0")
    wait_for_address(page, "selected=s")


def test_light_and_dark(page, server):
    show(page, server, 0)
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    after = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert before != after
    page.reload()
    page.wait_for_selector("body[data-shown]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == after


def test_ten_thousand_nodes(page, server):
    assert len(server.runs[3].data["plans"][0]["steps"]) >= 10_000
    show(page, server, 3)
    layout, drawn = page.evaluate("[+document.body.dataset.layout, +document.body.dataset.drawn]")
    assert 0 < layout <= drawn <= LAYOUT
    page.keyboard.press("f")
    page.fill("#search", "9999")
    page.keyboard.press("Enter")
    page.wait_for_selector("#resources")
    assert page.evaluate("picogradView.positionOf('s9999')")["y"] > 0


def test_wrong_tokens_show_nothing(browser, server):
    made = browser.new_page()
    wrong = server.url.replace(server.token, server.token[::-1])
    assert made.goto(wrong).status == 404
    assert made.content().count("picograd") == 0
    made.goto("about:blank")
    script = "url => fetch(url).then(() => 'answered', () => 'refused')"
    assert made.evaluate(script, f"{server.url}api/runs") == "refused"
    made.close()
