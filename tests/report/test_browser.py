"""The report and the monitor page in a real browser: Chromium, driven by its own driver."""

from __future__ import annotations

import json
import os
import re
import shutil

import numpy as np
import pytest

import calibrant
from calibrant.llm import Run, Runs
from calibrant.llm import summarize as summarize_runs
from calibrant.llm._page import to_html
from calibrant.monitoring import CalibrationMonitor
from calibrant.report import monitor_page, render, summarize
from calibrant.report._html import MOST_DRAWN

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip(
        "chromium and chromedriver are not installed; apt-get install chromium chromium-driver",
        allow_module_level=True,
    )
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",  # paper has none
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
HOSTILE = "<script>document.title='broken'</script>"


def made_report(rng, n_classes, classes=None, n_rows=1500, factor=2.0, by=None):
    logits = rng.normal(scale=2.0, size=(n_rows, n_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    names = None if classes is None else np.array(classes)
    return summarize(
        labels if names is None else names[labels],
        factor * logits,
        inputs="logits",
        classes=names,
        calibrator=calibrant.TemperatureScaling(),
        method="temperature",
        n_resamples=99,
        by=by,
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


LONG_NAMES = [
    "Chronic obstructive pulmonary disease with acute exacerbation",
    "Community-acquired pneumonia, unspecified organism",
    "Pulmonary embolism without acute cor pulmonale",
    "Hypertensive_heart_and_chronic_kidney_disease_with_heart_failure",
]


def made_monitor(n_updates, onset=None, name="2026-{:02}-{:02}"):
    rng = np.random.default_rng(4)
    monitor = CalibrationMonitor(classes=["cat", "dog"], horizon=10_000)
    for day in range(n_updates):
        p = rng.uniform(0.5, 1.0, 100)
        shift = 0.25 if onset is not None and day >= onset else 0.0
        y = np.where(rng.random(100) < p - shift, "cat", "dog")
        when = name.format(1 + day // 28, 1 + day % 28)
        monitor.update(y, np.column_stack([p, 1 - p]), when=when)
    return monitor


def made_runs(n_tasks=7):
    rng, runs = np.random.default_rng(8), {}
    for number in range(n_tasks):
        confidence = rng.uniform(0.3, 1.0, 150)
        name = f"mmlu_professional_task_{number}"
        correct = rng.random(150) < confidence - 0.2
        runs[name] = Run(name, "stated", correct, confidence, figures={"acc": 0.5})
    return summarize_runs(Runs(runs), risk=0.1)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of few classes with hostile names, of a hundred classes and others, and monitors."""
    folder, rng = tmp_path_factory.mktemp("reports"), np.random.default_rng(5)
    render(made_report(rng, 4, [HOSTILE, 'quote"', "a&b", "plain"]), folder / "few.html")
    render(made_report(rng, 100), folder / "many.html")
    render(made_report(rng, 4, LONG_NAMES), folder / "long.html")
    render(made_report(rng, 5, n_rows=80), folder / "small.html")
    render(made_report(rng, 2, ["no", "yes"]), folder / "two.html")
    render(made_report(rng, 3, factor=1.0), folder / "calibrated.html")
    wards = np.array(["North wing of the old hospital", "south", "east"])
    render(made_report(rng, 3, by={"ward": np.resize(wards, 1500)}), folder / "groups.html")
    (folder / "runs.html").write_text(to_html(made_runs()))
    monitors = {
        "alarm": made_monitor(30, onset=20),
        "early": made_monitor(8, onset=1),
        "quiet": made_monitor(9),
        "nightly": made_monitor(150, onset=100, name="nightly batch of the model, {} {}"),
        "empty": CalibrationMonitor(classes=[0, 1]),
    }
    for name, monitor in monitors.items():
        (folder / f"{name}.html").write_text(monitor_page(monitor, "credit model"))
    return folder


REPORTS = ("few", "many", "long", "small", "two", "calibrated", "groups")
MONITORS = ("alarm", "early", "quiet", "nightly", "empty")
OTHERS = ("runs",)

VIEWS = {
    "desktop": (1400, "light", ""),
    "dark": (1400, "dark", ""),
    "phone": (390, "light", ""),
    "dark phone": (390, "dark", ""),
    # The width of a sheet of paper (Letter, A4) without its margins.
    "paper": (680, "light", "print"),
}


def opened(browser, path, width=1400, scheme="light", media=""):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    emulated = {"media": media, "features": features}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())
    return browser


def requests_of(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]


CHARTS = [
    ".main-diagram svg",
    "#chart-headline svg",
    "#reliability .panel:not([hidden]) svg",
    "#chart-ks svg",
    "#chart-decomposition svg",
]


def shown(browser):
    """What the diagram that is shown draws."""
    return browser.execute_script(
        "return document.querySelector('.panel:not([hidden]) svg').innerHTML"
    )


# Elements whose own text is visible, with the size of a letter in pixels on the screen.
TEXTS = """
const found = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || element.closest("script, title, .hidden, .skip")) continue;
  if (!element.checkVisibility()) continue;
  const box = element.getBoundingClientRect();
  if (!box.width || !box.height) continue;
  const svg = element.closest("svg");
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  found.push([scale * parseFloat(getComputedStyle(element).fontSize), element.textContent]);
}
return found;
"""

# Pairs of texts of a chart that overlap by more than a pixel, and texts that leave their chart.
COLLISIONS = """
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  if (!svg.checkVisibility()) continue;
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")];
  const boxes = texts.map((t) => [t.textContent, t.getBoundingClientRect()]);
  boxes.forEach(([name, a], i) => {
    if (a.left < frame.left - 1 || a.right > frame.right + 1) found.push([name, "outside"]);
    for (const [other, b] of boxes.slice(i + 1)) {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) found.push([name, other]);
    }
  });
}
return found;
"""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", [*REPORTS, *MONITORS, *OTHERS])
def test_pages_can_be_read_on_every_medium(name, view, browser, pages):
    width = VIEWS[view][0]
    opened(browser, pages / f"{name}.html", *VIEWS[view])
    assert browser.get_log("browser") == []
    assert [url for url in requests_of(browser) if not url.startswith(("file:", "data:"))] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    sizes = browser.execute_script(TEXTS)
    assert len(sizes) > 20
    assert [pair for pair in sizes if pair[0] < 11] == []
    assert browser.execute_script(COLLISIONS) == []
    _keep_screenshot(browser, f"{name}-{view}", width)


def _keep_screenshot(browser, name, width):
    folder = os.environ.get("CALIBRANT_SCREENSHOTS")
    if folder:
        height = browser.execute_script("return document.documentElement.scrollHeight")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.save_screenshot(os.path.join(folder, f"{name}.png"))


# Names of variables of the style sheet that have no value.
UNDEFINED = """
const names = document.querySelector("style").textContent.match(/var\\(--[a-z]+/g);
const style = getComputedStyle(document.documentElement);
return [...new Set(names)].filter((name) => !style.getPropertyValue(name.slice(4)));
"""


@pytest.mark.parametrize("name", ["few", "alarm", "runs"])
def test_every_color_is_defined(name, browser, pages):
    opened(browser, pages / f"{name}.html")
    assert browser.execute_script(UNDEFINED) == []


# Lines of a label: the tops of the boxes of its words.
HEADS = """
const found = [];
for (const button of document.querySelectorAll("thead button")) {
  if (!button.checkVisibility()) continue;
  const words = document.createRange();
  words.selectNodeContents(button);
  const bottom = Math.max(...[...words.getClientRects()].map((box) => box.bottom));
  if (button.getBoundingClientRect().bottom > bottom + 8) found.push(button.textContent);
}
return found;
"""


@pytest.mark.parametrize("name", ["few", "many", "runs"])
@pytest.mark.parametrize("width", [1400, 390])
def test_no_arrow_of_a_column_is_alone_on_a_line(name, width, browser, pages):
    opened(browser, pages / f"{name}.html", width)
    assert browser.execute_script(HEADS) == []


# Places where a line of the grid crosses the text of a bar.
CROSSED = """
const svg = document.querySelector("#chart-headline svg");
const path = svg.querySelector(".grid").getAttribute("d");
const xs = [...path.matchAll(/M([\\d.]+) [\\d.]+V/g)].map((match) => Number(match[1]));
const found = [];
for (const text of svg.querySelectorAll("text.name:not([text-anchor])")) {
  const box = text.getBBox();
  xs.forEach((x) => { if (box.x < x && x < box.x + box.width) found.push(text.textContent); });
}
return found;
"""


@pytest.mark.parametrize("name", REPORTS)
def test_no_line_crosses_the_numbers_of_bars(name, browser, pages):
    opened(browser, pages / f"{name}.html")
    assert browser.execute_script(CROSSED) == []


def test_the_guarantee_keeps_its_axis_on_a_phone(browser, pages):
    opened(browser, pages / "few.html", 390)
    ends = browser.execute_script(
        "const box = (e) => e.getBoundingClientRect(); const [axis, svg] = ['.axis', 'td svg'].map("
        "(s) => document.querySelector('#guarantee ' + s)); return [box(axis.firstChild).left - "
        "box(svg).left, box(svg).right - box(axis.lastChild).right, box(svg).width]"
    )
    assert 0 <= ends[0] < 15
    assert 0 <= ends[1] < 15
    assert ends[2] > 300


def test_both_tables_of_measures_have_the_same_columns(browser, pages):
    opened(browser, pages / "few.html")
    first, second = browser.execute_script(
        "document.querySelector('#metrics details').open = true; return [...document."
        "querySelectorAll('#metrics table')].map((t) => [...t.rows[0].cells].map((c) => "
        "Math.round(c.getBoundingClientRect().left)))"
    )
    assert first == second


@pytest.mark.parametrize("name", REPORTS)
def test_every_chart_is_large_enough(name, browser, pages):
    opened(browser, pages / f"{name}.html", 390)
    for chart in CHARTS:
        box = browser.execute_script(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return "
            "[b.width, b.height]",
            chart,
        )
        assert min(box) > 50, chart


@pytest.mark.parametrize("name", ["alarm", "early", "nightly"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_alarm_of_a_monitor_is_visible(name, width, browser, pages):
    opened(browser, pages / f"{name}.html", width)
    box = browser.execute_script(
        "const b = document.querySelector('.verdict.bad h2').getBoundingClientRect(); "
        "return [b.left, b.right, b.bottom]"
    )
    assert 0 <= box[0] < box[1] <= width
    assert box[2] < 844  # the height of a phone
    marks = browser.execute_script(
        "return [...document.querySelectorAll('svg path.alarm')].filter((e) => e.checkVisibility())"
        ".map((e) => e.getBoundingClientRect().left)"
    )
    assert len(marks) == 2
    assert all(0 < left < width for left in marks)


def test_a_phone_shows_notes_and_bounds(browser, pages):
    opened(browser, pages / "few.html", 390)
    shown = browser.execute_script(
        "return ['#metrics td.note', '#tests td.note', '#guarantee td[data-label=Lower]', "
        "'#guarantee td[data-label=Upper]', '#classes .scroll-hint'].map((place) => "
        "{ const e = document.querySelector(place); const b = e.getBoundingClientRect(); "
        "return e.checkVisibility() && b.left >= 0 && b.right <= 390; })"
    )
    assert shown == [True] * 5


def test_paper_has_page_numbers_and_nothing_to_click(browser, pages):
    opened(browser, pages / "few.html", *VIEWS["paper"])
    for place in ("nav", ".controls", ".scroll-hint"):
        assert not browser.find_element("css selector", place).is_displayed()
    arrow = "return getComputedStyle(document.querySelector('thead button'), '::after').content"
    assert browser.execute_script(arrow) in ('""', "none")
    assert "counter(page)" in browser.page_source
    avoided = browser.execute_script(
        "return [...document.querySelectorAll('section > h2, section > .hint')].map((e) => "
        "getComputedStyle(e).breakAfter)"
    )
    assert set(avoided) == {"avoid"}
    assert "to sort" not in browser.find_element("css selector", "main").text


def test_without_javascript_everything_is_shown(browser, pages):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(browser, pages / "few.html")
        charts = browser.find_elements("css selector", "svg[role=img]")
        assert len(charts) == (1 + 4 + 4) + 4
        assert all(chart.is_displayed() for chart in charts)
        assert not browser.find_element("css selector", ".controls").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_switch_of_notion_changes_the_chart_and_its_words(browser, pages):
    opened(browser, pages / "few.html")
    seen, captions = set(), set()
    for notion in ("top-label", "class-wise"):
        browser.find_element("css selector", f"input[value={notion}]").click()
        seen.add(shown(browser))
        caption = browser.find_element("css selector", ".panel:not([hidden]) figcaption")
        captions.add(caption.text)
        assert browser.find_element("id", "class-choice").is_displayed()
    assert len(seen) == len(captions) == 2


def test_the_choice_of_class_changes_the_chart_and_the_table(browser, pages):
    opened(browser, pages / "few.html")
    browser.find_element("css selector", "input[value=class-wise]").click()
    options = browser.find_elements("css selector", "#class-choice option")
    assert len(options) == 4
    before = shown(browser)
    cells = "return document.querySelector('.panel:not([hidden]) tbody').textContent"
    rows = browser.execute_script(cells)
    options[1].click()
    assert shown(browser) != before
    assert browser.execute_script(cells) != rows


def test_the_keyboard_reaches_the_switch(browser, pages):
    opened(browser, pages / "few.html")
    first = browser.find_element("css selector", "input[value=top-label]")
    before = shown(browser)
    browser.execute_script("arguments[0].focus()", first)
    first.send_keys("\ue015")  # arrow down
    assert browser.find_element("css selector", "input[value=class-wise]").is_selected()
    assert shown(browser) != before


def test_points_say_their_values_under_the_pointer(browser, pages):
    opened(browser, pages / "few.html")
    said = browser.execute_script("return document.querySelector('.point title').textContent")
    assert re.fullmatch(
        r"before: mean probability [\d.]+%, observed frequency [\d.]+% "
        r"\(95% CI [\d.]+% to [\d.]+%\), [\d,]+ rows?",
        said,
    )


@pytest.mark.parametrize("section", ["metrics", "classes", "tests"])
def test_tables_sort_both_ways(section, browser, pages):
    opened(browser, pages / "many.html")
    heading = browser.find_elements("css selector", f"#{section} th button")[1]

    def column():
        return browser.execute_script(
            "const [table, place] = [arguments[0].closest('table'), "
            "arguments[0].closest('th').cellIndex]; return [...table.tBodies[0].rows].map("
            "(row) => Number(row.cells[place].dataset.value))",
            heading,
        )

    heading.click()
    assert column() == sorted(column())
    heading.click()
    assert column() == sorted(column(), reverse=True)
    assert heading.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_hostile_names_are_text(browser, pages):
    opened(browser, pages / "few.html")
    names = [cell.text for cell in browser.find_elements("css selector", "#classes tbody th")]
    assert sorted(names) == sorted([HOSTILE, 'quote"', "a&b", "plain"])
    browser.find_element("css selector", "input[value=top-label]").click()
    options = [
        option.text for option in browser.find_elements("css selector", "#class-choice option")
    ]
    assert HOSTILE in options
    assert browser.title == "Calibration report: predictions"


def test_a_hundred_classes_are_all_there(browser, pages):
    opened(browser, pages / "many.html")
    assert len(browser.find_elements("css selector", "#classes tbody tr")) == 100
    browser.find_element("css selector", "input[value=class-wise]").click()
    assert len(browser.find_elements("css selector", "#class-choice option")) == MOST_DRAWN


def test_it_prints(browser, pages):
    opened(browser, pages / "few.html", scheme="dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 10_000
    assert browser.get_log("browser") == []
