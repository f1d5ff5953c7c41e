"""Annotators without browsers: they speak the app's protocol, so that they cost the server what
people do, and this machine nothing else. `python _crowd.py URL THINK TOKEN...` plays until killed,
and prints the milliseconds from each click to its answer, "trouble" where a page says it has some.
"""

import asyncio
import random
import re
import sys
import time
from urllib.parse import urlsplit

import websockets
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


def is_trouble(element: Element) -> bool:
    """Whether something on a page says that something went wrong."""
    kind = element.WhichOneof("type")
    return kind == "exception" or (kind == "alert" and element.alert.format == Alert.ERROR)


async def annotate(url: str, think: float, token: str) -> None:
    """Answer duels for ever, each after thinking half to one and a half times `think` seconds."""
    address = f"ws://{urlsplit(url).netloc}/_stcore/stream"
    async with websockets.connect(address, subprotocols=["streamlit"], max_size=None) as socket:
        page = fragment = ""
        poll: float | None = None

        async def rerun(button: str = "") -> None:
            message = BackMsg()
            state = message.rerun_script
            state.query_string, state.page_name = f"invite={token}", "" if page else "annotate"
            state.page_script_hash, state.fragment_id = page, fragment
            if button:
                state.widget_states.widgets.add(id=button, trigger_value=True)
            await socket.send(message.SerializeToString())

        await rerun()
        buttons: dict[str, str] = {}
        answered: dict[str, str] = {}
        clicked = 0.0
        async for data in socket:
            message = ForwardMsg.FromString(data)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                buttons = {}
            elif kind == "navigation":
                page = message.navigation.page_script_hash
            elif kind == "auto_rerun":
                poll, fragment = message.auto_rerun.interval, message.auto_rerun.fragment_id
            elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "button":
                button = message.delta.new_element.button.id
                if re.search("begin$|go-on$", button):
                    await rerun(button)
                elif found := re.search(r"(left|right)-\d+$", button):
                    buttons[found[1]], fragment = button, message.delta.fragment_id
            elif kind == "delta" and is_trouble(message.delta.new_element):
                print("trouble", flush=True)
            elif kind == "script_finished":
                if clicked:
                    print(1000 * (time.perf_counter() - clicked), flush=True)
                    clicked = 0.0
                if len(buttons) == 2 and buttons != answered:  # not of a run that was cut short
                    answered = buttons
                    await asyncio.sleep(max(0.4, think * random.uniform(0.5, 1.5)))
                    clicked = time.perf_counter()
                    await rerun(buttons[random.choice(["left", "right"])])
                elif not buttons and poll is not None:
                    await asyncio.sleep(poll)
                    await rerun()


async def main(url: str, think: str, *tokens: str) -> None:
    await asyncio.gather(*(annotate(url, float(think), token) for token in tokens))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
