"""The list of a clinic of 45 on a laptop and on a phone."""

import random
import shutil
import subprocess
from dataclasses import replace

import pytest
from msgspec import structs
from playwright.sync_api import expect
from test_owner_in_browser import pick

from dopl_core import studies
from pages.studies.list_table import list_table
from pages.studies.print_sheet import sheet

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


@pytest.fixture(scope="module")
def week(store, clinic) -> studies.WeekList:
    """Its second list, as if half of the people had not been seen."""
    week = studies.read_lists(store, clinic)[-1]
    unseen = {"state": None, "last_seen": "Fair", "weeks_ago": 1}
    people = [structs.replace(one, **unseen) for one in week.listed[::2]] + week.listed[1::2]
    return replace(week, listed=people)


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


def test_reasons_have_room_beside_facts_and_unknown_states(page, server, week):
    page.goto(f"{server.url}/list")  # for the style of the page
    for reported in (False, True):
        table = list_table(replace(week, reported=reported), str)
        page.locator("[data-testid=stMainBlockContainer]").evaluate(
            "(box, table) => box.innerHTML = table", table
        )
        assert page.locator("td.why").first.bounding_box()["width"] >= 200
    assert page.locator(".dopl-list").bounding_box()["width"] <= 1000


def test_a_sheet_with_three_facts_and_a_long_name_fits_on_a_page_of_paper(
    page, store, clinic, week
):
    config = studies.get_study(store, clinic).config
    name = f"Maria Magdalena {'Wilhelmina' * 4}"
    people = [structs.replace(week.listed[0], label=name), *week.listed[1:]]
    page.set_viewport_size({"width": 703, "height": 5000})  # A4 less its margins
    page.set_content(sheet("Süd", config, replace(week, listed=people)))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("td.why").first.bounding_box()["width"] > 600


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


def test_on_a_phone_names_on_an_earlier_list_are_as_long_as_on_the_newest(browser, server, clinic):
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    page.goto(f"{server.url}/studies?study={clinic}")
    pick(page, "Choose a week", "Week 1,")
    expect(page.locator("td.then").first).to_be_visible()
    for row in page.locator(".dopl-list tr", has=page.locator("td.then")).all():
        assert row.locator("td.name").bounding_box()["width"] >= 100
        assert row.bounding_box()["height"] < 64
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.context.close()


def test_notes_on_an_earlier_list_have_room(page, server, clinic):
    page.goto(f"{server.url}/studies?study={clinic}")
    pick(page, "Choose a week", "Week 1,")
    expect(page.locator("td.then").first).to_be_visible()
    notes = page.locator("td.fact:nth-of-type(6)").filter(has_text="mornings only")
    assert notes.first.bounding_box()["height"] < 60  # not a word a line


def test_on_a_touch_screen_the_table_of_people_keeps_off_what_is_below(browser, server, clinic):
    page = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True).new_page()
    page.goto(f"{server.url}/studies?study={clinic}&tab=People")
    below = page.get_by_test_id("stExpander").filter(has_text="Add a person")
    expect(below).to_be_visible()
    table = page.get_by_test_id("stDataFrame").filter(visible=True).bounding_box()
    assert table["y"] + table["height"] <= below.bounding_box()["y"]
    page.context.close()
