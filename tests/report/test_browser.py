"""The report in a real browser: Chromium, driven by its own driver."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

import calibrant
from calibrant.report import render, summarise

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
    return summarise(
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


def image(browser, canvas):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).toDataURL()", canvas
    )


CANVASES = ["chart-reliability", "chart-counts", "chart-ks", "chart-decomposition"]


@pytest.mark.parametrize("name", ["few", "many"])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_without_errors_and_without_requests(name, width, scheme, browser, pages):
    opened(browser, pages / f"{name}.html", width, scheme)
    assert browser.get_log("browser") == []
    assert [url for url in requests_of(browser) if not url.startswith(("file:", "data:"))] == []
    for canvas in CANVASES:
        box = browser.execute_script(
            "const b = document.getElementById(arguments[0]).getBoundingClientRect(); return "
            "[b.width, b.height]",
            canvas,
        )
        assert min(box) > 100, canvas
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    folder = os.environ.get("CALIBRANT_SCREENSHOTS")
    if folder:
        height = browser.execute_script("return document.documentElement.scrollHeight")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.save_screenshot(os.path.join(folder, f"{name}-{width}-{scheme}.png"))


def test_charts_are_drawn_and_not_blank(browser, pages):
    opened(browser, pages / "few.html")
    for canvas in CANVASES:
        drawn = browser.execute_script(
            "const c = document.getElementById(arguments[0]);"
            "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > "
            "0)",
            canvas,
        )
        assert drawn, canvas


def test_the_switch_of_notion_changes_the_chart_and_its_words(browser, pages):
    opened(browser, pages / "few.html")
    seen, captions = set(), set()
    for notion in ("confidence", "top-label", "class-wise"):
        browser.find_element("css selector", f"input[value={notion}]").click()
        seen.add(image(browser, "chart-reliability"))
        captions.add(browser.find_element("id", "caption-reliability").text)
        is_shown = browser.find_element("id", "class-choice").is_displayed()
        assert is_shown == (notion != "confidence")
    assert len(seen) == len(captions) == 3


def test_the_choice_of_class_changes_the_chart_and_the_table(browser, pages):
    opened(browser, pages / "few.html")
    browser.find_element("css selector", "input[value=class-wise]").click()
    options = browser.find_elements("css selector", "#class-choice option")
    assert len(options) == 4
    before = image(browser, "chart-reliability")
    rows = browser.execute_script(
        "return document.querySelector('#table-reliability tbody').textContent"
    )
    options[1].click()
    assert image(browser, "chart-reliability") != before
    assert (
        browser.execute_script(
            "return document.querySelector('#table-reliability tbody').textContent"
        )
        != rows
    )


def test_the_keyboard_reaches_the_switch(browser, pages):
    opened(browser, pages / "few.html")
    first = browser.find_element("css selector", "input[value=confidence]")
    before = image(browser, "chart-reliability")
    browser.execute_script("arguments[0].focus()", first)
    first.send_keys("\ue015")  # arrow down
    assert browser.find_element("css selector", "input[value=top-label]").is_selected()
    assert image(browser, "chart-reliability") != before


def test_hovering_shows_values(browser, pages):
    opened(browser, pages / "few.html")
    canvas = browser.find_element("id", "chart-reliability")
    browser.execute_script("arguments[0].scrollIntoView()", canvas)
    before = image(browser, "chart-reliability")
    webdriver.ActionChains(browser).move_to_element(canvas).perform()
    wait = pytest.importorskip("selenium.webdriver.support.wait")
    wait.WebDriverWait(browser, 5).until(lambda b: image(b, "chart-reliability") != before)


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
    assert len(browser.find_elements("css selector", "#class-choice option")) == 100


def test_it_prints(browser, pages):
    opened(browser, pages / "few.html", scheme="dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 10_000
    assert browser.get_log("browser") == []
