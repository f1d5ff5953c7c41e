"""Signing in with a browser at a real provider: a list is read, and what ends a session ends it."""

import json
import re

import pytest
from app_server import Server
from forged import OWNER, cut_network, signed_in, visited
from playwright.sync_api import expect
from sign_in_provider import auth_section, running_provider
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from dopl_core import studies
from dopl_core.studies import access, members

ANN = "ann@clinic.example"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """A server whose people sign in; it can reach this computer only."""
    with running_provider() as provider:
        folder = tmp_path_factory.mktemp("clinic")
        started = Server(folder, "--secrets.files", str(folder / "secrets.toml"))
        auth = auth_section(started.url, provider.url)
        lines = [f"auth.{name} = {json.dumps(value)}" for name, value in auth.items()]
        (folder / "secrets.toml").write_text("\n".join(lines).replace('": ', '" = '))
        cut_network(started)
        started.secret, started.provider = auth["cookie_secret"], provider
        started.store = studies.open_store(started.environment["DOPL_DATABASE_URL"])
        access.make_owner_key(started.store)
        arms = [studies.Arm(f"p{n}", f"Patient {n}", "", "Poor") for n in range(6)]
        config = studies.from_roster(arms, ["Poor", "Good"], title="Sleep", budget=2, sitting=0)
        started.study = studies.create_study(started.store, config)
        studies.advance(started.store, started.study)
        provider.person("ann", email="Ann@Clinic.Example", email_verified=True)
        yield started.start()
        started.kill()
        started.store.close()


@pytest.fixture
def reader(clinic):
    """Ann, who may read the list."""
    members.add_member(clinic.store, clinic.study, ANN, "reader")
    yield ANN
    members.remove_member(clinic.store, clinic.study, ANN)


def sign_in(page, clinic):
    page.goto(clinic.url)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_placeholder("sub").fill("ann")
    page.get_by_role("button", name="Authorize").click()


def open_list(page, clinic):
    page.goto(f"{clinic.url}/list?study={clinic.study}")
    expect(page.locator(".dopl-list")).to_be_visible()


def expect_signed_out(page):
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(page.locator(".dopl-list")).to_have_count(0)


@pytest.mark.long
def test_a_reader_signs_in_reads_the_list_and_signing_out_ends_every_tab(page, clinic, reader):
    sign_in(page, clinic)
    page.get_by_role("button", name="Sleep").click()
    expect(page.locator(".dopl-list")).to_contain_text("Patient")
    other = page.context.new_page()
    open_list(other, clinic)
    page.get_by_role("link", name="Account").click()
    expect(page.get_by_text(re.compile("signed in as ann.?@clinic.example"))).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="End session").click()  # the provider's own page
    page.wait_for_url(f"{clinic.url}/")
    expect_signed_out(page)
    other.get_by_role("link", name="Account").click()
    expect_signed_out(other)
    assert not clinic.left.exists(), clinic.left.read_text()  # requests to other computers
    assert "Traceback" not in clinic.log()


@pytest.mark.long
@pytest.mark.parametrize("how", ["member removed", "new key"])
def test_somebody_whose_access_ends_is_turned_away_at_the_next_click(page, clinic, reader, how):
    sign_in(page, clinic)
    page.get_by_role("button", name="Sleep").click()
    expect(page.locator(".dopl-list")).to_be_visible()
    if how == "new key":
        access.make_owner_key(clinic.store)
    else:
        members.remove_member(clinic.store, clinic.study, ANN)
    page.get_by_role("link", name="Account").click()
    expect_signed_out(page)


@pytest.mark.long
def test_streamlits_own_cookie_opens_nothing_even_with_a_valid_signature(page, clinic, reader):
    says = {"email": ANN, "email_verified": True, "sub": "ann", "provider": "default"}
    says |= {"origin": clinic.url, "is_logged_in": True}
    value = create_signed_value(clinic.secret, "_streamlit_user", json.dumps(says)).decode()
    page.context.add_cookies([{"name": "_streamlit_user", "value": value, "url": clinic.url}])
    page.goto(f"{clinic.url}/list?study={clinic.study}")
    expect_signed_out(page)


@pytest.mark.long
def test_the_owners_key_also_opens_an_app_where_people_sign_in(clinic):
    assert OWNER in visited(clinic, {"Cookie": signed_in(clinic)})
