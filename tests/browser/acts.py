"""Actions of people on the pages."""

import re

from playwright.sync_api import Page, expect

THINKING = 350  # ms; clicks within 300 ms after a comparison appears are ignored


def open_duels(page: Page, server, study: str) -> None:
    page.goto(f"{server.url}/annotate?study={study}")
    expect(choice(page, "left")).to_be_visible()


def come_in(page: Page, link: str) -> None:
    """Open a link for the first time."""
    page.goto(link)
    page.get_by_role("button", name="Begin").click()
    expect(choice(page, "left")).to_be_visible()


def choice(page: Page, side: str):
    return page.locator(f"[class*='st-key-{side}-'] button")


def shown(page: Page) -> str:
    """The impression on the page."""
    key = page.locator("[class*='st-key-choices-']")
    found = re.search(r"st-key-choices-(\d+)", key.get_attribute("class") or "")
    assert found
    return found[1]


def think(page: Page) -> None:
    page.wait_for_timeout(THINKING)


def expect_answers(page: Page, count: int) -> None:
    expect(page.get_by_text(f"Yours so far: {count}.")).to_be_visible()


def answers_of(store, study: str):
    from dopl_core import studies
    from dopl_core.studies import chart_text

    return chart_text.learnt_answers(studies.answers(store, study))
