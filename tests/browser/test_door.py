"""What a server answers to requests that no honest browser sends."""

import asyncio
import http.client
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from acts import answers_of
from app_server import Server
from raw_visit import Visit
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from websockets.exceptions import InvalidStatus

from dopl_core.studies import access, service
from pages import _door

STRANGER, OWNER = "You need a link", "Try it now"
FORWARDED = (
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded",
    "Forwarded",
    "Via",
    "X-Real-IP",
    "CF-Connecting-IP",
    "CF-Ray",
    "True-Client-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "Fastly-Client-IP",
    "Fly-Client-IP",
    "X-Original-Forwarded-For",
    "X-Envoy-External-Address",
    "X-Amzn-Trace-Id",
    "X-Azure-ClientIP",
    "X-ARR-LOG-ID",
    "X-AppEngine-User-IP",
    "Proxy-Client-IP",
    "X-Remote-IP",
    "Tailscale-User-Login",
    "X-Request-Id",
)


def visited(server, headers=None, **options):
    visit = Visit(server.port, headers, **options)
    try:
        return visit.run()
    finally:
        visit.close()


def ask(server, method, path, headers=None, body=None):
    """A raw HTTP request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(method, path, body, {"Host": f"localhost:{server.port}"} | (headers or {}))
    response = connection.getresponse()
    response.content = response.read()
    connection.close()
    return response


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that asks for a key although it is bound to this computer: behind a proxy."""
    started = Server(tmp_path_factory.mktemp("guarded"))
    started.environment["DOPL_ASK_FOR_KEY"] = "1"
    started.store = service.open_store(started.environment["DOPL_DATABASE_URL"])
    started.study = service.create_study(
        started.store, service.from_environment("cpap", practice=False)
    )
    yield started.start()
    started.kill()


def signed_in(server):
    key = access.make_owner_key(server.store)
    response = ask(server, "GET", f"/?key={key}")
    return re.search(r"dopl_owner=([\w-]+)", response.headers["Set-Cookie"])[0]


# --- who is at home


def test_a_browser_on_this_computer_is_the_owners(server):
    origin = {"Origin": f"http://localhost:{server.port}"}
    assert OWNER in visited(server)
    assert OWNER in visited(server, origin)
    host = f"127.0.0.1:{server.port}"
    assert OWNER in visited(server, {"Origin": f"http://{host}"}, host=host)


@pytest.mark.parametrize("name", FORWARDED)
def test_whoever_comes_through_a_proxy_is_a_stranger(server, name):
    said = visited(server, {name: "203.0.113.9", "Origin": f"http://localhost:{server.port}"})
    assert STRANGER in said
    assert OWNER not in said


@pytest.mark.parametrize("origin", ["http://localhost:1", "http://127.0.0.1:80"])
def test_a_page_of_another_program_on_this_computer_is_a_stranger(server, origin):
    assert STRANGER in visited(server, {"Origin": origin})


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil"])
def test_a_page_from_elsewhere_is_not_even_a_stranger(server, origin):
    with pytest.raises(InvalidStatus):
        visited(server, {"Origin": origin})


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1"]
)
def test_a_name_that_is_not_this_computers_gets_nothing(server, host):
    with pytest.raises(InvalidStatus):
        visited(server, {"Origin": f"http://{host}:{server.port}"}, host=f"{host}:{server.port}")
    for path in ("/", "/_stcore/health", "/studies"):
        response = ask(server, "GET", path, {"Host": f"{host}:{server.port}"})
        assert response.status == 403
        assert b"dopl app --key" in response.content


@pytest.mark.parametrize("path", ["/", "/studies", "/_stcore/health", "/nothing/at/all"])
def test_nobody_shows_our_pages_inside_theirs(server, path):
    response = ask(server, "GET", path)
    assert response.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert response.headers["X-Frame-Options"] == "DENY"


def test_a_server_that_asks_for_the_key_asks_everybody(guarded):
    assert STRANGER in visited(guarded)
    proxied = {"X-Forwarded-For": "203.0.113.9"}
    cookie = {"Cookie": signed_in(guarded)}
    assert OWNER in visited(guarded, cookie | proxied, host="clinic.example")
    assert STRANGER in visited(guarded, proxied, host="clinic.example")


# --- the key


def test_the_key_becomes_a_short_session_that_no_script_can_read(guarded):
    key = access.make_owner_key(guarded.store)
    response = ask(guarded, "GET", f"/studies?key={key}&study=x")
    assert response.status == 303
    assert response.headers["Location"] == "/studies?study=x"
    cookie = response.headers["Set-Cookie"]
    assert key not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert int(re.search(r"Max-Age=(\d+)", cookie)[1]) <= 7 * 24 * 3600
    assert "Secure" not in cookie
    proxied = {"X-Forwarded-Proto": "https"}
    assert "Secure" in ask(guarded, "GET", f"/?key={key}", proxied).headers["Set-Cookie"]
    token = re.search(r"dopl_owner=[\w-]+", cookie)[0]
    assert OWNER in visited(guarded, {"Cookie": f"other=1; {token}"})
    assert STRANGER in visited(guarded, {"Cookie": f"dopl_owner={key}"})


def test_the_way_back_from_the_key_leads_to_no_other_server(guarded):
    response = ask(guarded, "GET", "//evil.example/x?key=wrong")
    assert response.headers["Location"] == "/evil.example/x"


def test_guessing_keys_is_slow(guarded):
    began = time.monotonic()
    assert ask(guarded, "GET", "/?key=wrong").headers.get("Set-Cookie") is None
    assert time.monotonic() - began > 0.9
    with ThreadPoolExecutor(30) as many:
        guesses = [many.submit(ask, guarded, "GET", f"/?key=wrong{n}") for n in range(30)]
    refused = [guess.result().status for guess in guesses].count(429)
    assert refused >= 20
    assert ask(guarded, "GET", "/").status == 200


def test_a_forged_address_is_no_way_around(guarded):
    def guess(n):
        return ask(guarded, "GET", f"/?key=no{n}", {"X-Forwarded-For": f"203.0.113.{n}"}).status

    with ThreadPoolExecutor(30) as many:
        assert list(many.map(guess, range(30))).count(429) >= 20


def test_behind_a_proxy_that_the_owner_has_named_everybody_is_counted_alone(monkeypatch):
    found = []

    async def note(scope, receive, send):
        found.append(_door._whose_tries(scope))

    def comes(peer, told):
        scope = {"type": "http", "client": (peer, 1), "headers": [(b"x-forwarded-for", told)]}
        asyncio.run(ProxyHeadersMiddleware(note, "127.0.0.1")(scope, None, None))

    for declared in ("", "127.0.0.1"):
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", declared)
        comes("127.0.0.1", b"203.0.113.7")
        comes("127.0.0.1", b"192.0.2.9, 203.0.113.8")  # the first was the visitor's own word
        comes("198.51.100.1", b"203.0.113.9")  # not through the proxy
    assert found == ["forwarded"] * 3 + ["203.0.113.7", "203.0.113.8", "198.51.100.1"]


def test_a_new_key_ends_the_visits_that_came_by_the_old_one(guarded):
    visit = Visit(guarded.port, {"Cookie": signed_in(guarded)})
    assert OWNER in visit.run()
    assert "cpap" in visit.run(page="studies").lower()
    access.make_owner_key(guarded.store)
    assert STRANGER in visit.run(page="studies")
    visit.close()


def test_a_new_key_ends_the_clicks_and_looks_of_an_open_page_too(guarded):
    folder = guarded.folder / "runs" / "20260101-000000-aaaa"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{")
    visit = Visit(guarded.port, {"Cookie": signed_in(guarded)})
    visit.run(page="simulate")
    button, fragment = visit.button(f"del-{folder.name}")
    access.make_owner_key(guarded.store)
    assert STRANGER in visit.run("", "simulate", fragment)
    assert STRANGER in visit.run("", "simulate", fragment, button)
    assert folder.exists()
    visit.close()


# --- revoked while the page is open


@pytest.mark.parametrize("key", ["left-", "undo-", "to-paused"])
@pytest.mark.parametrize("query", ["", "study={study}", "invite={token}", "invite=x"])
def test_a_revoked_annotators_open_page_does_nothing_any_more(server, store, study, key, query):
    token = access.invite(store, study, "Ann")
    for _ in range(2):
        ask = service.next_duel(store, study, "Ann")
        service.answer(store, ask.impression, "left", too_fast_ms=0)
    visit = Visit(server.port, {"X-Forwarded-For": "203.0.113.9"})
    visit.run(f"invite={token}", "annotate")
    button, fragment = visit.button(key)
    assert bool(fragment) == (key != "to-paused")  # what is seldom done is no part of the board
    access.revoke(store, study, "Ann")
    time.sleep(0.35)  # as long as an honest click takes at least
    said = visit.run(query.format(study=study, token=token), "annotate", fragment, button)
    assert "progress" not in said
    assert list(answers_of(store, study).outcome) == ["left", "left"]
    visit.close()


# --- uploads


def upload(server, session, headers, size=1000):
    """Send a file as Streamlit's own pages do."""
    line = "----------dopl"
    body = (
        f'--{line}\r\nContent-Disposition: form-data; name="f"; filename="f.csv"\r\n'
        f"Content-Type: text/csv\r\n\r\n{'x' * size}\r\n--{line}--\r\n"
    )
    given = {"Content-Type": f"multipart/form-data; boundary={line}"}
    path = f"/_stcore/upload_file/{session}/file-{time.monotonic_ns()}"
    return ask(server, "PUT", path, given | headers, body).status


def xsrf(server, cookie=""):
    """What a page has to show when it uploads, and anybody gets."""
    found = ask(server, "GET", "/_stcore/health", {"Cookie": cookie} if cookie else {})
    token = re.search(r"_streamlit_xsrf=([^;]+)", found.headers["Set-Cookie"])[1]
    both = f"_streamlit_xsrf={token}; {cookie}" if cookie else f"_streamlit_xsrf={token}"
    return {"Cookie": both, "X-Xsrftoken": token}


def test_only_the_owner_uploads(guarded):
    stranger = Visit(guarded.port)
    stranger.run()
    assert upload(guarded, stranger.session, xsrf(guarded)) == 403
    token = access.invite(guarded.store, guarded.study, "Ann")
    stranger.run(f"invite={token}", "annotate")
    assert upload(guarded, stranger.session, xsrf(guarded)) == 403
    cookie = signed_in(guarded)
    owner = Visit(guarded.port, {"Cookie": cookie})
    owner.run()
    assert upload(guarded, owner.session, xsrf(guarded, cookie)) == 204
    access.make_owner_key(guarded.store)
    assert upload(guarded, owner.session, xsrf(guarded, cookie)) == 403
    for visit in (stranger, owner):
        visit.close()


def test_on_this_computer_who_comes_through_a_proxy_uploads_nothing(server):
    visit = Visit(server.port)
    visit.run()
    assert upload(server, visit.session, xsrf(server)) == 204
    proxied = {"X-Real-IP": "203.0.113.9"}
    assert upload(server, visit.session, xsrf(server) | proxied) == 403
    visit.close()


def test_an_owner_uploads_within_a_cap(server):
    visit = Visit(server.port)
    visit.run()
    sent = [upload(server, visit.session, xsrf(server), 19 << 20) for _ in range(5)]
    assert sent == [204, 204, 204, 413, 413]
    visit.close()
