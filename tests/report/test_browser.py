"""The report in a real browser: Chromium, driven by its own driver."""

from __future__ import annotations

import json
import os
import re
import shutil

import numpy as np
import pytest

import calibrant
from calibrant.report import render, summarize
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
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
HOSTILE = "<script>document.title='broken'</script>"


def made_report(rng, n_classes, classes=None):
    logits = rng.normal(scale=2.0, size=(1500, n_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    names = None if classes is None else np.array(classes)
    return summarize(
        labels if names is None else names[labels],
        2 * logits,
        inputs="logits",
        classes=names,
        calibrator=calibrant.TemperatureScaling(),
        method="temperature",
        n_resamples=99,
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


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of few classes with hostile names, and of a hundred."""
    folder, rng = tmp_path_factory.mktemp("reports"), np.random.default_rng(5)
    render(made_report(rng, 4, [HOSTILE, 'quote"', "a&b", "plain"]), folder / "few.html")
    render(made_report(rng, 100), folder / "many.html")
    return folder


def opened(browser, path, width=1400, scheme="light"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
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


CHARTS = ["#reliability .panel:not([hidden]) svg", "#chart-ks svg", "#chart-decomposition svg"]


def shown(browser):
    """What the diagram that is shown draws."""
    return browser.execute_script(
        "return document.querySelector('.panel:not([hidden]) svg').innerHTML"
    )


@pytest.mark.parametrize("name", ["few", "many"])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_without_errors_and_without_requests(name, width, scheme, browser, pages):
    opened(browser, pages / f"{name}.html", width, scheme)
    assert browser.get_log("browser") == []
    assert [url for url in requests_of(browser) if not url.startswith(("file:", "data:"))] == []
    for chart in CHARTS:
        box = browser.execute_script(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return "
            "[b.width, b.height]",
            chart,
        )
        assert min(box) > 50, chart
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    folder = os.environ.get("CALIBRANT_SCREENSHOTS")
    if folder:
        height = browser.execute_script("return document.documentElement.scrollHeight")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.save_screenshot(os.path.join(folder, f"{name}-{width}-{scheme}.png"))


def test_without_javascript_everything_is_shown(browser, pages):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(browser, pages / "few.html")
        charts = browser.find_elements("css selector", "svg")
        assert len(charts) == 2 * (1 + 4 + 4) + 2
        assert all(chart.is_displayed() for chart in charts)
        assert not browser.find_element("css selector", ".controls").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_switch_of_notion_changes_the_chart_and_its_words(browser, pages):
    opened(browser, pages / "few.html")
    seen, captions = set(), set()
    for notion in ("confidence", "top-label", "class-wise"):
        browser.find_element("css selector", f"input[value={notion}]").click()
        seen.add(shown(browser))
        caption = browser.find_element("css selector", ".panel:not([hidden]) figcaption")
        captions.add(caption.text)
        is_shown = browser.find_element("id", "class-choice").is_displayed()
        assert is_shown == (notion != "confidence")
    assert len(seen) == len(captions) == 3


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
    first = browser.find_element("css selector", "input[value=confidence]")
    before = shown(browser)
    browser.execute_script("arguments[0].focus()", first)
    first.send_keys("\ue015")  # arrow down
    assert browser.find_element("css selector", "input[value=top-label]").is_selected()
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
        rows = f"[...document.querySelectorAll('#{section} tbody tr')]"
        return browser.execute_script(
            f"return {rows}.map((row) => Number(row.cells[1].dataset.value))"
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
