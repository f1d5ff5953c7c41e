"""Sign-in: what the provider may answer, on both databases, without a browser.

Streamlit's own addresses and ours stand in front of each other as in the app; the provider is real.
"""

import json
from http.cookies import SimpleCookie

import httpx
import loops
import pytest
import sqlalchemy as sa
from sign_in_provider import CLIENT, Provider, auth_section, running_provider
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from streamlit import config
from streamlit.runtime.secrets import secrets_singleton
from streamlit.user_info import generate_login_redirect_url
from streamlit.web.server.starlette.starlette_app import create_streamlit_middleware
from streamlit.web.server.starlette.starlette_auth_routes import create_auth_routes

from dopl_core import studies
from dopl_core.studies import access, members
from dopl_core.studies.model.actors import ALL_STUDIES
from dopl_core.studies.store import tables
from pages.shared import middleware, sign_in, visitors
from pages.shared.sign_in_settings import sign_in_settings

HOST = "clinic.example"
APP = f"https://{HOST}"
ANN = {"email": "Ann@Clinic.example", "email_verified": True, "name": "Ann", "groups": ["sleep"]}


@pytest.fixture(scope="module")
def provider():
    with running_provider() as running:
        running.person("ann", **ANN)
        yield running


@pytest.fixture(autouse=True)
def configure(monkeypatch, provider):
    """The app's settings; a test may change some."""
    # Every client makes one, for longer than all of its requests take; here nothing is encrypted.
    monkeypatch.setattr("httpx._transports.default.create_ssl_context", lambda **_: None)

    def set_secrets(**changed):
        auth = auth_section(APP, provider.url, **changed)
        monkeypatch.setattr(secrets_singleton, "_secrets", {"auth": auth})
        sign_in_settings.cache_clear()

    set_secrets()
    address = config.get_option("server.address")
    config.set_option("server.address", "0.0.0.0")  # noqa: S104
    yield set_secrets
    config.set_option("server.address", address)
    sign_in_settings.cache_clear()


class Visitor:
    """It keeps cookies, and sends them as a browser does."""

    def __init__(self, at: str = APP) -> None:
        routes, inner = create_auth_routes("/"), create_streamlit_middleware()
        app = Starlette(routes=routes, middleware=[Middleware(middleware.AccessControl), *inner])
        self.app, self.at, self.cookies = app, at, httpx.Cookies()

    def get(self, address: str, **headers: str) -> httpx.Response:
        async def ask() -> httpx.Response:
            through = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=through, base_url=self.at, cookies=self.cookies
            ) as client:
                response = await client.get(address, headers=headers)
                self.cookies = client.cookies
                return response

        return loops.run(ask())

    def answer(self, number: str = "ann") -> str:
        """Ask to sign in, and sign in at the provider: where it sends the browser to."""
        login = self.get(generate_login_redirect_url("default"))
        question = httpx.URL(login.headers["Location"])
        return Provider(question.port).sign_in(question, number)

    def session(self) -> str:
        found = [cookie for cookie in self.cookies.jar if cookie.name.startswith(visitors.COOKIE)]
        return found[0].value or "" if found else ""


@pytest.fixture
def on_both(store, monkeypatch):
    """A browser in front of each kind of database."""
    return _visitor(store, monkeypatch)


@pytest.fixture
def visitor(sqlite_store, monkeypatch):
    """Where the kind of database makes no difference."""
    return _visitor(sqlite_store, monkeypatch)


def _visitor(store, monkeypatch):
    """With Ann as a reader of all studies."""
    for module in (sign_in, middleware, visitors):
        monkeypatch.setattr(module, "store", lambda: store)
    made = Visitor()
    made.store = store
    members.add_member(store, ALL_STUDIES, "ann@clinic.example", "reader")
    return made


def sessions(store):
    with store.read() as connection:
        return connection.execute(sa.select(tables.sessions)).all()


# --- who is let in


def test_a_member_who_signs_in_gets_a_session_that_only_the_database_decides(on_both):
    store = on_both.store
    reply = on_both.get(on_both.answer())
    assert (reply.status_code, reply.headers["Location"]) == (303, "/")
    actor = access.session_actor(store, on_both.session(), HOST)
    assert actor.name == "ann@clinic.example"
    assert actor.roles == {ALL_STUDIES: {"reader"}}
    assert access.session_actor(store, on_both.session(), "other.example") is None
    members.remove_member(store, ALL_STUDIES, "ann@clinic.example")
    assert access.session_actor(store, on_both.session(), HOST) is None
    members.add_member(store, ALL_STUDIES, "ann@clinic.example", "reader")
    access.make_owner_key(store)
    assert access.session_actor(store, on_both.session(), HOST) is None


def test_the_database_keeps_the_claims_that_members_need_and_no_token(on_both):
    on_both.get(on_both.answer())
    row = sessions(on_both.store)[0]
    assert json.loads(row.claims) == {"email": ["ann@clinic.example"]}
    assert on_both.session() not in str(row)


def test_cookies_are_for_this_host_by_https_and_not_for_scripts(visitor):
    replies = [visitor.get(generate_login_redirect_url("default"))]
    replies.append(visitor.get(visitor.answer()))
    found = [one for reply in replies for one in reply.headers.get_list("set-cookie")]
    assert {one.partition("=")[0] for one in found} == {
        visitors.COOKIE,
        "_streamlit_session",
        "_streamlit_user",
        "_streamlit_user_tokens",
    }
    for one in found:
        (cookie,) = SimpleCookie(one).values()
        assert cookie["secure"], one
        assert cookie["httponly"], one
        assert not cookie["domain"], one
        is_state = cookie.key == "_streamlit_session"
        assert cookie["samesite"] == ("lax" if is_state else "strict"), one
        assert cookie["path"] in (["/"] if is_state else ["/_stcore", "/auth"]), one


def test_the_browser_keeps_no_claims_and_no_token_that_opens_anything(visitor):
    reply = visitor.get(visitor.answer())
    given = Headers(raw=reply.headers.raw)
    assert sign_in._signed(given, "_streamlit_user").keys() == {"provider", "origin"}
    assert sign_in._signed(given, "_streamlit_user_tokens").keys() == {"id_token"}


def test_each_sign_in_begins_a_session_of_its_own(visitor):
    visitor.get(visitor.answer())
    first = visitor.session()
    visitor.cookies.set(visitors.COOKIE, "chosen-by-somebody-else", HOST, "/_stcore")
    visitor.get(visitor.answer())
    assert visitor.session() not in (first, "chosen-by-somebody-else")


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "bob@clinic.example", "email_verified": True},
        {"email": "ann@clinic.example", "email_verified": False},
        {"email": "ann@clinic.example"},
        {"name": "ann@clinic.example", "preferred_username": "ann@clinic.example"},
    ],
    ids=["somebody else", "not verified", "perhaps verified", "by another claim"],
)
def test_people_without_a_role_are_told_so(visitor, provider, claims):
    provider.person("bob", **claims)
    reply = visitor.get(visitor.answer("bob"))
    assert reply.status_code == 403
    assert "nobody has given you access. Ask the owner" in reply.text
    assert 'href="/auth/logout"' in reply.text
    assert not visitor.session()
    assert sessions(visitor.store) == []


def test_a_name_is_shown_as_it_is(visitor, provider):
    provider.person("mallory", preferred_username="<script>alert(1)</script>")
    reply = visitor.get(visitor.answer("mallory"))
    assert "&lt;script&gt;alert(1)" in reply.text
    assert "<script" not in reply.text


def test_nobody_can_take_the_name_of_somebody_else(visitor, provider):
    members.add_member(visitor.store, ALL_STUDIES, "sleep", "annotator", claim="groups")
    provider.person("mallory", **ANN | {"email_verified": False, "preferred_username": "ann"})
    visitor.get(visitor.answer("mallory"))
    actor = access.session_actor(visitor.store, visitor.session(), HOST)
    assert actor.name == "ann (mallory)"
    assert actor.roles == {ALL_STUDIES: {"annotator"}}


def test_text_that_a_database_cannot_keep_does_no_harm(on_both, provider):
    members.add_member(on_both.store, ALL_STUDIES, "sleep", "annotator", claim="groups")
    odd = {
        "preferred_username": "x\0\n" * 300,
        "groups": ["sleep", "a\0b"],
        "email": "\0o@a.example",
    }
    provider.person("odd", **odd, email_verified=True)
    on_both.get(on_both.answer("odd"))
    actor = access.session_actor(on_both.store, on_both.session(), HOST)
    assert actor.name == "o@a.example"


# --- answers that are not valid


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-app"},
        {"aud": "another-app", "azp": CLIENT},
        {"aud": ["another-app", "one-more"], "azp": CLIENT},
        {"exp": 1_700_000_000},
        {"iss": "https://evil.example"},
        {"nonce": "of-another-answer"},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(visitor, provider, claims):
    provider.person("forged", **ANN, **claims)
    check_refused(visitor, visitor.answer("forged"))


def check_refused(visitor, answer):
    reply = visitor.get(answer)
    assert reply.status_code == 403
    assert "You are not signed in" in reply.text
    assert not visitor.session()


def test_an_answer_counts_once(visitor):
    answer = visitor.answer()
    before = httpx.Cookies(visitor.cookies)
    visitor.get(answer)
    again, thief = Visitor(), Visitor()
    again.cookies = before  # with the state of then
    for other in (again, thief):
        check_refused(other, answer)
    assert len(sessions(visitor.store)) == 1


def test_an_answer_to_somebody_else_signs_nobody_in(visitor):
    """An attacker sends a link with their own answer, so that a person works in their account."""
    attacker = Visitor()
    check_refused(visitor, attacker.answer())
    own = visitor.answer()
    state = httpx.URL(own).params["state"]
    forged = httpx.URL(attacker.answer()).copy_merge_params({"state": state})
    check_refused(visitor, str(forged))


@pytest.mark.parametrize("query", ["error=access_denied", "state=x", "code=x", "state=x&code=x"])
def test_an_answer_without_its_parts_is_refused(visitor, query):
    check_refused(visitor, f"/oauth2callback?{query}")


def test_nobody_is_sent_to_another_site(visitor):
    answer = visitor.answer()
    for reply in (
        visitor.get(answer + "&next=https://evil.example&redirect_uri=//evil.example"),
        visitor.get("/oauth2callback"),
        visitor.get("/auth/login?provider=//evil.example"),
        visitor.get("/auth/logout?next=//evil.example", **{"X-Forwarded-Host": "evil.example"}),
    ):
        assert "evil.example" not in reply.headers["Location"]


# --- the provider or the database is down


def test_a_provider_that_is_down_is_named_and_links_still_work(visitor, configure):
    configure(server_metadata_url="http://localhost:9/.well-known/openid-configuration")
    reply = visitor.get(generate_login_redirect_url("default"))
    assert reply.status_code == 503
    assert "sign-in does not answer" in reply.text
    key = access.make_owner_key(visitor.store)
    assert visitor.get(f"/?key={key}").status_code == 303
    assert access.has_session(visitor.store, visitor.session(), HOST)


def test_a_provider_that_goes_down_in_between_signs_nobody_in(visitor, configure, provider):
    answer = visitor.answer()
    secret = secrets_singleton["auth"]["cookie_secret"]
    configure(server_metadata_url="http://localhost:9/none", cookie_secret=secret)
    check_refused(visitor, answer)


def test_a_database_that_is_down_is_named(visitor, monkeypatch):
    def down(*_):
        raise studies.StoreError("host=db.internal is down")

    monkeypatch.setattr(access, "begin_member_session", down)
    reply = visitor.get(visitor.answer())
    assert reply.status_code == 503
    assert "The database is down" in reply.text
    assert "internal" not in reply.text


# --- signing out


def test_signing_out_also_signs_out_at_the_provider(visitor, provider):
    visitor.get(visitor.answer())
    reply = visitor.get("/auth/logout")
    assert reply.headers["Location"].startswith(f"{provider.url}/oauth2/end_session?")
    assert "id_token_hint=" in reply.headers["Location"]
    assert not [one for one in visitor.cookies.jar if "_streamlit_user" in one.name]


@pytest.mark.parametrize("address", ["/auth/logout", "/auth/login"])
def test_another_site_can_neither_sign_people_out_nor_in(visitor, address):
    visitor.get(visitor.answer())
    for site in ("cross-site", "same-site"):
        reply = visitor.get(address, **{"Sec-Fetch-Site": site})
        assert reply.status_code == 403
        assert not reply.headers.get_list("set-cookie")
    visitor.get("/auth/logout")  # the address alone: the page ends the session
    assert access.session_actor(visitor.store, visitor.session(), HOST)


# --- settings


def test_without_settings_the_addresses_are_closed(visitor, monkeypatch):
    monkeypatch.setattr(secrets_singleton, "_secrets", {})
    sign_in_settings.cache_clear()
    for address in sign_in.ADDRESSES:
        assert visitor.get(address).status_code == 404
