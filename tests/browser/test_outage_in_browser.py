"""The database goes down while a page is open, and comes back."""

import time

import pytest
from acts import answers_of, choice, come_in, expect_answers, shown, think
from app_server import Server
from databases import PostgreSQL, SQLite
from locking import locked
from playwright.sync_api import expect
from raw_visit import Visit

from dopl_core import studies
from dopl_core.studies import access
from dopl_core.studies.store import time_limits

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=[SQLite, PostgreSQL])
def server_outside(request, tmp_path_factory):
    """A server that asks for a key, whose database can be stopped."""
    folder = tmp_path_factory.mktemp("outside")
    database = request.param(folder)
    server = Server(folder)
    server.environment |= {"DOPL_DATABASE_URL": database.url, "DOPL_ASK_FOR_KEY": "1"}
    server.database = database
    yield server.start()
    server.kill()
    database.end()


@pytest.fixture
def outside(server_outside):
    """The same server with a new study, a link to it and a new key."""
    server = server_outside
    store = studies.open_store(server.database.url)
    server.study = studies.create_study(store, studies.from_environment("cpap", practice=False))
    server.link = f"/annotate?invite={access.invite(store, server.study, 'Ann')}"
    server.key = access.make_owner_key(store)
    store.close()
    return server


def answers(server):
    store = studies.open_store(server.database.url)
    found = list(answers_of(store, server.study).outcome)
    store.close()
    return found


def test_an_answer_that_was_not_saved_can_be_given_again(page, outside):
    come_in(page, outside.url + outside.link)
    expect_answers(page, 0)
    think(page)
    choice(page, "left").click()
    expect_answers(page, 1)
    expect(page.get_by_text("Saved.")).to_be_visible()
    before = shown(page)
    outside.database.stop()
    think(page)
    choice(page, "right").click()
    expect(page.get_by_text("Not saved.")).to_be_visible()
    expect(page.get_by_text("Saved.", exact=True)).to_have_count(0)
    expect(page.get_by_text("This page continues by itself")).to_be_visible()
    said = page.locator("body").inner_text()
    assert not [secret for secret in outside.database.secrets if secret in said]
    assert shown(page) == before
    outside.database.start()
    expect(page.get_by_text("This page continues by itself")).to_have_count(0)
    assert shown(page) == before
    assert answers(outside) == ["left"]
    choice(page, "right").click()
    expect_answers(page, 2)
    expect(page.get_by_text("Saved.", exact=True)).to_be_visible()
    assert answers(outside) == ["left", "right"]


def test_a_click_on_a_locked_study_is_answered_in_words_within_five_seconds(outside):
    """With the limits that servers have. A busy machine may take longer, but not three times."""
    visit, query = Visit(outside.port), outside.link.partition("?")[2]
    visit.run(query, "annotate")
    visit.run(query, "annotate", click=visit.button("begin")[0])
    seconds = []
    with locked(outside.database.url, outside.study):
        while len(seconds) < 3 and min(seconds, default=9.0) >= 5:
            time.sleep(time_limits.CLICK_SECONDS)  # else it counts as a part of the last click
            button, fragment = visit.button("left-")
            begun = time.monotonic()
            assert "Not saved" in visit.run(query, fragment=fragment, click=button)
            seconds.append(time.monotonic() - begun)
    assert min(seconds) < 5, seconds
    assert answers(outside) == []
    visit.run(query, fragment=fragment, click=button)
    visit.close()
    assert answers(outside) == ["left"]


def test_a_page_opened_during_an_outage_continues_afterwards(page, outside):
    page.goto(outside.url)
    expect(page.get_by_text("You need a link")).to_be_visible()
    outside.database.stop()
    page.goto(outside.url + outside.link)
    expect(page.get_by_text("The database is down at the moment.")).to_be_visible()
    said = page.locator("body").inner_text()
    assert not [secret for secret in outside.database.secrets if secret in said]
    outside.database.start()
    page.get_by_role("button", name="Begin").click()
    expect_answers(page, 0)


def test_the_owners_pages_and_the_key_work_again_after_an_outage(page, outside):
    page.goto(f"{outside.url}/?key={outside.key}")
    expect(page.get_by_role("button", name="Try it now")).to_be_visible()
    outside.database.stop()
    page.goto(f"{outside.url}/studies")
    expect(page.get_by_text("The database is down at the moment.")).to_be_visible()
    page.goto(f"{outside.url}/?key={outside.key}")
    expect(page.get_by_text("try the link again soon")).to_be_visible()
    outside.database.start()
    page.goto(f"{outside.url}/studies")
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
