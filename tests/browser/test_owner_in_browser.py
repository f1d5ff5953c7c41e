"""Four weeks of a clinic in a browser, from its own file to a printed list."""

import csv
import io
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
from axe import serious_findings
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from dopl_core import studies

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
NAMES = ["Ada", "Bo", "Cy", "Di", "Eve", "Fay", "Gus", "Hal", "Ida", "Jürgen"]
CONDITIONS = ("poorly", "fair", "well")
HEAD = "Patient No;Full name;Condition;Ward;Age;steps_1;steps_2;steps_3"


def roster() -> bytes:
    """A file as a spreadsheet on Windows writes it, with one misspelt state."""
    rows = [
        f"{100 + n};{name};{CONDITIONS[n % 3]};{'NS'[n % 2]};{40 + n};{n}00;{n}50;{n}20"
        for n, name in enumerate(NAMES)
    ]
    return "\r\n".join([HEAD, *rows]).replace("Bo;fair", "Bo;fiar").encode("cp1252")


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_a_clinic_runs_four_weeks_from_its_own_file_to_a_printed_list(
    browser, server, store, tmp_path, size
):
    width, height = SIZES[size]
    page = browser.new_context(viewport={"width": width, "height": height}).new_page()
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    study = make_study(page, server, tmp_path, f"Ward on a {size}")

    # The first list is made before the first round is over.
    expect(page.get_by_text("First round: 0 of 8 answers.")).to_be_visible()
    page.get_by_role("button", name="Make the first list now").click()
    expect(page.get_by_text("Week 1: help these 3 of 10 patients")).to_be_visible()
    expect(page.get_by_role("button", name="Report week 1")).to_have_count(1)

    # Week 1: one person changed state, one is unknown, one on the list was not helped.
    first = [one.label for one in studies.read_lists(store, study)[0].listed]
    others = [name for name in NAMES if name not in first]
    page.get_by_role("button", name="Report week 1").click()
    set_state(page, first[0], "well")
    set_state(page, others[0], "Unknown")
    row(page, first[1]).get_by_text("helped").click()
    expect(page.get_by_text("2 of 3 helped")).to_be_visible()
    page.reload()  # what was clicked is still there
    expect(page.get_by_text("8 still to fill in")).to_be_visible()
    expect(state(page, first[0], "well")).to_be_checked()
    confirm(page, 1, rest="as before", summary="1 moved, 8 as before, 1 unknown, 2 of 3 helped")

    # Week 2: one joins, one leaves, the budget changes, the report comes by file.
    expect(page.get_by_text("Week 2: help these 3 of 10 patients")).to_be_visible()
    open_tab(page, "People")
    page.get_by_text("Add a person").click()
    page.get_by_label("ID", exact=True).fill("200")
    page.get_by_label("Name", exact=True).fill("Zoe <b>")
    page.get_by_role("radiogroup", name="State now").get_by_text("poorly").click()
    pick(page, "Group", "N")
    page.get_by_role("button", name="Add this person").click()
    expect(page.get_by_text("part from the next list on")).to_be_visible()
    page.get_by_text("A person leaves").click()
    leave = page.get_by_role("button", name="Remove from the study")
    for _ in range(3):  # a page that is still being drawn after the last click forgets the choice
        pick(page, "Who leaves?", f"{others[1]} (")
        page.keyboard.press("Escape")
        with suppress(AssertionError):
            expect(leave).to_be_enabled(timeout=5_000)
            break
    leave.click()
    expect(page.get_by_text("will not be on any list from now on")).to_be_visible()
    open_tab(page, "Settings")
    page.get_by_role("spinbutton", name="How many can be helped").fill("2")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Save the settings").click()
    expect(page.get_by_text("Saved.", exact=True)).to_be_visible()
    report_by_file(page, store, study, tmp_path, first[0])

    # Week 3: a report is corrected, and the person who left returns.
    expect(page.get_by_text("Week 3: help these 2 of 10 patients")).to_be_visible()
    pick(page, "Choose a week", "Week 1,")
    expect(page.get_by_role("cell", name="Not helped").first).to_be_visible()
    page.get_by_text("Correct the report of week 1").click()
    pick(page, "Whose report is wrong?", f"{others[0]} (")
    page.get_by_role("radiogroup", name="Correct state").get_by_text("poorly").click()
    page.get_by_role("button", name="Save the correction").click()
    expect(page.get_by_text("The report of week 1 is corrected for")).to_be_visible()
    open_tab(page, "People")
    page.get_by_text("A person returns").click()
    pick(page, "Who returns?", f"{others[1]} (")
    page.get_by_role("radiogroup", name="State now").last.get_by_text("fair").click()
    page.get_by_role("button", name="Re-admit").click()
    expect(page.get_by_text("part from the next list on")).to_be_visible()
    page.get_by_role("button", name="Report week 3").click()
    expect(page.get_by_role("button", name="Check the report")).to_be_visible()
    confirm(page, 3, rest="unknown", summary="0 moved, 0 as before, 10 unknown, 2 of 2 helped")

    # Week 4: a list with unknown states, printed and shared with a colleague.
    expect(page.get_by_text("Week 4: help these 2 of 11 patients")).to_be_visible()
    expect(page.get_by_text("ago").or_(page.get_by_text("fair")).first).to_be_visible()
    made = studies.read_lists(store, study)
    assert [len(week.listed) for week in made] == [3, 3, 2, 2]
    assert studies.read_week(store, study, 1)[id_of(others[0])].state == "poorly"
    check_sheet(page, browser, [one.label for one in made[-1].listed])
    check_files(page, [one.id for one in made[-1].listed])
    check_audit(store, study)
    no_wider_than_the_screen(page)
    check_link(page, browser, [one.label for one in made[-1].listed], (width, height))
    page.context.close()


def test_a_second_tab_cannot_report_the_same_week_again(page, browser, server, store):
    study = small_study(store)
    other = browser.new_context().new_page()
    other.clock.install()
    for one in (page, other):
        one.goto(f"{server.url}/studies?study={study}&tab=Report")
        one.get_by_role("button", name="Check the report").click()
    page.get_by_role("radio", name="as before").click()
    for one in (page, other):
        expect(one.get_by_role("button", name="Send the report")).to_be_visible()
    confirm_again = other.get_by_role("button", name="Send the report of week 1")
    other.get_by_role("radio", name="as before").click()
    expect(confirm_again).to_be_enabled()
    other.clock.pause_at(time.time() + 1)  # so that it does not refresh by itself
    page.get_by_role("button", name="Send the report of week 1").click()
    expect(page.get_by_text("Week 2: help these 2 of 4")).to_be_visible()
    confirm_again.click()
    other.clock.resume()
    expect(other.get_by_text("week 1 is reported already").first).to_be_visible()
    assert len(studies.read_lists(store, study)) == 2
    other.context.close()


@pytest.mark.long
def test_text_from_an_owners_file_is_never_rendered_or_fetched(page, server, store):
    nasty = "![x](https://evil.example/a.png) <img src=x onerror=alert(1)> **b** [l](https://evil.example)"
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    arms = [
        studies.Arm(f"{n} {nasty}", f"{n} {nasty}", nasty, state, {nasty: nasty})
        for n, state in enumerate(("Low", nasty) * 2)
    ]
    words = {"title": nasty, "noun": nasty, "epoch_word": nasty, "question": nasty}
    config = studies.from_roster(arms, ["Low", nasty], budget=2, practice=False, **words)
    study = studies.create_study(store, config)
    studies.observe(store, study, {arm.id: "Low" for arm in arms})
    studies.advance(store, study)
    studies.leave(store, study, [arms[0].id])
    for tab in ("List", "Report", "People", "Settings"):
        page.goto(f"{server.url}/studies?study={study}&tab={tab}")
        expect(page.get_by_role("tab", name=tab, exact=True)).to_have_attribute(
            "aria-selected", "true"
        )
        for closed in page.locator("[data-testid=stExpander] summary").all():
            closed.click()
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
        assert page.locator("img[src*=evil], img[src=x], a[href*=evil]").count() == 0, tab
        assert page.get_by_test_id("stException").count() == 0, tab
    page.goto(f"{server.url}/studies?study={study}&tab=Report")
    page.get_by_role("button", name="Check the report").click()
    page.get_by_role("radio", name="unknown", exact=True).click()
    expect(page.get_by_text("4 unknown")).to_be_visible()
    assert page.locator("img[src*=evil], img[src=x], a[href*=evil]").count() == 0
    assert not [url for url in requests if not url.startswith((server.url, "data:", "blob:"))]


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_owners_page(browser, server, store, scheme):
    page = browser.new_context(color_scheme=scheme).new_page()
    page.goto(f"{server.url}/studies?study={small_study(store)}")
    expect(page.get_by_text("2 of 4")).to_be_visible()
    places = {
        "List": "Change this list",
        "Report": "Check the report",
        "People": "A person leaves",
        "Settings": "Save the settings",
        "Invite": "Make a link",
    }
    for tab, words in places.items():
        open_tab(page, tab)
        expect(page.get_by_text(words).first).to_be_visible()
        expect(page.locator("[data-stale=true]")).to_have_count(0)
        for closed in page.locator("[data-testid=stExpander] summary").all():
            closed.click()
        assert serious_findings(page) == [], tab
    page.context.close()


def make_study(page: Page, server, folder: Path, title: str) -> str:
    """From an upload to the study's page; its id."""
    file = folder / "ward.csv"
    file.write_bytes(roster())
    page.goto(f"{server.url}/studies")
    page.get_by_role("tab", name="New study").click()
    page.locator("input[type=file][accept*=csv]").set_input_files(file)
    expect(page.get_by_text("was read as Windows text")).to_be_visible()
    expect(page.get_by_text("“fiar” (1 row) looks like “fair” (2 rows)")).to_be_visible()
    expect(page.get_by_role("button", name="Create the study")).to_have_count(0)
    page.get_by_text("“fair” is right").click()
    for label in CONDITIONS:
        pick(page, "States, from worst to best", label)
    page.keyboard.press("Escape")
    expect(page.locator(".st-key-preview-card-left")).to_contain_text("Ada")
    expect(page.locator(".st-key-preview-card-left .dopl-bar")).to_have_count(3)
    page.get_by_text("What annotators see", exact=True).first.click()
    long = page.get_by_test_id("stCheckbox").filter(has_text="a completion code of their own")
    expect(long.locator("p")).to_have_css("white-space", "normal")  # it is not cut off
    for label, text in (("Title", title), ("One of them is called a", "patient")):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("spinbutton", name="Answers in the first round").fill("8")
    page.get_by_role("spinbutton", name="How many can be helped").fill("3")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Create the study").click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    found = re.search(r"study=([\w-]+)", page.url)
    assert found
    return found[1]


def small_study(store) -> str:
    arms = [studies.Arm(f"p{n}", f"Name {n}", "all", "Low", {"age": "4"}) for n in range(4)]
    config = studies.from_roster(arms, ["Low", "High"], title="Small", budget=2, practice=False)
    return studies.create_study(store, config)


def id_of(name: str) -> str:
    return str(100 + NAMES.index(name))


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()
    expect(page.get_by_role("tab", name=name, exact=True)).to_have_attribute(
        "aria-selected", "true"
    )


def pick(page: Page, label: str, option: str) -> None:
    """Choose an option of a select by the beginning of its words."""
    box = page.get_by_role("combobox", name=label).locator("visible=true").last
    wanted = page.get_by_role("option", name=re.compile(f"^{re.escape(option)}"))
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    for _ in range(5):  # scrolling or drawing the page closes it again
        box.evaluate("box => box.scrollIntoView({block: 'center'})")
        box.click()
        try:
            wanted.click(timeout=2000)
        except PlaywrightTimeout:
            page.keyboard.press("Escape")
        else:
            return
    pytest.fail(f"{option} is not among the options of {label}")


def row(page: Page, name: str):
    return page.locator("[class*='st-key-report-']", has_text=re.compile(rf"^{name} \("))


def state(page: Page, name: str, label: str):
    return page.get_by_role("radiogroup", name=f"{name} is now").get_by_role("radio", name=label)


def set_state(page: Page, name: str, label: str) -> None:
    state(page, name, label).click()
    expect(state(page, name, label)).to_be_checked()


def confirm(page: Page, week: int, rest: str, summary: str) -> None:
    """Check the summary, and send the report."""
    page.get_by_role("button", name="Check the report").click()
    page.get_by_role("radio", name=rest, exact=True).click()
    expect(page.get_by_text(summary)).to_be_visible()
    send(page, week)


def send(page: Page, week: int) -> None:
    """Send the report; the last one was a moment ago, so the page asks whether the week is over."""
    if week > 1:
        page.get_by_text(f"Yes, week {week} is over").click()
    page.get_by_role("button", name=f"Send the report of week {week}").click()
    expect(page.get_by_text(f"Week {week} is reported.")).to_be_visible()


def report_by_file(page: Page, store, study: str, folder: Path, helped: str) -> None:
    now = studies.present_states(store, study)
    lines = [f"{arm},{label or 'fair'},{int(arm == id_of(helped))}" for arm, label in now.items()]
    file = folder / "week.csv"
    file.write_text("\n".join(["Patient No,Condition,helped", *lines]))
    page.get_by_role("button", name="Report week 2").click()
    page.get_by_role("radio", name="By file").click()
    page.locator("input[type=file][accept*=csv]").set_input_files(file)
    expect(page.get_by_text("0 moved, 9 as before, 0 unknown, 1 now known")).to_be_visible()
    send(page, 2)


def check_audit(store: studies.Store, study: str) -> None:
    """The list that was printed and downloaded is in the audit trail, after a moment."""
    due = {("print", "week 4"), ("download", f"{study}-week-4.csv")}
    deadline = time.monotonic() + 60
    while not due <= {(one.act, one.about) for one in studies.read_audit(store, study)}:
        assert time.monotonic() < deadline, studies.read_audit(store, study)
        time.sleep(0.1)


def check_sheet(page: Page, browser, names: list[str]) -> None:
    """The print dialogue opens for a page with all rows, room for notes and the date."""
    page.evaluate(CATCH_PRINT)
    page.get_by_role("button", name="Print").click()
    page.wait_for_function("window.doplPrinted")
    paper = browser.new_context().new_page()
    paper.set_content(page.evaluate("window.doplPrinted"))
    paper.emulate_media(media="print")
    for head in ("Notes", "State now"):
        expect(paper.get_by_role("columnheader", name=head)).to_be_visible()
    expect(paper.locator("tbody").first.locator("tr:not(.reason)")).to_have_count(len(names))
    for name in names:
        expect(paper.get_by_text(name)).to_be_visible()
    assert re.search(r"List of \d+ \w+ \d{4}", paper.locator("body").inner_text())
    assert paper.locator("tbody b, script, img").count() == 0
    assert paper.pdf()[:5] == b"%PDF-"
    paper.context.close()


# Keeps the document that would be printed: no dialogue opens without a person.
CATCH_PRINT = """() => {
  const frame = HTMLIFrameElement.prototype
  const own = Object.getOwnPropertyDescriptor(frame, "contentWindow").get
  Object.defineProperty(frame, "contentWindow", {get() {
    const inside = own.call(this)
    inside.print = () => { window.doplPrinted = inside.document.documentElement.outerHTML }
    return inside
  }})
}"""


def check_files(page: Page, ids: list[str]) -> None:
    with page.expect_download() as download:
        page.get_by_role("button", name="This list (CSV)").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8-sig"))))
    with page.expect_download() as download:
        page.get_by_role("button", name="This list (XLSX)").click()
    sheet = studies.open_sheet(download.value.path().read_bytes(), "list.xlsx")
    assert [cells["id"] for _, cells in sheet.rows] == [one["id"] for one in rows]
    assert [one["id"] for one in rows if one["reserve"] == "0"] == ids
    assert all(one["why"] for one in rows)


def no_wider_than_the_screen(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_link(page: Page, browser, names: list[str], size: tuple[int, int]) -> None:
    """A colleague reads the list and nothing else, until the owner revokes the link."""
    page.get_by_text("Share the list with a colleague").click()
    page.get_by_label("Name of the colleague").fill("Dr Bo")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("code", has_text="read=").inner_text()
    there = {"width": size[0], "height": size[1]}
    colleague = browser.new_context(viewport=there).new_page()
    colleague.goto(link)
    expect(colleague.get_by_text("Week 4: help these 2 of 11 patients")).to_be_visible()
    for name in names:
        expect(colleague.get_by_text(name)).to_be_visible()
    expect(colleague.get_by_role("navigation")).to_have_count(0)
    expect(colleague.get_by_role("textbox")).to_have_count(0)
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Revoked", exact=True)).to_be_visible()
    colleague.reload()
    expect(colleague.get_by_text("This link is no longer valid.")).to_be_visible()
    colleague.context.close()
