"""Somebody at the page of the studio: a real browser, what a person does in it, and pictures of what is seen."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import (
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

ROOT = Path(__file__).resolve().parent.parent.parent
SHOTS = ROOT / "build" / "studio"
SECONDS = 120  # that anything may take: a first compilation on a busy machine
WIDTHS = {"wide": 1280, "narrow": 390}
# What keys must reach: all that can be used and is shown; of radio buttons one, as browsers have it.
_USABLE = """
const shown = (e) => e.checkVisibility() && !e.disabled && (e.type !== "radio" || e.checked);
const all = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']");
return [...all].filter(shown);
"""
_FOCUSED = """
const e = document.activeElement;
const inside = e.querySelector?.(":scope > rect");
const ring = getComputedStyle(inside ?? e);
const outlined = ring.outlineStyle !== "none" && parseFloat(ring.outlineWidth) >= 1;
return [e, inside ? parseFloat(ring.strokeWidth) >= 4 : outlined];
"""


@contextmanager
def studio(folder: Path, *arguments: str) -> Iterator[str]:
    """A running studio; its address."""
    command = [sys.executable, "-c", "from likely.cli import main; main()", "studio", *arguments, "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.removeprefix("Studio: ").strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)


@contextmanager
def browser(downloads: Path) -> Iterator[Any]:
    """Debian's Chromium, without a window."""
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.binary_location = str(shutil.which("chromium"))
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        yield driver
    finally:
        driver.quit()


class Person:
    """Somebody at the page."""

    def __init__(self, driver: Any, address: str):
        self.driver, self.base = driver, address.partition("?")[0]
        self.width = WIDTHS["wide"]
        self.console: list[str] = []
        self.addresses: set[str] = set()
        driver.set_window_size(self.width, 900)
        driver.get(address)

    def go(self, view: str) -> None:
        self.driver.get(self.base + view)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is loading any more."""
        time.sleep(0.3)
        self.until(lambda d: not d.find_elements(By.CSS_SELECTOR, "[aria-busy], .ring, body.busy"))
        loaded = "return [...document.images].every((image) => image.complete && image.naturalWidth)"
        self.until(lambda d: d.execute_script(loaded))

    def until(self, condition: Callable[[Any], Any]) -> None:
        # Parts of the page are replaced while it is looked at; then one looks again.
        replaced = (StaleElementReferenceException, NoSuchElementException, ElementNotInteractableException)
        WebDriverWait(self.driver, SECONDS, 0.2, replaced).until(condition)

    def press(self, label: str) -> None:
        path = f"//*[self::button or self::a][normalize-space()='{label}']"
        self.until(lambda d: d.find_element(By.XPATH, path).click() or True)

    def press_summary(self, label: str) -> None:
        self.driver.find_element(By.XPATH, f"//summary[.='{label}']").click()

    def type(self, name: str, text: str) -> None:
        field = self.driver.find_element(By.NAME, name)
        field.clear()
        field.send_keys(text)
        time.sleep(0.3)
        self.settle()

    def click_at(self, selector: str, across: float, down: float) -> None:
        """Click at a place of an element, by shares of its width and height; those over 1 are no place of it."""
        element = self.driver.find_element(By.CSS_SELECTOR, selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        box = element.rect
        shift = int((across - 0.5) * box["width"]), int((down - 0.5) * box["height"])
        ActionChains(self.driver).move_to_element_with_offset(element, *shift).click().perform()
        time.sleep(0.3)
        self.settle()

    def choose(self, selector: str, place: int) -> None:
        """Click on one of several parts of a drawing."""
        self.until(lambda d: d.find_elements(By.CSS_SELECTOR, selector)[place].click() or True)
        time.sleep(0.3)
        self.settle()

    def everywhere(self, name: str) -> None:
        """Keep pictures of the page at both widths, in light and dark."""
        for scheme in ("light", "dark"):
            self.prefer(scheme)
            for word, width in WIDTHS.items():
                self.resize(width)
                self.look(f"{name}-{word}-{scheme}")
        self.prefer("light")
        self.resize(WIDTHS["wide"])

    def reach_by_keys(self) -> None:
        """Go through the page by the tab key: everything that can be used is reached, in order, and seen to be."""
        wanted = self.driver.execute_script(_USABLE)
        self.driver.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
        self.driver.execute_script("document.querySelector('nav a').focus()")
        # A key, or the browser takes the mouse for what is used, and shows no focus.
        ActionChains(self.driver).send_keys(Keys.TAB).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(
            Keys.SHIFT
        ).perform()
        reached = []
        while not reached or reached[-1] != wanted[-1]:
            assert len(reached) < 2 * len(wanted) + 20, "keys go round and round"  # scrolled parts are stops as well
            element, is_seen = self.driver.execute_script(_FOCUSED)
            assert is_seen, f"the focus is not to be seen on {element.get_attribute('outerHTML')[:200]}"
            reached.append(element)
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
        left = [element.get_attribute("outerHTML")[:200] for element in wanted if element not in reached]
        assert not left, f"keys do not reach {left}"
        in_order = [element for element in reached if element in wanted]
        assert in_order == wanted, "keys go another way than the page reads"

    def use(self, model: str) -> None:
        """Take a model of the leaderboard for all views."""
        self.go("compare")
        self.driver.find_element(By.XPATH, f"//tr[td[b='{model}']]//button[.='Use']").click()
        self.settle()

    def sees(self, text: str) -> bool:
        return text in self.driver.find_element(By.TAG_NAME, "body").text

    def look(self, name: str) -> None:
        """Keep a picture of the whole page, and what the console said so far."""
        tall = self.driver.execute_script("return document.documentElement.scrollHeight")
        wide = self.driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= self.width, f"{name} is {wide} pixels wide at {self.width}"
        metrics = {"width": self.width, "height": min(tall, 2400), "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        time.sleep(0.2)
        self.driver.save_screenshot(str(SHOTS / f"{name}.png"))
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics | {"height": 900})
        self.console += [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            for address in re.findall(r'"url":"((?:https?|wss?):[^"]+)"', entry["message"]):
                self.addresses.add(str(urlsplit(address).hostname))

    def resize(self, width: int) -> None:
        self.width = width
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        feature = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})

    def select(self, name: str, value: str) -> None:
        Select(self.driver.find_element(By.NAME, name)).select_by_value(value)
        time.sleep(0.3)
        self.settle()
