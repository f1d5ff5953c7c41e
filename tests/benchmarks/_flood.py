"""Strangers who send whatever Streamlit understands, up to 200 messages a second each.

`python _flood.py PORT WEBSOCKETS SECONDS` plays on this computer, and prints how many messages were
sent and how many websockets were opened. Half of the strangers do not read what they are sent.
"""

import asyncio
import os
import random
import sys
import time

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg


def messages() -> list[bytes]:
    """One message of each kind, those with contents several times."""
    found = []
    for field in BackMsg.DESCRIPTOR.fields:
        sent = BackMsg()
        if field.message_type is not None:
            getattr(sent, field.name).SetInParent()
        else:
            setattr(sent, field.name, True if field.type == field.TYPE_BOOL else "x")
        found.append(sent.SerializeToString())
    for operation in ("install_skills", "dismiss_skills_nudge", "deferred_file", "dataframe_chunk"):
        sent = BackMsg()
        getattr(sent.backend_operation_request, operation).SetInParent()
        found.append(sent.SerializeToString())
    for query in ("", "invite=wrong", "read=wrong", "study=x", "key=wrong"):
        for page in ("", "annotate", "studies", "list", "nothing"):
            sent = BackMsg()
            sent.rerun_script.query_string, sent.rerun_script.page_name = query, page
            widget = sent.rerun_script.widget_states.widgets.add(id=f"$$ID-{random.random()}")
            widget.trigger_value = True
            found.append(sent.SerializeToString())
    return found


async def flood(port: int, end: float, reads: bool, counts: dict[str, int]) -> None:
    """Send at random until the end; connect again whenever the server closes."""
    address = f"ws://127.0.0.1:{port}/_stcore/stream"
    kinds = messages()
    while time.monotonic() < end:
        try:
            async with websockets.connect(
                address, subprotocols=["streamlit"], max_size=None, max_queue=None if reads else 1
            ) as socket:
                counts["websockets"] += 1
                while time.monotonic() < end:
                    await asyncio.wait_for(socket.send(random.choice(kinds)), 5)
                    counts["messages"] += 1
                    await asyncio.sleep(0.005)
        except (OSError, TimeoutError, websockets.WebSocketException):
            await asyncio.sleep(0.2)


async def main(port: str, people: str, seconds: str) -> None:
    counts = {"messages": 0, "websockets": 0}
    end = time.monotonic() + float(seconds)
    strangers = (flood(int(port), end, n % 2 == 0, counts) for n in range(int(people)))
    await asyncio.gather(*strangers)
    print(*counts.values())


if __name__ == "__main__":
    # Strangers have computers of their own: the app comes first, and other work last.
    if os.sched_getscheduler(0) == os.SCHED_FIFO:  # chrt -f 10 dopl bench flood
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    else:
        os.nice(19)
    asyncio.run(main(*sys.argv[1:]))
