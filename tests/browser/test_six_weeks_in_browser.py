"""Six weeks of a clinic of 45 in a browser: rules, an override, an undone report, a newcomer."""

import itertools
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from test_owner_in_browser import SIZES, no_wider_than_the_screen, open_tab, pick, send

from dopl_core import studies
from dopl_core.studies import access

STATES = ("schlecht", "mäßig", "gut")
FIRST = ("Jürgen", "Zoë", "आशा", "Ömer", "Łukasz", "Björk", "देवी", "सुनीता", "Änne")
LAST = ("Müller", "Größmann", "शर्मा", "Çelik", "पटेल")
HEAD = ("Nr", "Name", "Zustand", "Station", "Telefon")


def name_of(number: int) -> str:
    return f"{FIRST[number % 9]} {LAST[number // 9]}"


class Clinic:
    """An owner with a browser, and a colleague who reads the list by a link."""

    def __init__(self, page: Page, store, folder: Path, suffix: str) -> None:
        self.page, self.store, self.folder, self.suffix = page, store, folder, suffix
        self.rng, self.study = random.Random(3), ""

    def file(self, name: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
        """As Excel on a German Windows saves it: semicolons and a byte-order mark, or XLSX."""
        path = self.folder / f"{name}.{self.suffix}"
        if self.suffix == "xlsx":
            path.write_bytes(studies.write_xlsx(head, rows))
        else:
            lines = (";".join(map(str, row)) for row in (head, *rows))
            path.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
        return path

    def upload(self, path: Path) -> None:
        self.page.locator("input[type=file][accept*=csv]").last.set_input_files(path)

    def create(self, server) -> None:
        rows = [
            (100 + n, name_of(n), STATES[n % 3], "NS"[n % 2], f"0171 {n:06}") for n in range(45)
        ]
        page = self.page
        page.goto(f"{server.url}/studies")
        page.get_by_role("tab", name="New study").click()
        self.upload(self.file("roster", HEAD, rows))
        for state in STATES:
            pick(page, "States, from worst to best", state)
        page.keyboard.press("Escape")
        page.get_by_label("Title", exact=True).fill(f"Klinik Süd {self.suffix}")
        page.get_by_label("One of them is called a", exact=True).fill("Patient")
        page.get_by_role("spinbutton", name="How many can be helped").fill("8")
        page.keyboard.press("Tab")
        page.get_by_text("Your rules", exact=True).click()
        page.get_by_role("spinbutton", name="Nobody is listed more than once in").fill("2")
        page.keyboard.press("Tab")
        pick(page, "Share places fairly by this column", "Station")
        page.get_by_role("button", name="Create the study").click()
        page.get_by_role("button", name="Make the first list now").click()
        self.see_list(1)
        self.study = re.findall(r"study=([\w-]+)", page.url)[0]

    def see_list(self, week: int, people: int = 45) -> None:
        words = f"Week {week}: help these 8 of {people} Patients"
        expect(self.page.get_by_text(words)).to_be_visible(timeout=30_000)

    def list(self) -> studies.WeekList:
        return studies.read_lists(self.store, self.study, last=1)[-1]

    def report(self, week: int, also: Sequence[tuple[str, str]] = ()) -> None:
        """A report by file, with the columns of the roster; people on the list get better."""
        listed = {one.id for one in self.list().listed}
        now = studies.present_states(self.store, self.study)
        rows = [
            (arm, "gut" if arm in listed else self.rng.choice(STATES), int(arm in listed))
            for arm in now
        ]
        rows += [(arm, state, "") for arm, state in also]
        page = self.page
        page.get_by_role("button", name=f"Report week {week}").click()
        page.get_by_role("radio", name="By file").click()
        self.upload(self.file(f"week{week}", ("Nr", "Zustand", "helped"), rows))
        if also:
            expect(page.get_by_text("You left 1 cell for help empty.")).to_be_visible()
            page.get_by_role("radio", name="not helped").click()
            expect(page.get_by_text("Joined since the list was made")).to_be_visible()
        expect(page.get_by_text("8 of 8 helped")).to_be_visible()
        send(page, week)

    def take_off(self) -> str:
        """Take the first person off the list; who that is."""
        page, gone = self.page, self.list().listed[0]
        page.get_by_text("Change this list").click()
        change = page.get_by_role("button", name="Change the list")
        pick(page, "Take off", gone.label)
        expect(change).to_be_enabled()
        page.keyboard.press("Escape")
        page.get_by_label("Why, in a few words").fill("im Urlaub")
        page.keyboard.press("Tab")
        change.click()
        expect(page.get_by_text("The list is changed:")).to_be_visible()
        return gone.id

    def undo(self, week: int) -> None:
        page = self.page
        page.get_by_role("button", name="Undo this report").click()
        page.get_by_role("button", name=f"Undo the report of week {week} now").click()
        expect(page.get_by_text(f"The report of week {week} is undone.")).to_be_visible()
        self.see_list(week)
        expect(page.get_by_role("button", name="Undo this report")).to_be_visible()
        expect(page.get_by_role("button", name=f"of week {week - 1} now")).to_have_count(0)

    def join(self) -> None:
        page = self.page
        open_tab(page, "People")
        page.get_by_text("Add a person", exact=True).click()
        page.get_by_label("ID", exact=True).fill("900")
        page.get_by_label("Name", exact=True).fill("Neele Grün")
        page.get_by_role("button", name="Add this person").click()
        expect(page.get_by_text("part from the next list on")).to_be_visible()

    def correct(self, week: int, rows: Sequence[tuple[str, str]]) -> None:
        page = self.page
        pick(page, "Choose a week", f"Week {week},")
        page.get_by_text(f"Correct the report of week {week}").click()
        page.get_by_role("radio", name="By file").click()
        self.upload(self.file("correction", ("Nr", "Zustand"), rows))
        expect(page.get_by_text("Changed state (2):")).to_be_visible()
        self.look("correction")
        page.get_by_role("button", name="Correct 2 people").click()
        expect(
            page.get_by_text(f"The report of week {week} is corrected for 2 people.")
        ).to_be_visible()

    def look(self, name: str) -> None:
        """A picture for people who look at what the test did; nothing is wider than the screen."""
        expect(self.page.get_by_test_id("stStatusWidget")).to_have_count(0)
        no_wider_than_the_screen(self.page)
        self.page.screenshot(path=self.folder / f"{name}.png", full_page=True)


@pytest.mark.long
@pytest.mark.parametrize(("size", "suffix"), [("desktop", "csv"), ("phone", "xlsx")])
def test_a_clinic_of_45_lives_six_weeks_by_its_own_rules(
    browser, server, store, tmp_path, size, suffix
):
    width, height = SIZES[size]
    screen = {"viewport": {"width": width, "height": height}}
    page, reader = (browser.new_context(**screen).new_page() for _ in range(2))
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    clinic = Clinic(page, store, tmp_path, suffix)
    clinic.create(server)
    token = access.invite(store, clinic.study, "Dr. Größe", "list")
    reader.goto(f"{server.url}/list?read={token}")
    expect(reader.get_by_text("Week 1: help these 8 of 45 Patients")).to_be_visible()

    clinic.report(1)
    clinic.see_list(2)
    clinic.look("week2")
    gone = clinic.take_off()
    before = clinic.list()
    clinic.report(2)  # too early
    clinic.see_list(3)
    expect(reader.get_by_text("Week 3: help these 8 of 45 Patients")).to_be_visible(timeout=30_000)
    clinic.undo(2)
    clinic.look("undone")
    assert clinic.list() == before
    assert [one.id for one in clinic.list().removed] == [gone]
    expect(reader.get_by_text("Week 2: help these 8 of 45 Patients")).to_be_visible(timeout=30_000)
    clinic.report(2)
    clinic.see_list(3)
    clinic.join()
    clinic.report(3, also=[("900", "schlecht")])
    clinic.see_list(4, people=46)
    assert studies.present_states(store, clinic.study)["900"] == "schlecht"
    was = studies.read_week(store, clinic.study, 3)
    rows = [(arm, "gut") for arm, one in was.items() if one.state == "schlecht"][:2]
    clinic.correct(3, rows)
    page.reload()
    for week in (4, 5, 6):
        clinic.report(week)
        clinic.see_list(week + 1, people=46)
    clinic.look("week7")
    expect(reader.get_by_text("Week 7: help these 8 of 46 Patients")).to_be_visible(timeout=30_000)
    reader.screenshot(path=tmp_path / "reader.png", full_page=True)
    check_study(store, clinic.study)
    assert page.get_by_test_id("stException").count() == 0
    for one in (page, reader):
        one.context.close()


def check_study(store, study: str) -> None:
    """Nobody was listed twice in two weeks, both wards had their share, and all replays."""
    weeks = studies.read_lists(store, study)
    assert [week.reported for week in weeks] == [True] * 6 + [False]
    listed = [{one.id for one in week.listed} for week in weeks]
    assert not any(one & two for one, two in itertools.pairwise(listed))
    north = sum(int(arm) % 2 == 0 for some in listed for arm in some if arm != "900")
    assert abs(north - 7 * 8 * 23 / 45) <= 1 + 2  # an override, and somebody without a ward
    studies.replay_study(store, study)
