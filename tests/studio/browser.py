"""The studio in a real browser, as a person uses it: `make test-studio`. Screenshots go to build/studio.

A story: open a table with holes, correct a column's kind, compare four models, stop and resume, look through one, ask
what if, judge drawn rows, download the filled table, which is what `impute` gives, decode places of the map, and see
what separates two columns. Then pictures are painted, and a sentence is read. At two widths, in light and dark.
Not collected by pytest, since not every machine has a browser.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.studio.person import ROOT, SHOTS, Person, browser, studio

VIEWS = ("table", "compare", "what-if", "samples", "map")


def people(n: int = 1500) -> pl.DataFrame:
    """People whose income goes with age and city, with holes, a zip code, and an odd row."""
    rng = np.random.default_rng(0)
    age = rng.normal(45, 12, n).round().clip(18, 90)
    city = rng.choice(["Rome", "Oslo", "Lima", "Bonn"], n, p=[0.4, 0.3, 0.2, 0.1])
    scale = np.select([city == "Oslo", city == "Lima"], [1.6, 0.6], 1.0)
    income = (scale * np.exp(rng.normal(9 + 0.015 * age, 0.25))).round(-1)
    income[7] = 250_000.0
    retired = np.where(age + rng.normal(0, 4, n) > 62, "yes", "no")
    frame = pl.DataFrame(
        {
            "age": age,
            "city": city,
            "income": income,
            "retired": retired,
            "zip": rng.choice([101, 205, 330, 417, 518], n),
        }
    )
    empty = rng.random(frame.shape) < 0.04
    return frame.with_columns(
        pl.when(pl.Series(empty[:, place])).then(None).otherwise(pl.col(name)).alias(name)
        for place, name in enumerate(frame.columns)
    )


def compare_models(person: Person) -> None:
    """Start five, stop, resume, and watch the table grow."""
    person.go("compare")
    person.driver.find_element(By.NAME, "m-bayesiannetwork").click()
    # The machine takes seconds even where everything is compiled, so that there is something left to stop.
    person.driver.find_element(By.NAME, "m-rbm").click()
    person.look("compare-empty")
    person.press("Start")
    person.until(lambda d: person.sees("fitting"))
    person.look("compare-running")
    person.press("Stop")
    person.until(lambda d: person.sees("was stopped"))
    person.driver.refresh()
    person.press("Resume")
    person.until(lambda d: person.sees("0001 is done"))
    person.look("compare-done")
    person.driver.find_element(By.XPATH, "//tr[td[normalize-space()='1']]//button[.='Use']").click()
    person.settle()


def story(folder: Path, downloads: Path, person: Person) -> None:
    person.settle()
    person.look("table-no-model")
    Select(person.driver.find_elements(By.NAME, "kind")[4]).select_by_value("categorical")
    person.until(lambda d: Select(d.find_elements(By.NAME, "kind")[4]).first_selected_option.text == "categorical")
    person.settle()
    compare_models(person)

    Select(person.driver.find_element(By.NAME, "order")).select_by_value("surprise")
    time.sleep(0.3)
    person.settle()
    numbers = [cell.text for cell in person.driver.find_elements(By.CSS_SELECTOR, "#slice tbody th")[:5]]
    assert person.driver.find_elements(By.CSS_SELECTOR, "#slice .odd3, #slice .odd4"), "no odd cell is shaded"
    person.look("table-odd")
    person.press("Download with holes filled")
    person.until(lambda d: list(downloads.glob("*.csv")))
    import likely

    model = likely.load(folder / ".likely-studio" / "jobs" / "0001" / used_file(folder))
    rows = likely.datasets.read(folder / "people.csv")
    oddest = model.surprise(rows, random_state=0).top(5)
    assert numbers == [f"{number + 1:,}" for number in oddest], "the first rows are not the most surprising"
    filled = model.impute(rows).write_csv()
    assert next(downloads.glob("*.csv")).read_text() == filled, "the download is not what impute gives"

    person.go("what-if")
    person.type("a0", "30")
    person.type("b0", "75")
    assert person.sees("A: log p of what is pinned (1 column) = ")
    assert person.driver.find_element(By.ID, "p3").find_elements(By.CSS_SELECTOR, "polyline")
    person.look("what-if-two")
    person.press("Free all")
    person.settle()
    person.until(lambda d: person.sees("nothing is pinned"))

    person.go("samples")
    person.driver.find_element(By.NAME, "c0").click()
    person.press("Judge me")
    person.settle()
    assert person.sees("of 12 right")
    person.look("samples-judged")
    person.select("y", "2")
    assert len(person.driver.find_elements(By.CSS_SELECTOR, "#pairs figure .scatter")) == 2
    person.look("samples-pairs")
    if used_name(folder) != "Mixture":
        person.use("Mixture")
    for view in VIEWS:
        person.go(view)
        person.reach_by_keys()
        person.everywhere(view)
    decode(person)
    load_a_model(folder, person)
    person.use("BayesianNetwork")
    look_at_structure(person)


def load_a_model(folder: Path, person: Person) -> None:
    """A file that is no model is refused with a reason; one that is, is taken for all views."""
    (folder / "broken.likely").write_bytes(b"no model")
    shutil.copy(folder / ".likely-studio" / "jobs" / "0001" / "0.likely", folder / "mine.likely")
    person.go("compare")
    person.press_summary("Load a model")
    for name, words in (("broken", "broken.likely"), ("mine", "model: mine.likely")):
        person.driver.find_element(By.NAME, "file").send_keys(str(folder / f"{name}.likely"))
        person.press("Load")
        person.until(lambda d, words=words: person.sees(words))
        person.settle()
        person.look(f"compare-{name}")
    person.console = [
        entry for entry in person.console if "/models/load" not in entry
    ]  # the refusal, which was asked for


def decode(person: Person) -> None:
    """A click decodes a place of the map, a second one draws a line."""
    person.go("map")
    person.click_at("[data-plane]", 0.3, 0.4)
    assert person.sees("Decoded")
    person.click_at("[data-plane]", 0.7, 0.6)
    assert person.sees("in 7 steps")
    assert len(person.driver.find_elements(By.CSS_SELECTOR, "#decoded tr:first-child td")) == 7
    person.look("map-line")


def look_at_structure(person: Person) -> None:
    """Two columns, their table and what separates them; then seeing beside doing, pinned by a bar."""
    person.go("structure")
    person.choose("g.node", 0)
    person.choose("g.node", 2)
    assert person.driver.find_elements(By.CSS_SELECTOR, "#table td"), "no table is shown"
    assert person.sees("separated")
    person.driver.find_element(By.CSS_SELECTOR, "g.node.chosen").send_keys(Keys.TAB)  # nodes can be reached by keys
    person.driver.switch_to.active_element.send_keys(Keys.ENTER)
    time.sleep(0.3)
    person.settle()
    person.reach_by_keys()
    person.everywhere("structure")
    person.driver.find_element(By.NAME, "sure").click()
    time.sleep(0.3)
    person.settle()
    assert "resampled" in person.driver.find_element(By.CSS_SELECTOR, "path.edge title").get_attribute("textContent")
    person.look("structure-sure")
    person.go("what-if")
    person.choose("#p3 g[data-pick]", 1)
    assert person.sees("log p of what is pinned (1 column)")
    person.select("b3", "1")
    person.select("bhow", "do")
    assert person.sees("B: 1 column set by do")
    person.everywhere("what-if-do")


def paint(folder: Path, driver: Any) -> Person:
    """Pictures: paint and erase, by mouse and by keys, and see the completion change."""
    import likely

    data = likely.datasets.load("digits")
    likely.Mixture(10, n_init=1, schema=data.schema, random_state=0).fit(data.train).save(folder / "digits.likely")
    with studio(folder, "digits", "digits.likely", "--folder", str(folder / "downloads")) as address:
        person = Person(driver, address)
        person.go("what-if")
        assert person.sees("32 of 64 pixels are open")
        person.click_at("canvas", 0.55, 0.2)
        assert person.sees("33 of 64 pixels are open")
        person.driver.find_element(By.CSS_SELECTOR, "[name=brush][value='9']").click()
        canvas = person.driver.find_element(By.CSS_SELECTOR, "canvas")
        canvas.send_keys(Keys.ARROW_DOWN * 5 + Keys.SPACE)
        time.sleep(0.3)
        person.settle()
        assert person.sees("32 of 64 pixels are open")
        person.everywhere("paint")
        person.go("map")
        person.click_at("[data-plane]", 0.4, 0.4)
        assert person.driver.find_elements(By.CSS_SELECTOR, "img.decoded")
        person.look("map-pictures")
    return person


def read_text(folder: Path, driver: Any) -> Person:
    """Text: the most surprising sentences, and one that is typed."""
    import likely

    lines = [
        f"the {who} {what} the {whom}"
        for who in ("dog", "cat")
        for what in ("sees", "hears")
        for whom in ("man", "girl")
    ]
    (folder / "text.txt").write_text("\n".join(lines * 5) + "\n")
    likely.NGram(3, random_state=0).fit(likely.datasets.load(folder / "text.txt").train).save(folder / "ngram.likely")
    with studio(folder, "text.txt", "ngram.likely", "--folder", str(folder / "downloads")) as address:
        person = Person(driver, address)
        person.settle()
        person.select("order", "surprise")
        assert person.driver.find_elements(By.CSS_SELECTOR, "#slice td.number")
        person.look("table-text")
        person.go("map")
        person.type("text", "the dog sees a horse")
        assert len(person.driver.find_elements(By.CSS_SELECTOR, ".token")) == 6
        assert person.sees("After 'the dog sees' came 'a'")
        person.choose(".token", 1)
        assert person.sees("After 'the' came 'dog'")
        person.everywhere("sentence")
    return person


def used_file(folder: Path) -> str:
    """The file of the model that the studio says is in use."""
    used = json.loads((folder / ".likely-studio" / "session.json").read_text())["used"]
    return f"{used.rpartition('-')[2]}.likely"


def used_name(folder: Path) -> str:
    """What the leaderboard calls it."""
    board = json.loads((folder / ".likely-studio" / "jobs" / "0001" / "board.json").read_text())
    return next(entry["name"] for entry in board["entries"] if entry["file"] == used_file(folder))


def main() -> None:
    """Play the story, and fail on any word in the browser's console, and on any request that leaves this machine."""
    for name in ("chromium", "chromedriver"):
        if shutil.which(name) is None:
            sys.exit(f"make test-studio needs {name}: apt-get install chromium chromium-driver")
    SHOTS.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    downloads = folder / "downloads"
    downloads.mkdir()
    people().write_csv(folder / "people.csv")
    with browser(downloads) as driver:
        try:
            with studio(folder, "people.csv") as address:
                person = Person(driver, address)
                story(folder, downloads, person)
            people_seen = [person, paint(folder, driver), read_text(folder, driver)]
        except BaseException:
            driver.save_screenshot(str(SHOTS / "failed.png"))
            raise
    for person in people_seen:
        assert not person.console, person.console
        assert person.addresses <= {"127.0.0.1"}, person.addresses
    shutil.rmtree(folder)
    print(f"The story of the studio holds; {len(list(SHOTS.glob('*.png')))} pictures are in {SHOTS.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
