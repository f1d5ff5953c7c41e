"""Screenshots of every page for the README: `python tests/browser/screenshots.py [FOLDER]`.

It starts a server with a study that four simulated people have answered at a human pace, a clinic's
roster, and a finished simulation.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from app_server import CHROMIUM_FLAGS, ROOT, Server
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from dopl_core import studies
from dopl_core.studies.model.study_config import bandit_of
from dopl_core.world import bradley_terry

FOLDER = ROOT / "data" / "screenshots"
PEOPLE = {"Amina": 1100, "Bruno": 1700, "Chloé": 1400, "Deniz": 2200}  # ms to an answer
ON_A_PHONE = "Deniz"

expect.set_options(timeout=60_000)  # a machine may be slow


def main() -> None:
    """Make them all."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp())
    server = Server(place).start()
    try:
        store = studies.open_store(server.environment["DOPL_DATABASE_URL"])
        clinic, study = make_clinic(store), make_answers(store)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS
            )
            size = {"width": 1180, "height": 820}
            page = browser.new_context(color_scheme="light", viewport=size).new_page()
            take_all(page, server.url, study, clinic, folder)
            page = browser.new_context(color_scheme="dark", viewport=size).new_page()
            page.goto(f"{server.url}/annotate?study={study}")
            expect(page.get_by_text("Yours so far")).to_be_visible()
            take(page, folder / "dark.png", 700)
            phone = {"viewport": {"width": 390, "height": 664}, "has_touch": True}
            page = browser.new_context(color_scheme="dark", is_mobile=True, **phone).new_page()
            page.goto(f"{server.url}/annotate?study={study}")
            expect(page.get_by_text("Yours so far")).to_be_visible()
            take(page, folder / "phone.png", 664, 390)
            browser.close()
    finally:
        server.kill()
        shutil.rmtree(place)


def take_all(page: Page, url: str, study: str, clinic: str, folder: Path) -> None:
    """Every page as it is in daily use."""
    page.goto(url)
    expect(page.get_by_role("button", name="Try it now")).to_be_visible()
    take(page, folder / "home.png", 700)
    page.goto(f"{url}/annotate?study={study}")
    expect(page.get_by_text("Yours so far")).to_be_visible()
    take(page, folder / "annotate.png", 700)
    page.goto(f"{url}/annotate?study={clinic}")
    expect(page.get_by_text("Age", exact=True).first).to_be_visible()
    take(page, folder / "roster.png", 730)
    page.goto(f"{url}/studies?study={clinic}")
    expect(page.get_by_text("help these", exact=False).first).to_be_visible()
    take(page, folder / "list.png", 900)
    page.get_by_role("button", name="Report week 4").click()
    expect(page.get_by_text("On the list").first).to_be_visible()
    take(page, folder / "report.png", 900)
    page.goto(f"{url}/studies?study={study}")
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    take(page, folder / "studies.png", 860)
    page.goto(f"{url}/insights?study={study}")
    expect(page.get_by_text("at the end of").first).to_be_visible(timeout=30_000)
    take(page, folder / "insights.png", 1100)
    page.get_by_role("tab", name="How people answer").click()
    expect(page.get_by_text("answers so far, by")).to_be_visible(timeout=30_000)
    take(page, folder / "people.png", 1330)
    page.goto(f"{url}/simulate")
    page.get_by_role("spinbutton", name="Episodes (plans)").fill("80")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("finished:")).to_be_visible(timeout=300_000)
    expect(page.get_by_text("epochs DOPL gains")).to_be_visible()
    take(page, folder / "simulate.png", 1420)


def take(page: Page, path: Path, height: int, width: int = 1180) -> None:
    page.set_viewport_size({"width": width, "height": height})
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=30_000)
    page.wait_for_timeout(1500)  # charts are drawn a little after their data come
    save(page.screenshot(), path)


def save(picture: bytes, path: Path) -> None:
    """As a small file: 64 colours are plenty for a page."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}  {path.stat().st_size / 1024:.0f} kB")


def make_answers(store: studies.Store) -> str:
    """A CPAP study with 420 answers of four people, each duel rated by two of them."""
    config = studies.from_environment(
        "cpap",
        practice=False,
        ratings=2,
        repeat_every=15,
        title="CPAP adherence, June",
        hide_state=True,
    )
    study = studies.create_study(store, config)
    rewards, rng, real = bandit_of(config).rewards, np.random.default_rng(6), store.clock
    now = real() - 3000
    store.clock = lambda: now
    names = list(PEOPLE)
    for number in range(420):
        name = names[number % 4]
        reply = studies.next_duel(store, study, name)
        if isinstance(reply, studies.Waiting):
            if reply.reason == "plan":
                studies.advance(store, study)
            continue
        took = PEOPLE[name] * rng.lognormal(0, 0.4)
        now += took / 1000 + 1
        gap = (
            rewards[reply.left.number, reply.left.state_number]
            - rewards[reply.right.number, reply.right.state_number]
        )
        outcome = "left" if rng.random() < bradley_terry(3 * gap) else "right"
        narrow = name == ON_A_PHONE
        studies.answer(store, reply.impression, outcome, response_ms=int(took), narrow=narrow)
    store.clock = real
    return study


def make_clinic(store: studies.Store) -> str:
    """A clinic's own patients in their fourth week, from the README's six."""
    folder, states = ROOT / "data" / "rosters" / "six_weeks", ["Low", "Moderate", "High"]
    rules = {"title": "Sleep clinic", "budget": 4, "noun": "patient", "practice": False}
    rules |= {"question": "Which patient is doing better with the therapy?", "answers": 15}
    arms = studies.read_roster(folder / "roster.csv", states)
    config = studies.from_roster(arms, states, **rules)
    past = studies.read_history(folder / "history.csv", config)
    study = studies.create_study(store, config, past)
    for week in (1, 2, 3):
        for _ in range(12):
            reply = studies.next_duel(store, study, "Amina")
            if isinstance(reply, studies.Ask):
                better = reply.left.state_number >= reply.right.state_number
                said = "left" if better else "right"
                studies.answer(store, reply.impression, said, too_fast_ms=0)
        read = studies.read_report(folder / f"week{week}.csv", config)
        studies.observe(store, study, read.states, read.columns)
        studies.advance(store, study)
    return study


if __name__ == "__main__":
    main()
