"""A visit without a browser: raw websocket messages, as an attacker would send them."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect


class Visit:
    """One websocket; `seen` has every message received, `session` is the id used for uploads."""

    def __init__(self, port: int, headers: dict[str, str] | None = None, host: str = "") -> None:
        sent = dict(headers or {})
        origin = sent.pop("Origin", None)
        host = host or f"localhost:{port}"
        self._open = ExitStack()
        opening = connect(
            f"ws://{host}/_stcore/stream",
            sock=socket.create_connection(("127.0.0.1", port)),
            origin=origin,
            additional_headers=sent,
            subprotocols=["streamlit"],
            max_size=None,
        )
        self.socket = self._open.enter_context(opening)
        self.seen: list[ForwardMsg] = []
        self.session = self.page = ""

    def run(self, query: str = "", page: str = "", fragment: str = "", click: str = "") -> str:
        """Run the page or a fragment, with a button clicked; the reply as text."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string = query
        state.page_name = page
        state.fragment_id = fragment
        state.page_script_hash = self.page if fragment else ""
        if click:
            state.widget_states.widgets.add(id=click, trigger_value=True)
        self.socket.send(message.SerializeToString())
        came = list(self._until_finished())
        self.seen += came
        return "\n".join(str(one) for one in came)

    def _until_finished(self) -> Iterator[ForwardMsg]:
        while True:
            message = ForwardMsg()
            message.ParseFromString(self.socket.recv(timeout=120))
            if message.WhichOneof("type") == "new_session":
                self.session = message.new_session.initialize.session_id or self.session
            elif message.WhichOneof("type") == "navigation":
                self.page = message.navigation.page_script_hash
            yield message
            if message.WhichOneof("type") == "script_finished" and message.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
            ):
                return

    def button(self, key: str) -> tuple[str, str]:
        """The ids of the last button whose key starts like this, and of its fragment."""
        for message in reversed(self.seen):
            element = message.delta.new_element
            if message.WhichOneof("type") == "delta" and f"-{key}" in element.button.id:
                return element.button.id, message.delta.fragment_id
        raise AssertionError(f"no button {key}")

    def close(self) -> None:
        self._open.close()
