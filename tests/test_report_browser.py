"""The page of a model in a browser: sorting, search, the map, screens of any kind."""

import shutil
import time

import numpy as np
import pytest

from comtl import BiFactorClassifier, BiFactorRegressor, HierarchicalRegressor
from comtl.evaluation import compare
from comtl.show.page import write_report
from pages import large_model

sync_api = pytest.importorskip(
    "playwright.sync_api", reason='the browser is driven by playwright: pip install "comtl[test]"'
)
BROWSER = shutil.which("chromium")
EVIL = "</script><script>alert(1)</script>"
WIDE = {"width": 1200, "height": 900}

pytestmark = [
    pytest.mark.skipif(
        BROWSER is None, reason="no browser: install chromium (apt-get install chromium)"
    ),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        try:
            running = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"{BROWSER} does not start: {error.message.splitlines()[0]}")
        yield running
        running.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Page of a model with a comparison; one task has a name that would like to be a script."""
    rng = np.random.default_rng(0)
    names = np.array([EVIL, "Ånge", *(f"town {i}" for i in range(2, 12))])
    X, task = rng.normal(size=(240, 4)), np.repeat(names, 20)
    own = np.repeat(rng.normal(size=12), 20)
    y = X[:, 0] * (1.0 + own) + own + 0.5 * rng.normal(size=240)
    model = HierarchicalRegressor().fit(X, y, task=task)
    path = tmp_path_factory.mktemp("small") / "report.html"
    found = compare(model, X, y, task)
    return write_report(path, model, comparison=found, notes=[EVIL], title="Towns"), model, found


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Page of 1,000 tasks and 5,000 features."""
    model, found = large_model()
    path = tmp_path_factory.mktemp("large") / "report.html"
    return write_report(path, model, comparison=found)


@pytest.fixture
def opened(browser):
    """Function that opens a page; at the end nothing was logged or fetched beside the page."""
    contexts, trouble = [], []

    def start(path, **settings):
        context = browser.new_context(**({"viewport": WIDE} | settings))
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: said.type == "error" and trouble.append(said.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        own = path.as_uri()
        page.on("request", lambda asked: asked.url == own or trouble.append(asked.url))
        page.goto(own)
        page.wait_for_selector("html[data-ready]")
        return page

    yield start
    for context in contexts:
        context.close()
    assert trouble == []


def column(page, number):
    cells = f"#task-table tbody tr > :nth-child({number})"
    return page.locator(cells).all_text_contents()


def test_names_are_text(opened, small):
    page = opened(small[0])
    assert EVIL in column(page, 1) and page.locator("#notes li").text_content() == EVIL
    assert page.locator("h1").text_content() == "Towns"
    assert page.locator("script").count() == 2


def test_table_sorts(opened, small):
    page, _, found = opened(small[0]), *small[1:]
    errors = page.get_by_role("columnheader", name="RMSE, model")
    errors.get_by_role("button").click()
    assert errors.get_attribute("aria-sort") == "descending"
    values = [float(text) for text in column(page, 4)]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(found.errors["model"].max(), rel=1e-3)
    errors.get_by_role("button").press("Enter")
    assert errors.get_attribute("aria-sort") == "ascending"
    assert [float(text) for text in column(page, 4)] == values[::-1]
    task = page.get_by_role("columnheader", name="Task", exact=False).first
    assert task.get_attribute("aria-sort") == "none"
    task.get_by_role("button").click()
    names = column(page, 1)
    assert names.index("town 2") < names.index("town 10")


def test_table_searches(opened, small):
    page = opened(small[0])
    page.get_by_label("Search").fill("ÅN")
    assert column(page, 1) == ["Ånge"]
    assert page.locator("#found").text_content() == "1 of 12 tasks"
    page.get_by_label("Search").fill("nowhere")
    assert column(page, 1) == []
    page.get_by_label("Search").fill("")
    page.locator("#which").select_option("gain")
    _, model, found = small
    clear = found.loss_reduction["separate"] > 2 * found.loss_reduction_se["separate"]
    assert set(column(page, 1)) == set(model.tasks_[clear].tolist())


def test_chosen_task_shows_its_weights_and_neighbours(opened, small):
    page, model = opened(small[0]), small[1]
    page.get_by_role("button", name="town 7", exact=True).first.click()
    assert page.locator("#task-name").text_content() == "town 7"
    weights = model.coef_frame().loc["town 7"]
    parts = (page.locator(f"#weights tbody {one}") for one in ("th", "td:last-child"))
    shown = dict(zip(*(part.all_text_contents() for part in parts), strict=True))
    assert set(shown) == {"x0", "x1", "x2", "x3"} and next(iter(shown)) == "x0"
    for name, text in shown.items():
        assert float(text.replace("−", "-")) == pytest.approx(weights[name], rel=0.01)
    first = page.locator("#nearest button").first
    name = first.text_content()
    first.press("Enter")
    assert page.locator("#task-name").text_content() == name
    page.get_by_label("Task", exact=True).select_option(label="town 3")
    assert page.locator("#task-name").text_content() == "town 3"
    assert page.locator("tr.chosen th").text_content() == "town 3"


def test_map_tells_what_the_pointer_is_at(opened, small):
    page, model = opened(small[0]), small[1]
    canvas = page.locator("#map-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 20)
    told = page.locator("#map-value").text_content()
    task = told.removeprefix("Task ").split(" (cluster")[0]
    feature = told.split("feature ")[1].split(" (cluster")[0]
    value = float(told.split("weight ")[1].replace("−", "-"))
    spread = 1.0 / model._units.inverse_scale[int(feature[1:])]
    expected = model.coef_frame().loc[task, feature] * spread
    assert value == pytest.approx(expected, rel=1e-2, abs=1e-3)
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#task-name").text_content() == task


def test_map_follows_the_arrow_keys(opened, small):
    page = opened(small[0])
    canvas, told = page.locator("#map-canvas"), page.locator("#map-value")
    canvas.focus()
    texts = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        canvas.press(key)
        texts.append(told.text_content())
    first, second, third = texts
    assert first.startswith("Task ") and len(set(texts)) == 3
    assert first.split(",")[0] == second.split(",")[0] != third.split(",")[0]
    for key in ("ArrowUp", "ArrowLeft"):
        canvas.press(key)
    assert told.text_content() == first
    for key in ("Shift+ArrowDown", "End", "Enter"):
        canvas.press(key)
    name = told.text_content().removeprefix("Task ").split(" (cluster")[0]
    assert page.locator("#task-name").text_content() == name


def test_everything_is_reached_by_tab_and_focus_shows(opened, small):
    page = opened(small[0])
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        if "map-canvas" in reached:
            break
    assert {"A", "search", "which", "BUTTON", "task-choice", "map-canvas"} <= reached
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def luminance(page):
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour.strip("rgb()").split(",")[:3]) / 3


def corner(page):
    """Mean brightness of the map's picture, strips left out."""
    code = """() => {
      const c = document.getElementById('map-canvas');
      const d = c.getContext('2d').getImageData(c.width / 2, 20, c.width / 3, 100).data;
      let sum = 0;
      for (let i = 0; i < d.length; i += 4) sum += d[i] + d[i + 1] + d[i + 2];
      return sum / (3 * d.length / 4);
    }"""
    return page.evaluate(code)


def test_dark_and_light(opened, small):
    page = opened(small[0], color_scheme="light")
    light = luminance(page), corner(page)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(100)
    dark = luminance(page), corner(page)
    assert light[0] > 240 and dark[0] < 40
    # The map is drawn anew in colours that suit the ground.
    assert dark[1] < light[1] - 30


def test_print_is_light_and_fits(opened, small):
    page = opened(small[0], color_scheme="dark", viewport={"width": 794, "height": 1100})
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert luminance(page) > 240 and corner(page) > 120
    assert not page.locator("nav").is_visible() and not page.locator("#search").is_visible()
    assert page.locator("#summary").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("size", ["small", "large"])
def test_phone_has_no_sideways_scroll(opened, small, large, size):
    path = small[0] if size == "small" else large
    page = opened(path, viewport={"width": 375, "height": 700}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.locator("#map-canvas").tap()
    assert page.locator("#map-value").text_content().startswith("Task ")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_large_page_is_small_and_quick(opened, large):
    assert large.stat().st_size < 3e6
    taken = []
    for _ in range(3):
        # The quickest of three: other work may slow down one of them.
        start = time.perf_counter()
        page = opened(large)
        page.get_by_label("Search").fill("number 99")
        assert page.locator("#found").text_content() == "11 of 1,000 tasks"
        page.hover("#map-canvas", position={"x": 300, "y": 200})
        assert "mean weight" in page.locator("#map-value").text_content()
        taken.append(time.perf_counter() - start)
    assert min(taken) < 3.0
    page.get_by_label("Search").fill("")
    assert len(column(page, 1)) == 100
    page.get_by_role("button", name="Show 100 more").click()
    assert len(column(page, 1)) == 200
    assert page.locator("#weights tbody tr").count() == 15
    page.locator("#all-weights").click()
    assert page.locator("#weights tbody tr").count() == 40


def test_classes_are_chosen_beside_the_task(opened, tmp_path):
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(120, 3)), np.repeat([1, 2], 60)
    labels = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] * task, [-1.0, 1.0])]
    model = BiFactorClassifier(2, random_state=0).fit(X, labels, task=task)
    page = opened(write_report(tmp_path / "report.html", model))
    choice = page.get_by_label("Class")
    assert choice.locator("option").all_text_contents() == ["low", "mid", "top"]
    choice.select_option(label="top")
    shown = page.locator("#weights tbody tr").first.locator("td").last.text_content()
    assert float(shown.replace("−", "-")) == pytest.approx(model.coef_[0, 2, 0], rel=0.01)
    assert not page.locator("#which").is_visible()


@pytest.mark.parametrize("target", ["flat", "one task"])
def test_bare_models_open(opened, tmp_path, target):
    X = np.arange(12.0)[:, None]
    task = np.repeat([0, 1], 6) if target == "flat" else None
    y = np.ones(12) if target == "flat" else X[:, 0]
    model = BiFactorRegressor(1).fit(X, y, task=task)
    page = opened(write_report(tmp_path / "report.html", model))
    page.locator("#map-canvas").press("ArrowDown")
    assert "weight" in page.locator("#map-value").text_content()
