"""Access, safe display of rosters, and accessibility, in a real browser."""

import re
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from acts import choice, come_in, expect_answers, open_duels, think
from app_server import Server
from axe import serious_findings
from forged import requests_away
from playwright.sync_api import Error, expect

from dopl_core import studies
from dopl_core.studies import Arm, access

PAGES = ("", "annotate", "studies", "insights", "simulate", "help")
NASTY = "![x](https://evil.example/a.png) <img src=x onerror=alert(1)> **b** :red[r] $x$ -> [l](u)"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that is open to the network, and its owner's key."""
    started = Server(tmp_path_factory.mktemp("guarded"), "--server.address", "0.0.0.0")  # noqa: S104
    store = studies.open_store(started.environment["DOPL_DATABASE_URL"])
    started.key = access.make_owner_key(store)
    started.study = studies.create_study(store, studies.from_environment("cpap", practice=False))
    started.invite = access.invite(store, started.study, "Ann")
    yield started.start()
    started.kill()


def test_strangers_see_nothing_on_a_public_server(page, guarded):
    for name in (*PAGES, "audit"):
        page.goto(f"{guarded.url}/{name}?study={guarded.study}")
        expect(page.get_by_role("heading", name="You need a link")).to_be_visible()
        expect(page.get_by_role("navigation")).to_have_count(0)
        assert "CPAP" not in page.locator("body").inner_text()
    page.goto(f"{guarded.url}/?key=wrong")
    expect(page.get_by_role("heading", name="You need a link")).to_be_visible()


def test_the_owners_key_opens_every_page_and_leaves_the_address(page, guarded):
    page.goto(f"{guarded.url}/?key={guarded.key}")
    expect(page.get_by_role("button", name="Try it now")).to_be_visible()
    expect(page).not_to_have_url(re.compile("key="))
    page.goto(f"{guarded.url}/studies")
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()


def test_scripts_and_the_browser_history_cannot_read_the_owners_key(page, guarded):
    page.goto("about:blank")
    page.goto(f"{guarded.url}/?key={guarded.key}")
    expect(page.get_by_role("button", name="Try it now")).to_be_visible()
    [cookie] = [c for c in page.context.cookies() if c["name"].startswith("dopl_owner_")]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert cookie["value"] != guarded.key
    assert 0 < cookie["expires"] - time.time() <= 7 * 24 * 3600 + 60
    assert "dopl_owner" not in page.evaluate("document.cookie")
    assert guarded.key not in page.evaluate("JSON.stringify(history.state) + document.referrer")
    page.go_back()
    assert guarded.key not in page.url


def test_another_host_name_for_this_computer_opens_nothing(browser_type, launched, server):
    """DNS rebinding: a site's own name, once its address is 127.0.0.1."""
    mapped = [*launched["args"], "--host-resolver-rules=MAP evil.example 127.0.0.1"]
    browser = browser_type.launch(**launched | {"args": mapped})
    page = browser.new_page()
    page.goto(f"http://evil.example:{server.port}/studies")
    expect(page.get_by_text("open only to the computer it runs on")).to_be_visible()
    expect(page.get_by_role("heading", name="Studies")).to_have_count(0)
    browser.close()


@pytest.fixture
def launched(browser_type_launch_args):
    return browser_type_launch_args


@pytest.fixture
def framed(server, tmp_path):
    """Another site with our app inside its page."""
    (tmp_path / "index.html").write_text(f'<iframe src="{server.url}/studies"></iframe>')
    serve = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    site = ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{site.server_port}/"
    site.shutdown()
    site.server_close()


def test_other_sites_cannot_show_the_app_in_a_frame(page, framed):
    def is_refused(frame):
        return frame.parent_frame is not None and frame.url.startswith("chrome-error:")

    with page.expect_event("framenavigated", is_refused):
        page.goto(framed)


def test_an_invitation_opens_comparisons_and_nothing_else(page, guarded):
    come_in(page, f"{guarded.url}/annotate?invite={guarded.invite}")
    expect_answers(page, 0)
    think(page)
    choice(page, "left").click()
    expect_answers(page, 1)
    for name in ("studies", "insights", "simulate", "help"):
        page.goto(f"{guarded.url}/{name}?invite={guarded.invite}")
        expect(page.get_by_role("heading", name="You need a link")).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_a_fresh_server_guards_every_page_from_the_first_request(page, tmp_path, name):
    server = Server(tmp_path, "--server.address", "0.0.0.0").start()  # noqa: S104
    try:
        page.goto(f"{server.url}/{name}")
        expect(page.get_by_role("heading", name="You need a link")).to_be_visible()
        expect(page.get_by_role("navigation")).to_have_count(0)
    finally:
        server.kill()


def test_the_first_request_to_a_fresh_server_runs_the_navigation(page, tmp_path):
    server = Server(tmp_path).start()
    try:
        page.goto(f"{server.url}/studies")
        expect(page.get_by_role("heading", name="Studies")).to_be_visible()
        expect(page.get_by_role("link", name="Insights")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)  # it would say "Page not found"
        expect(page).to_have_title("DOPL")
    finally:
        server.kill()


@pytest.mark.long
def test_nothing_in_a_roster_is_rendered_or_fetched(page, server, store):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail("a script of the roster ran"))
    arms = [
        Arm(f"p{n}", NASTY, "all", state, {"note": NASTY, NASTY: "1 2 3", "photo": "/etc/passwd"})
        for n, state in enumerate(("Low", NASTY) * 2)
    ]
    config = studies.from_roster(
        arms, ["Low", NASTY], title=NASTY, question=NASTY, instructions=NASTY, budget=4
    )
    study = studies.create_study(store, config)
    open_duels(page, server, study)
    for place in (page.get_by_role("heading").first, choice(page, "left")):
        assert NASTY in place.inner_text().replace("\u2060", "")  # invisible
    page.get_by_text("How to judge").click()
    think(page)
    choice(page, "left").click()
    page.goto(f"{server.url}/studies?study={study}")
    expect(page.get_by_role("heading", name="evil.example")).to_be_visible()
    for look in ("Is it working?", "How people answer", "What was learned"):
        page.goto(f"{server.url}/insights?study={study}&look={quote(look)}")
        expect(page.get_by_role("combobox")).to_have_value(re.compile("evil.example"))
        expect(page.get_by_role("tabpanel").get_by_role("paragraph").first).to_be_visible()
    for name in ("studies", "annotate"):
        page.goto(f"{server.url}/{name}")
        expect(page.get_by_text(NASTY).first).to_be_visible()
    assert page.locator("img[src*=evil], img[src=x], a[href*=evil]").count() == 0
    assert not [url for url in requests if not url.startswith((server.url, "data:", "blob:"))]


def test_photos_on_the_web_are_not_fetched(page, server, store):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    photo = "https://evil.example/track.png"
    arms = [Arm(f"p{n}", f"P{n}", state=s, columns={"photo": photo}) for n, s in enumerate("LHLH")]
    config = studies.from_roster(arms, ["L", "H"], title="Photos", budget=4, practice=False)
    open_duels(page, server, studies.create_study(store, config))
    expect(page.get_by_text("on the web, not shown").first).to_be_visible()
    assert not [url for url in requests if "evil.example" in url]


@pytest.mark.long
def test_charts_are_drawn_with_any_names_of_states(page, server, store):
    names = ["Low\u2028often", "High\u2029", "label"]
    arms = [Arm(f"p{n}", f"P{n}\u2028", f"g{n % 2}\u2028", names[n % 3]) for n in range(60)]
    config = studies.from_roster(arms, names, title="Names", budget=30, practice=False)
    study = studies.create_study(store, config)
    ask = studies.next_duel(store, study, "Ann\u2028")
    studies.answer(store, ask.impression, "left", response_ms=800, too_fast_ms=0)
    studies.observe(store, study, {f"p{n}": names[(n + 1 + n % 2) % 3] for n in range(60)})
    studies.advance(store, study)
    page.goto(f"{server.url}/insights?study={study}")
    page.get_by_role("tab", name="What was learned").click()
    expect(page.get_by_test_id("stDataFrame").last).to_be_visible()
    charts = page.get_by_test_id("stVegaLiteChart").filter(visible=True)
    expect(charts).to_have_count(4)  # strengths, changes of the plan, moves of two groups
    for chart in charts.all():
        expect(chart.locator("canvas, svg").first).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_text("Low often").first).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_works_without_a_network_and_axe_finds_nothing_serious(
    browser, server, store, scheme
):
    study = studies.create_study(store, studies.from_environment("cpap"))
    over = studies.create_study(store, studies.from_environment("cpap"))
    studies.close_study(store, over)
    context = browser.new_context(color_scheme=scheme)
    away, page = requests_away(context), context.new_page()
    places = {
        "": page.get_by_role("button", name="Try it now"),
        f"annotate?invite={access.invite(store, study, 'Ann')}": page.get_by_text("Begin"),
        f"annotate?study={study}": choice(page, "left"),
        f"annotate?study={over}": page.get_by_text("Thank you!"),
        "annotate": page.get_by_role("button", name="Answer").first,
        "studies": page.get_by_role("tab", name="New study"),
        f"studies?study={study}": page.get_by_test_id("stDataFrame"),
        f"insights?study={study}": page.get_by_role("tab").first,
        "simulate": page.get_by_role("button", name="Start"),
        "help?guide=owner": page.get_by_role("heading", level=1),
    }
    for place, ready in places.items():
        page.goto(f"{server.url}/{place}")
        expect(ready).to_be_visible()
        assert serious_findings(page) == [], place
        for tab in page.get_by_role("tab").all()[1:]:
            tab.click()
            assert serious_findings(page) == [], f"{place}, {tab.inner_text()}"
    page.goto(f"{server.url}/annotate?study={study}")
    think(page)
    choice(page, "left").click()
    for name in ("Next", "Skip practice", "Flag a card"):  # feedback, a comparison, a flag
        button = page.get_by_role("button", name=name)
        expect(button).to_be_visible()
        assert serious_findings(page) == [], f"before {name}"
        button.click()
    background = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert background == {"light": "rgb(251, 250, 246)", "dark": "rgb(17, 24, 30)"}[scheme]
    page.context.close()
    assert away == []
    assert not server.left.exists(), server.left.read_text()


def test_a_request_to_another_computer_would_fail_and_be_noticed(browser):
    context = browser.new_context()
    away = requests_away(context)
    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        context.new_page().goto("https://away.example/font.woff2")
    assert away == ["https://away.example/font.woff2"]
    context.close()
