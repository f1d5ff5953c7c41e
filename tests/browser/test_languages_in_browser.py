"""The whole sitting in each language, on a small phone and on a laptop; Arabic is mirrored."""

import pytest
from acts import choice, think
from axe import serious_findings
from playwright.sync_api import Page, expect

from dopl_core import studies, wording
from dopl_core.studies import access

pytestmark = pytest.mark.long

PHONE, LAPTOP = {"width": 320, "height": 640}, {"width": 1280, "height": 800}
STATES = ["Low", "High"]
WHOLE = ("ar", "de", "hi")  # all practice comparisons are answered; other languages skip the rest
# Texts that are cut: wider than their box where the rest is hidden, or beyond the screen's edges.
CUT = """() => [...document.querySelectorAll(".stMain *")].filter((one) => {
  const box = one.getBoundingClientRect(), hides = getComputedStyle(one).overflowX != "visible"
  const own = [...one.childNodes].some((node) => node.nodeType == 3 && node.textContent.trim())
  const shown = box.width > 1 && box.height > 1
  return shown && own && ((hides && one.scrollWidth > one.clientWidth + 1)
    || box.left < -1 || box.right > innerWidth + 1)
}).map((one) => one.textContent)"""

# How far Streamlit's header reaches over the question, in pixels; less than 0 if there is a gap.
COVERED = """() => {
  const question = document.querySelector(".st-key-question h2")
  if (!question) return -Infinity
  const words = document.createRange()
  words.selectNodeContents(question)
  const header = document.querySelector("header").getBoundingClientRect()
  return header.bottom - words.getBoundingClientRect().top
}"""


def said(code: str, sentence: str) -> str:
    return wording._catalogue(code).gettext(sentence)


@pytest.fixture(scope="module")
def study(store):
    arms = [
        studies.Arm(f"p{n}", f"P{n}", state=STATES[n % 2], columns={"age": str(60 + n)})
        for n in range(8)
    ]
    rules = {"title": "Clinic", "budget": 3, "answers": 500, "quota": 2, "ties_allowed": True}
    rules |= {"consent": "We keep your answers for a year."}
    rules |= {"reason_every": 1, "reason_tags": "Age, Weight", "translations": "[de]\nAge = Alter"}
    return studies.create_study(store, studies.from_roster(arms, STATES, **rules))


def look(page: Page, view: str, check_access: bool = False) -> None:
    """Nothing is cut on a phone or a laptop, and axe finds nothing serious."""
    for size in (LAPTOP, PHONE):
        page.set_viewport_size(size)
        assert page.evaluate(CUT) == [], f"{view} at {size['width']} pixels"
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], view
        assert page.evaluate(COVERED) <= 0, f"{view} at {size['width']} pixels"
    if check_access:
        assert serious_findings(page) == [], view


def tab_to(page: Page, key: str) -> None:
    for _tab in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(f"!!document.activeElement.closest('[class*=st-key-{key}]')"):
            return
    pytest.fail(f"the keyboard does not reach {key}")


def act(page: Page, key: str, by_keyboard: bool, press: str = "Enter") -> None:
    """Click a button, or press its key."""
    if by_keyboard:
        page.keyboard.press(press)
    else:
        page.locator(f"[class*='st-key-{key}'] button").click()


@pytest.mark.parametrize("code", ["ar", "de", "en", "es", "fr", "hi", "pt"])
def test_a_whole_sitting_and_the_list_are_in_the_language_and_nothing_is_cut(
    page, server, store, study, code
):
    by_keyboard = code == "hi"
    token = access.invite(store, study, f"Ann {code}")
    page.goto(f"{server.url}/annotate?invite={token}&lang={code}")
    begin = page.locator(".st-key-begin button")
    expect(begin).to_have_text(said(code, "Begin"))
    root = page.locator("html")
    expect(root).to_have_attribute("lang", code)
    expect(root).to_have_attribute("dir", "rtl" if code == "ar" else "ltr")
    look(page, "arrival", check_access=code in WHOLE)
    if by_keyboard:
        tab_to(page, "begin")
    act(page, "begin", by_keyboard)
    expect(page.get_by_text(said(code, "Before you begin"))).to_be_visible()
    look(page, "consent")
    if by_keyboard:
        tab_to(page, "agree")
    act(page, "agree", by_keyboard)
    expect(choice(page, "left")).to_be_visible()
    look(page, "practice")
    left, right = (choice(page, side).bounding_box() for side in ("left", "right"))
    assert left["x"] < right["x"]  # also where the rest of the page is mirrored
    for lesson in range(3 if code in WHOLE else 1):
        think(page)
        act(page, "left-", by_keyboard, "ArrowLeft")
        expect(page.locator("[class*='st-key-next-'] button")).to_be_visible()
        if lesson == 0:
            look(page, "lesson")
        if by_keyboard:
            think(page)  # people read a lesson; a key can come before the page listens
        act(page, "next-" if code in WHOLE else "skip-practice", by_keyboard)
        expect(choice(page, "left")).to_be_visible()
    for count, (key, press) in enumerate((("left-", "ArrowLeft"), ("skip-", "s"))):
        progress = said(code, "Yours so far: {own} of {quota}.").format(own=count, quota=2)
        expect(page.get_by_text(progress)).to_be_visible()
        if count:
            expect(page.locator(".st-key-note .stText")).to_have_text(said(code, "Saved."))
            why = page.get_by_role("button", name=said(code, "Tell us why"))
            expect(why).to_be_visible()
            look(page, "comparison", check_access=True)
            if code == "de":
                why.click()
                expect(page.get_by_text(said(code, "In your own words"))).to_be_visible()
                expect(page.get_by_role("button", name="Alter")).to_be_visible()
                look(page, "reason", check_access=True)
                page.keyboard.press("Escape")
                expect(page.get_by_text(said(code, "In your own words"))).to_have_count(0)
        think(page)
        act(page, key, by_keyboard, press)
    expect(page.get_by_text(said(code, "Thank you!"))).to_be_visible()
    look(page, "thanks")
    page.goto(f"{server.url}/list?read={access.invite(store, study, code, 'list')}&lang={code}")
    expect(page.locator(".dopl-list")).to_be_visible()
    expect(root).to_have_attribute("lang", code)
    look(page, "list")


def test_arabic_is_mirrored_and_the_owners_pages_are_not(page, server, store, study):
    page.goto(f"{server.url}/annotate?study={study}&lang=ar")
    box = choice(page, "left").bounding_box()
    heading = page.get_by_role("heading", level=2)
    edge = "(one) => { const r = document.createRange(); r.selectNodeContents(one);"
    edge += " return r.getBoundingClientRect().right - one.getBoundingClientRect().right }"
    assert abs(heading.evaluate(edge)) < 2  # it begins at the right
    assert box["x"] < 640
    label = page.locator(".st-key-to-own button p")
    label.evaluate("(one) => { one.textContent = 'W'.repeat(200) }")
    assert page.evaluate(CUT)  # the check above notices it
    page.get_by_role("link", name="Studies").click()
    expect(page.get_by_role("tab", name="New study")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("dir", "ltr")
    expect(page.locator("html")).to_have_attribute("lang", "en")
