"""The list of a clinic of 45 on a laptop and on a phone."""

import random
import shutil
import subprocess

import pytest
from playwright.sync_api import expect

from dopl_core import studies

STATES = ["Poor", "Fair", "Good"]
FIRST = ("Jürgen", "Zoë", "आशा", "Ömer", "Łukasz", "Björk", "Ana", "देवी", "سارة", "李娜", "Pál")
LAST = ("Müller", "Größmann", "शर्मा", "Çelik", "Østergaard", "पटेल", "O'Brien", "<b>Bold</b>")


@pytest.fixture(scope="module")
def clinic(store) -> str:
    """Two weeks of a clinic whose owner sees phone numbers, values and notes on the list."""
    rng = random.Random(4)
    arms = [
        studies.Arm(
            f"p{n:02}",
            f"{FIRST[n % len(FIRST)]} {LAST[n * 7 % len(LAST)]}",
            ("North", "South")[n % 2],
            rng.choice(STATES),
            {"phone": f"0171 {n:06}", "hours": f"{n % 8}.5", "note": "mornings only" * (n % 2)},
        )
        for n in range(45)
    ]
    rules = {"budget": 8, "noun": "patient", "list_columns": "phone, hours, note"}
    config = studies.from_roster(arms, STATES, title="Süd", practice=False, **rules)
    study = studies.create_study(store, config)
    studies.observe(store, study, {arm.id: rng.choice(STATES) for arm in arms})
    studies.advance(store, study)
    return study


# Whether two letters look different: without a font, both are the same box.
DIFFER = """letters => {
  const drawn = [...letters].map(letter => {
    const canvas = Object.assign(document.createElement("canvas"), {width: 80, height: 80})
    const pen = canvas.getContext("2d")
    pen.font = `40px ${getComputedStyle(document.querySelector(".dopl-list td")).fontFamily}`
    pen.fillText(letter, 10, 60)
    return canvas.toDataURL()
  })
  return drawn[0] !== drawn[1]
}"""


@pytest.mark.parametrize(("letters", "language"), [("आद", "hi"), ("سم", "ar"), ("李王", "zh-cn")])
def test_names_fall_back_to_the_fonts_of_the_system(page, server, clinic, letters, language):
    found = shutil.which("fc-list") and subprocess.check_output(["fc-list", f":lang={language}"])
    if not found:
        pytest.skip(f"this machine has no font for {language}")
    page.goto(f"{server.url}/studies?study={clinic}")
    expect(page.locator(".dopl-list")).to_be_visible()
    assert page.evaluate(DIFFER, letters)


def test_a_list_of_eight_with_the_next_in_line_fits_into_700_pixels(page, server, clinic):
    page.goto(f"{server.url}/studies?study={clinic}")
    table = page.locator(".dopl-list")
    expect(table.get_by_text("Next in line, if somebody is not there")).to_be_visible()
    expect(table.locator("td.name")).to_have_count(12)
    assert table.bounding_box()["height"] <= 700
    colours = table.locator(".dopl-chip").evaluate_all(
        "all => [...new Set(all.map(one => one.innerText + getComputedStyle(one).backgroundColor))]"
    )
    assert len(colours) == len({one[:4] for one in colours})  # one colour for each state


def test_on_a_phone_everybody_on_the_list_has_one_short_row(browser, server, clinic):
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    page.goto(f"{server.url}/studies?study={clinic}")
    rows = page.locator(".dopl-list tr:not(.part)", has=page.locator("td.name"))
    expect(rows).to_have_count(12)
    assert max(row.bounding_box()["height"] for row in rows.all()) < 44
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    [right] = {round(b["x"] + b["width"]) for b in [page.locator(".dopl-list").bounding_box()]}
    for chip in page.locator(".dopl-chip").all():
        assert chip.bounding_box()["x"] + chip.bounding_box()["width"] <= right
    page.context.close()


def test_on_a_touch_screen_the_table_of_people_keeps_off_what_is_below(browser, server, clinic):
    page = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True).new_page()
    page.goto(f"{server.url}/studies?study={clinic}&tab=People")
    below = page.get_by_test_id("stExpander").filter(has_text="Add a person")
    expect(below).to_be_visible()
    table = page.get_by_test_id("stDataFrame").filter(visible=True).bounding_box()
    assert table["y"] + table["height"] <= below.bounding_box()["y"]
    page.context.close()
