"""Annotating in a real browser: answers count once, and none is lost."""

import pytest
from acts import answers_of, choice, come_in, expect_answers, open_duels, shown, think
from app_server import Server
from playwright.sync_api import expect

from dopl_core import studies
from dopl_core.studies import access


@pytest.fixture
def no_trial(store):
    """No trial study exists."""
    for study in studies.list_studies(store):
        if study.title.startswith("Try it"):
            studies.delete_study(store, study.id)


def test_a_visitor_gives_ten_answers_by_mouse(page, server, store, no_trial):
    page.goto(server.url)
    page.get_by_role("button", name="Try it now").click()
    page.get_by_role("button", name="Skip practice").click()
    expect_answers(page, 0)
    for count in range(1, 11):
        think(page)
        side = "left" if count % 3 else "right"
        card = page.locator(f"[class*='st-key-card-{side}']")
        (choice(page, side) if count % 2 else card).click()  # the whole card is the button
        expect_answers(page, count)
    study = page.url.partition("study=")[2]
    said = answers_of(store, study)
    assert list(said.outcome) == ["left", "left", "right"] * 3 + ["left"]
    assert said.response_ms.between(300, 10_000).all()
    assert said.trip_ms[1:].between(5, 10_000).all()  # as the browser measured it
    assert (said.narrow == 0).all()
    page.goto(server.url)
    page.get_by_role("button", name="Try it now").click()  # the same study continues
    expect_answers(page, 10)


def test_a_visitor_gives_ten_answers_by_keyboard(page, server, store, no_trial):
    page.goto(server.url)
    page.get_by_role("button", name="Try it now").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Skip practice").focus()
    page.keyboard.press("Enter")
    expect_answers(page, 0)
    keys = ["ArrowLeft", "ArrowRight", "Space", "s", "ArrowLeft"] * 2
    for count, key in enumerate(keys, 1):
        think(page)
        page.keyboard.press(key)
        expect_answers(page, count)
    study = page.url.partition("study=")[2]
    assert list(answers_of(store, study).outcome) == ["left", "right", "skip", "skip", "left"] * 2


def test_a_focused_button_keeps_the_focus_in_the_next_comparison(page, server, store, study):
    open_duels(page, server, study)
    think(page)
    choice(page, "right").focus()
    for count, key in enumerate(("Enter", "Space", "Enter"), 1):
        page.keyboard.press(key)
        expect_answers(page, count)
        expect(choice(page, "right")).to_be_focused()
        think(page)
    assert list(answers_of(store, study).outcome) == ["right"] * 3


def test_a_double_click_counts_once(page, server, store, study):
    open_duels(page, server, study)
    for count in range(1, 6):
        think(page)
        choice(page, "left").dblclick(delay=10)
        expect_answers(page, count)
    think(page)
    expect_answers(page, 5)
    assert len(answers_of(store, study)) == 5


def test_a_held_key_counts_once(page, server, store, study):
    open_duels(page, server, study)
    for count in range(1, 4):
        think(page)
        for _ in range(20):  # what the system sends while a key is held
            page.keyboard.down("ArrowRight")
            page.wait_for_timeout(30)
        page.keyboard.up("ArrowRight")
        expect_answers(page, count)
    assert len(answers_of(store, study)) == 3


def test_a_reload_shows_the_same_comparison(page, server, study):
    open_duels(page, server, study)
    think(page)
    choice(page, "left").click()
    expect_answers(page, 1)
    before, names = shown(page), choice(page, "right").inner_text()
    page.reload()
    expect_answers(page, 1)
    assert shown(page) == before
    assert choice(page, "right").inner_text() == names


def test_undo_removes_the_last_answer_and_shows_its_comparison_again(page, server, store, study):
    open_duels(page, server, study)
    think(page)
    names = choice(page, "left").inner_text(), choice(page, "right").inner_text()
    page.keyboard.press("ArrowLeft")
    expect_answers(page, 1)
    page.keyboard.press("u")
    expect(page.get_by_text("Undone.")).to_be_visible()
    expect_answers(page, 0)
    assert (choice(page, "left").inner_text(), choice(page, "right").inner_text()) == names
    think(page)
    page.keyboard.press("ArrowRight")
    expect_answers(page, 1)
    assert list(answers_of(store, study).outcome) == ["right"]


def test_a_tie_is_an_answer_if_the_study_allows_it_and_its_reason_can_be_given(page, server, store):
    rules = {"practice": False, "ties_allowed": True, "reason_unsure": True}
    config = studies.from_environment("app_marketing", reason_tags="Use, Trend", **rules)
    study = studies.create_study(store, config)
    open_duels(page, server, study)
    think(page)
    page.keyboard.press("t")
    expect_answers(page, 1)
    assert list(answers_of(store, study).outcome) == ["tie"]
    page.get_by_role("button", name="Tell us why").click()
    tag = page.get_by_role("button", name="Trend")
    tag.click()
    for key in ("ArrowLeft", "ArrowRight", "s", "t", "u"):  # these answer, but not here
        tag.press(key)
    own = page.get_by_label("In your own words")
    own.press_sequentially("status quo, u")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Thank you. The owner will read this.")).to_be_visible()
    expect(page.get_by_role("button", name="Tell us why")).to_have_count(0)
    expect_answers(page, 1)
    [said] = answers_of(store, study).itertuples()
    assert (said.outcome, said.reason_tags, said.reason) == ("tie", "Trend", "status quo, u")
    page.keyboard.press("ArrowLeft")  # outside, it answers again
    expect_answers(page, 2)


def test_practice_gives_feedback_and_is_shown_once(page, server, store):
    study = studies.create_study(store, studies.from_environment("cpap"))
    open_duels(page, server, study)
    expect(page.get_by_text("Practice: these answers do not count.")).to_be_visible()
    for _ in range(3):
        before = shown(page)
        think(page)
        choice(page, "left").click()
        expect(page.get_by_text("was doing better")).to_be_visible()
        expect(page.locator(f".st-key-choices-{before}")).to_have_count(0)
        page.keyboard.press("Enter")
        expect(page.get_by_text("was doing better")).to_have_count(0)
    expect_answers(page, 0)
    shown_so_far = studies.answers(store, study)
    assert (shown_so_far.purpose == "practice").sum() == 3
    page.reload()
    expect_answers(page, 0)


def test_two_annotators_never_get_the_same_comparison(browser, server, store, study):
    pages = []
    for name in ("Ann", "Bo"):
        token = access.invite(store, study, name)
        page = browser.new_context().new_page()
        come_in(page, f"{server.url}/annotate?invite={token}")
        expect_answers(page, 0)
        pages.append(page)
    for count in range(1, 6):
        for page, side in zip(pages, ("left", "right"), strict=True):
            think(page)
            choice(page, side).click()
            expect_answers(page, count)
    said = answers_of(store, study)
    assert sorted(said.groupby("annotator").size()) == [5, 5]
    assert not said.duplicated(["episode", "epoch", "duel"]).any()
    for page in pages:
        page.context.close()


def test_a_waiting_page_continues_by_itself(browser, server, store):
    config = studies.from_environment("app_marketing", practice=False, horizon=1)
    study = studies.create_study(store, config)  # three duels a plan
    pages = []
    for name in ("Ann", "Bo"):
        page = browser.new_context().new_page()
        come_in(page, f"{server.url}/annotate?invite={access.invite(store, study, name)}")
        expect_answers(page, 0)
        pages.append(page)
    ann, bo = pages
    think(ann)
    ann.keyboard.press("ArrowLeft")
    expect_answers(ann, 1)  # on a slow machine the next comparison comes later
    think(ann)
    ann.keyboard.press("ArrowLeft")
    expect(ann.get_by_text("Colleagues have the last comparisons of this round")).to_be_visible()
    think(bo)
    bo.keyboard.press("ArrowLeft")
    expect_answers(bo, 1)
    expect_answers(ann, 2)
    expect(choice(ann, "left")).to_be_visible()
    for page in pages:
        page.context.close()


def test_answers_survive_a_killed_server(page, tmp_path):
    server = Server(tmp_path).start()
    try:
        store = studies.open_store(server.environment["DOPL_DATABASE_URL"])
        study = studies.create_study(store, studies.from_environment("cpap", practice=False))
        open_duels(page, server, study)
        for count in range(1, 4):
            think(page)
            choice(page, "left").click()
            expect_answers(page, count)
        before = shown(page)
        server.kill()
        server.start()
        page.reload()
        expect_answers(page, 3)
        assert shown(page) == before
        for count in range(4, 6):
            think(page)
            choice(page, "right").click()
            expect_answers(page, count)
        assert list(answers_of(store, study).outcome) == ["left"] * 3 + ["right"] * 2
    finally:
        server.kill()


def test_after_a_round_the_next_comparison_comes_by_itself(page, server, store):
    config = studies.from_environment("app_marketing", practice=False, horizon=1)
    study = studies.create_study(store, config)
    open_duels(page, server, study)
    for count in range(1, 8):
        think(page)
        page.keyboard.press("ArrowLeft")
        expect_answers(page, count)
    assert studies.get_study(store, study).episode == 3


def test_a_pause_keeps_the_comparison_and_the_end_offers_the_answers_as_csv(page, server, store):
    config = studies.from_environment("app_marketing", practice=False, horizon=1, episodes=1)
    study = studies.create_study(store, config)
    open_duels(page, server, study)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Your answers are saved.")).to_be_visible()
    page.get_by_role("button", name="Continue").click()
    for _ in range(3):
        expect(choice(page, "left")).to_be_visible()
        before = shown(page)
        think(page)
        choice(page, "left").click()
        expect(page.locator(f".st-key-choices-{before}")).to_have_count(0)
    expect(page.get_by_text("Thank you!")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="My answers (CSV)").click()
    lines = download.value.path().read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("study,session,annotator,episode")
    assert len(lines) == 4


MEASURE = """() => {
  const main = document.querySelector('.stMain');
  const find = (what) => document.querySelector(`[class*="st-key-${what}"]`);
  const box = (what) => find(what).getBoundingClientRect();
  const places = [...main.querySelectorAll('*')].map((one) => getComputedStyle(one).position);
  const sticks = places.includes('sticky') || places.includes('fixed');
  const boxes = {left: box('card-left'), right: box('card-right'), button: box('left-')};
  const wide = document.documentElement.scrollWidth;
  return {...boxes, others: box('others'), scrolled: main.scrollTop, sticks, wide};
}"""


@pytest.mark.long
def test_buttons_keep_their_place_and_the_next_pair_starts_at_the_top(page, server, store):
    """On phones, on their side too, on a laptop and at 200 %; with short cards and long ones."""
    note = "Came late to the last two visits and says that the mask leaks at night. " * 3
    columns = [{"age": "61", "hours": "5 0 7"}, {"age": "70", "hours": "1 2 3", "note": note}]
    arms = [
        studies.Arm(f"p{n}", f"Person {n}", state="AB"[n % 2], columns=columns[n % 3 == 0])
        for n in range(9)
    ]
    rules = {"title": "Ward", "budget": 3, "sitting": 40, "practice": False, "hide_state": True}
    rules |= {"reason_every": 2, "reason_tags": "Hours"}  # the button for it takes no place
    study = studies.create_study(store, studies.from_roster(arms, ("A", "B"), **rules))
    open_duels(page, server, study)
    given, narrow = 0, []
    for width, height in ((320, 568), (667, 375), (640, 400), (1280, 800)):
        page.set_viewport_size({"width": width, "height": height})
        places, heights, is_short = set(), [], height < 500
        while len(heights) < 3 or (is_short and max(heights) - min(heights) < 40):  # notes differ
            think(page)
            page.evaluate("document.querySelector('.stMain').scrollTo(0, 9999)")
            page.keyboard.press("ArrowLeft")
            expect_answers(page, given := given + 1)
            seen = page.evaluate(MEASURE)
            places.add(round(seen["button"]["top"]))
            heights.append(seen["left"]["height"])
            assert seen["scrolled"] == 0
            assert seen["wide"] <= width
            assert 0 <= seen["button"]["top"] < seen["others"]["bottom"] <= height
            side_by_side = seen["left"]["top"] == seen["right"]["top"]
            assert side_by_side == (is_short or width > 640)
            assert seen["sticks"] != is_short
        assert max(places) - min(places) <= 1
        if is_short:  # a card without a long note and the buttons fit
            assert seen["left"]["top"] + min(heights) <= height
        narrow += [int(width == 320)] * len(heights)
    said = answers_of(store, study)
    assert list(said.narrow) == narrow
    assert 1 / 4 < (said.reason_asked == 1).mean() < 3 / 4


@pytest.mark.parametrize("size", [(390, 664), (320, 568)])
def test_a_whole_session_works_by_touch_on_a_phone_and_hides_states(
    browser, server, store, size, tmp_path
):
    """From the link to "Thank you": everything to touch is on the first screen."""
    names = ("Qz1", "Qz2", "Qz3")
    arms = [
        studies.Arm(f"p{n}", f"Person {n}", state=names[n % 3], columns={"hours": f"{n} 4 {n % 3}"})
        for n in range(12)
    ]
    rules = {"title": "Ward", "budget": 5, "quota": 3, "completion_code": "C0DE"}
    study = studies.create_study(store, studies.from_roster(arms, names, **rules))
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=True, is_mobile=True
    )
    page, sent = context.new_page(), []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: sent.append(data)))
    link = f"{server.url}/annotate?invite={access.invite(store, study, 'Ann')}&participant=7b"
    page.goto(link)
    page.get_by_role("button", name="Begin").tap()
    think(page)
    choice(page, "left").tap()
    expect(page.get_by_text("was doing better")).to_be_visible()
    page.get_by_role("button", name="Next").tap()
    page.get_by_role("button", name="Skip practice").tap()
    expect(page.get_by_text("Yours so far: 0 of 3.")).to_be_visible()
    things = [choice(page, "left"), choice(page, "right"), page.get_by_text("Yours so far")]
    for thing in (*things, page.get_by_role("button", name="Can't tell")):
        box = thing.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not page.locator("kbd:visible").count()
    upper, lower = (page.locator(f"[class*='st-key-card-{s}']") for s in ("left", "right"))
    assert upper.bounding_box()["y"] < lower.bounding_box()["y"]
    for count, thing in enumerate((upper, choice(page, "right"), None), 1):
        think(page)
        (thing or page.get_by_role("button", name="Can't tell")).tap()
        if count < 3:
            expect(page.get_by_text(f"Yours so far: {count} of 3.")).to_be_visible()
    expect(page.get_by_text("C0DE")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="My answers (CSV)").tap()
    everything = b"".join(s if isinstance(s, bytes) else s.encode() for s in sent)
    everything += page.content().encode() + download.value.path().read_bytes()
    assert b"Person" in everything
    assert b"Qz" not in everything
    said = answers_of(store, study)
    assert list(said.outcome) == ["left", "right", "skip"]
    assert (said.narrow == 1).all()
    assert set(said.participant) == {"7b"}
    [cookie] = [one for one in context.cookies() if one["name"] == "dopl_browser"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    context.clear_cookies(name="dopl_browser")  # now it is another browser
    page.goto(link)
    expect(page.get_by_text("in another browser")).to_be_visible()
    context.close()
