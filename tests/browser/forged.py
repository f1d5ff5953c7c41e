"""Forged requests: what a browser would never send, and a network that leads nowhere."""

import http.client
import os
import re
from urllib.parse import urlsplit

from raw_visit import Visit

from dopl_core.studies import access

STRANGER, OWNER = "You need a link", "Try it now"

CUT = """
import sys
def hook(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = args[1]
        place = address[0] if isinstance(address, tuple) else "127.0.0.1"  # a file on this computer
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        place = args[0]
    else:
        return
    if place not in (None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1"):
        with open({file!r}, "a") as found:
            found.write(f"{{event}} {{place}}\\n")
        raise OSError("the network is cut")
sys.addaudithook(hook)
"""


def cut_network(server):
    """Let the server and its planner reach this computer only, and note what they try."""
    server.left = server.folder / "left.txt"
    code = server.folder / "sitecustomize.py"
    code.write_text(CUT.format(file=str(server.left)))
    path = [str(server.folder), server.environment.get("PYTHONPATH", "")]
    server.environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))


def requests_away(context):
    """The addresses on other computers that our pages in this browser ask for from now on.

    Pages of the provider that people sign in at are not ours: they are below /oauth2/.
    """
    away = []

    def look(asked):
        there = urlsplit(asked.url)
        web = there.scheme in ("http", "https", "ws", "wss")
        if web and there.hostname not in ("localhost", "127.0.0.1"):
            away.append(asked.url)

    def look_at_ours(request):
        if not urlsplit(request.frame.url).path.startswith("/oauth2/"):
            look(request)

    context.on("request", look_at_ours)
    context.on("page", lambda page: page.on("websocket", look))
    return away


def visited(server, headers=None, **options):
    visit = Visit(server.port, headers, **options)
    try:
        return visit.run()
    finally:
        visit.close()


def ask(server, method, path, headers=None, body=None):
    """A raw HTTP request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request(method, path, body, {"Host": f"localhost:{server.port}"} | (headers or {}))
    response = connection.getresponse()
    response.content = response.read()
    connection.close()
    return response


def signed_in(server, host=""):
    key = access.make_owner_key(server.store)
    response = ask(server, "GET", f"/?key={key}", {"Host": host} if host else None)
    return re.match(r"dopl_owner\w*=[\w-]+", response.headers["Set-Cookie"])[0]
