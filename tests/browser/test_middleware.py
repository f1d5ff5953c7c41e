"""Access control: replies to forged requests, keys, sessions and uploads."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import loops
import pytest
from acts import answers_of
from forged import OWNER, STRANGER, ask, signed_in, visited
from raw_visit import Visit
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from websockets.exceptions import InvalidStatus

from dopl_core import studies
from dopl_core.studies import access
from pages.shared import middleware

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


# --- requests from this computer


def test_a_browser_on_this_computer_belongs_to_the_owner(server):
    origin = {"Origin": f"http://localhost:{server.port}"}
    assert OWNER in visited(server)
    assert OWNER in visited(server, origin)
    host = f"127.0.0.1:{server.port}"
    assert OWNER in visited(server, {"Origin": f"http://{host}"}, host=host)


@pytest.mark.parametrize("name", FORWARDED)
def test_requests_through_a_proxy_are_not_the_owners(server, name):
    said = visited(server, {name: "203.0.113.9", "Origin": f"http://localhost:{server.port}"})
    assert STRANGER in said
    assert OWNER not in said


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://localhost.evil",
        "http://localhost:1",
        "http://127.0.0.1:80",
        "http://localhost",
        "file://localhost",
    ],
)
def test_pages_of_other_sites_and_ports_cannot_connect(server, guarded, origin):
    for one, headers in ((server, {}), (guarded, {"Cookie": signed_in(guarded)})):
        with pytest.raises(InvalidStatus):
            visited(one, headers | {"Origin": origin})
        for method in ("GET", "PUT", "OPTIONS"):
            response = ask(one, method, "/_stcore/upload_file/a/b", headers | {"Origin": origin})
            assert response.status == 403
            assert b"$http_host" in response.content


def test_a_page_at_the_name_that_a_proxy_passes_on_can_connect(guarded):
    cookie = signed_in(guarded, "clinic.example:8443")
    at = {"Origin": "https://clinic.example:8443", "Cookie": cookie}
    assert OWNER in visited(guarded, at, host="clinic.example:8443")
    named = {"Origin": "https://clinic.example"}
    assert STRANGER in visited(guarded, named, host="clinic.example")


def test_a_session_is_valid_only_at_the_host_and_port_where_it_began(guarded):
    name, _, token = signed_in(guarded).partition("=")
    assert name == f"dopl_owner_{guarded.port}"
    assert OWNER in visited(guarded, {"Cookie": f"{name}={token}"})
    for host, cookie in (("localhost:1", "dopl_owner_1"), ("localhost", "dopl_owner")):
        assert STRANGER in visited(guarded, {"Cookie": f"{cookie}={token}"}, host=host)


@pytest.mark.parametrize(
    "path", ["metrics", "script-health-check", "agent/openapi.json", "agent/interact", "new"]
)
def test_addresses_of_streamlit_that_no_page_needs_are_closed(server, path):
    assert ask(server, "GET", f"/_stcore/{path}").status == 404
    assert ask(server, "GET", f"/studies/_stcore/{path}").status == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1"]
)
def test_requests_with_another_host_name_are_refused(server, host):
    with pytest.raises(InvalidStatus):
        visited(server, {"Origin": f"http://{host}:{server.port}"}, host=f"{host}:{server.port}")
    for path in ("/", "/_stcore/health", "/studies"):
        response = ask(server, "GET", path, {"Host": f"{host}:{server.port}"})
        assert response.status == 403
        assert b"dopl app --key" in response.content


@pytest.mark.parametrize("path", ["/", "/studies", "/_stcore/health", "/nothing/at/all"])
def test_every_reply_forbids_frames(server, path):
    response = ask(server, "GET", path)
    assert response.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert response.headers["X-Frame-Options"] == "DENY"


def test_a_server_with_a_key_asks_everybody_for_it(guarded):
    assert STRANGER in visited(guarded)
    proxied = {"X-Forwarded-For": "203.0.113.9"}
    cookie = {"Cookie": signed_in(guarded, "clinic.example")}
    assert OWNER in visited(guarded, cookie | proxied, host="clinic.example")
    assert STRANGER in visited(guarded, proxied, host="clinic.example")


# --- the key


def test_the_key_is_exchanged_for_a_session_that_scripts_cannot_read(guarded):
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
    assert "Path=/_stcore" in cookie
    name, _, token = cookie.partition(";")[0].partition("=")
    assert OWNER in visited(guarded, {"Cookie": f"other=1; {name}={token}"})
    assert STRANGER in visited(guarded, {"Cookie": f"{name}={key}"})


def test_the_redirect_after_the_key_stays_on_this_server(guarded):
    response = ask(guarded, "GET", "//evil.example/x?key=wrong")
    assert response.headers["Location"] == "/evil.example/x"


def test_guessing_keys_is_slow(guarded):
    began = time.monotonic()
    assert ask(guarded, "GET", "/?key=wrong").headers.get("Set-Cookie") is None
    assert time.monotonic() - began > 0.9
    check_guesses(lambda n: ask(guarded, "GET", f"/?key=wrong{n}"))
    assert ask(guarded, "GET", "/").status == 200


def check_guesses(guess):
    """Of thirty guesses at once, no more are tried than in the time that a few at a time take."""
    began = time.monotonic()
    with ThreadPoolExecutor(30) as many:
        tried = [one.status for one in many.map(guess, range(30))].count(303)
    seconds = time.monotonic() - began
    assert 0 < tried <= middleware.MOST_WRONG_KEYS * seconds / middleware.WRONG_KEY_SECONDS


def test_forged_addresses_do_not_bypass_the_limit_of_keys(guarded):
    forged = [{"X-Forwarded-For": f"203.0.113.{n}"} for n in range(30)]
    check_guesses(lambda n: ask(guarded, "GET", f"/?key=no{n}", forged[n]))


def test_behind_a_trusted_proxy_each_address_is_counted_by_itself(monkeypatch):
    found = []

    async def note(scope, receive, send):
        found.append(middleware._counted_address(scope))

    def comes(peer, told):
        scope = {"type": "http", "client": (peer, 1), "headers": [(b"x-forwarded-for", told)]}
        loops.run(ProxyHeadersMiddleware(note, "127.0.0.1")(scope, None, None))

    for declared in ("", "127.0.0.1"):
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", declared)
        comes("127.0.0.1", b"203.0.113.7")
        comes("127.0.0.1", b"192.0.2.9, 203.0.113.8")  # the visitor wrote the first one
        comes("198.51.100.1", b"203.0.113.9")  # not through the proxy
    assert found == ["forwarded"] * 3 + ["203.0.113.7", "203.0.113.8", "198.51.100.1"]


def test_a_new_key_ends_visits_with_the_old_key(guarded):
    visit = Visit(guarded.port, {"Cookie": signed_in(guarded)})
    assert OWNER in visit.run()
    assert "cpap" in visit.run(page="studies").lower()
    access.make_owner_key(guarded.store)
    assert STRANGER in visit.run(page="studies")
    visit.close()


def test_a_new_key_also_ends_clicks_and_refreshes_of_an_open_page(guarded):
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
def test_clicks_from_revoked_links_are_ignored(server, store, study, key, query):
    token = access.invite(store, study, "Ann")
    for _ in range(2):
        ask = studies.next_duel(store, study, "Ann")
        studies.answer(store, ask.impression, "left", too_fast_ms=0)
    visit = Visit(server.port, {"X-Forwarded-For": "203.0.113.9"})
    visit.run(f"invite={token}", "annotate")
    button, fragment = visit.button(key)
    assert bool(fragment) == (key != "to-paused")  # Pause is not part of the fragment
    access.revoke(store, study, "Ann")
    time.sleep(0.35)  # clicks within 0.3 s are ignored anyway
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


def test_uploads_through_a_proxy_are_refused(server):
    visit = Visit(server.port)
    visit.run()
    assert upload(server, visit.session, xsrf(server)) == 204
    proxied = {"X-Real-IP": "203.0.113.9"}
    assert upload(server, visit.session, xsrf(server) | proxied) == 403
    visit.close()


def test_uploads_are_limited(server):
    visit = Visit(server.port)
    visit.run()
    sent = [upload(server, visit.session, xsrf(server), 19 << 20) for _ in range(5)]
    assert sent == [204, 204, 204, 413, 413]
    visit.close()
