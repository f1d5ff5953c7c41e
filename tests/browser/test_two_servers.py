"""Two servers on one PostgreSQL behind a sticky proxy, one killed under load: no answer is lost."""

import asyncio
import random
import re
import time

import crowds
import loops
import pytest
import websockets
from app_server import Server
from databases import PostgreSQL
from sticky_proxy import Proxy
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from dopl_core import studies
from dopl_core.studies import access

pytestmark = pytest.mark.long

PEOPLE = 8
WHOLE = (  # other runs were interrupted, and start again by themselves
    ForwardMsg.FINISHED_SUCCESSFULLY,
    ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
)


@pytest.fixture
def database(tmp_path):
    made = PostgreSQL(tmp_path)
    yield made
    made.end()


@pytest.fixture
def servers(database, tmp_path):
    started = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        server = Server(tmp_path / name)
        server.environment |= {"DOPL_DATABASE_URL": database.url, "DOPL_ASK_FOR_KEY": "1"}
        started.append(server.start())
    yield started
    for server in started:
        server.kill()


class Annotator:
    """Somebody who clicks until told to stop, and opens the link again when the server is gone.

    acknowledged: (impression, outcome) of every answer after which the page said one more
    """

    def __init__(self, port: int, number: int, token: str) -> None:
        self.address = f"ws://localhost:{port}/_stcore/stream"
        self.seat, self.token = f"seat{number}", token
        self.acknowledged: list[tuple[int, str]] = []
        self.broken = 0
        self.rng = random.Random(number)

    async def play(self) -> None:
        while True:
            try:
                await self._visit()
            except (OSError, websockets.WebSocketException):
                self.broken += 1
                await asyncio.sleep(0.2)

    async def _visit(self) -> None:
        cookie = {"Cookie": f"dopl_seat={self.seat}"}
        patience = {"open_timeout": 60, "ping_timeout": 60}  # a busy machine is no broken server
        async with websockets.connect(
            self.address,
            subprotocols=["streamlit"],
            max_size=None,
            additional_headers=cookie,
            **patience,
        ) as self.socket:
            self.page = self.fragment = ""
            self.own = self.clicked = self.impression = None
            buttons: dict[str, str] = {}
            poll = 1.0
            await self._run()
            async for data in self.socket:
                message = ForwardMsg.FromString(data)
                kind = message.WhichOneof("type")
                if kind == "new_session":
                    buttons = {}
                elif kind == "navigation":
                    self.page = message.navigation.page_script_hash
                elif kind == "auto_rerun":
                    poll, self.fragment = (
                        message.auto_rerun.interval,
                        message.auto_rerun.fragment_id,
                    )
                elif kind == "delta":
                    await self._look(message, buttons)
                elif kind == "script_finished" and message.script_finished in WHOLE:
                    await asyncio.sleep(self.rng.uniform(0.4, 0.6) if buttons else poll)
                    await self._choose(buttons)

    async def _look(self, message: ForwardMsg, buttons: dict[str, str]) -> None:
        element = message.delta.new_element
        if found := re.search(r"choices-(\d+)", str(message.delta.add_block)):
            self.impression = int(found[1])
        if re.search("begin$|go-on$", element.button.id):
            await self._run(element.button.id)
        if found := re.search(r"(left|right)-\d+$", element.button.id):
            buttons[found[1]], self.fragment = element.button.id, message.delta.fragment_id
        if re.search("begin$|go-on$", element.button.id):
            buttons["begin"], self.fragment = element.button.id, message.delta.fragment_id
        if found := re.search(r"Yours so far: (\d+)\.", str(element)):
            before, self.own = self.own, int(found[1])
            if self.clicked and before is not None and self.own == before + 1:
                self.acknowledged.append(self.clicked)
                self.clicked = None

    async def _choose(self, buttons: dict[str, str]) -> None:
        """Click if there is a comparison; otherwise refresh."""
        button = ""
        if len(buttons) == 2 and self.impression is not None:
            side = ("left", "right")[self.impression % 2]  # a second click gives the same answer
            self.clicked, button = (self.impression, side), buttons[side]
        await self._run(button)

    async def _run(self, button: str = "") -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_name = (
            f"invite={self.token}",
            "" if self.page else "annotate",
        )
        state.page_script_hash, state.fragment_id = self.page, self.fragment
        if button:
            state.widget_states.widgets.add(id=button, trigger_value=True)
        await self.socket.send(message.SerializeToString())


async def until_all(people: list[Annotator], answers: int) -> None:
    """Wait until each has this many more answers acknowledged."""
    wanted = [len(one.acknowledged) + answers for one in people]
    deadline = time.monotonic() + 120
    while any(len(one.acknowledged) < n for one, n in zip(people, wanted, strict=True)):
        assert time.monotonic() < deadline, [len(one.acknowledged) for one in people]
        await asyncio.sleep(0.05)


async def a_killed_server(servers: list[Server], tokens: list[str]) -> list[Annotator]:
    proxy = Proxy([server.port for server in servers])
    port = await proxy.start()
    people = [Annotator(port, number, token) for number, token in enumerate(tokens)]
    playing = [asyncio.create_task(one.play()) for one in people]
    await until_all(people, 3)
    assert all(proxy.taken.values())  # both serve
    assert not any(one.broken for one in people)
    await asyncio.to_thread(servers[0].kill)
    await until_all(people, 3)  # everybody continues on the other server
    assert 0 < sum(one.broken > 0 for one in people) < PEOPLE
    await asyncio.to_thread(servers[0].start)
    before = dict(proxy.taken)
    await asyncio.to_thread(servers[1].kill)
    await until_all(people, 3)  # and back
    assert proxy.taken[servers[0].port] > before[servers[0].port]
    for task in playing:
        task.cancel()
    await asyncio.gather(*playing, return_exceptions=True)
    proxy.server.close()
    return people


def test_nobody_loses_an_answer_when_one_of_two_servers_is_killed(database, servers):
    store = studies.open_store(database.url)
    config = studies.from_environment("cpap", practice=False, horizon=3)
    study = studies.create_study(store, config)
    tokens = [access.invite(store, study, f"Person {n}") for n in range(PEOPLE)]
    people = loops.run(a_killed_server(servers, tokens))
    for server in servers:
        server.kill()  # else a plan could be made between two looks at the study
    acknowledged = [answer for one in people for answer in one.acknowledged]
    assert len(acknowledged) >= 9 * PEOPLE
    crowds.check(store, study, acknowledged)
    assert studies.get_study(store, study).episode > 3  # plans went on being made
    store.close()
