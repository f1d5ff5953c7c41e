"""Links for colleagues: to copy, to scan and to send; they are shown once, and can be revoked."""

from urllib.parse import urlsplit

import segno
import streamlit as st

from dopl_core.studies import Study, access, plural, printable
from pages.shared.clicks import clicked
from pages.shared.copy_button import copy_button
from pages.shared.errors import safely, show_errors
from pages.shared.guards import store
from pages.shared.help_link import help_link
from pages.shared.markdown import plain

PATHS: dict[access.Opens, str] = {"duels": "annotate?invite", "list": "list?read"}
_HERE_ONLY = ("localhost", "127.0.0.1", "::1")


def links(study: Study, opens: access.Opens) -> None:
    """A field for names, the links just made, and everybody who has a link."""
    known = access.invites(store(), study.id, opens)
    typed = st.text_input(  # empty again when links are made
        "Name of the colleague, or several, separated by commas", key=f"whose-{opens}-{len(known)}"
    )
    names = list(dict.fromkeys(name.strip() for name in typed.split(",") if name.strip()))
    having = {one.annotator for one in known if not one.revoked_at}
    again = [name for name in names if name in having]
    if again:
        st.warning(
            f"{plain(', '.join(again))}: a link is valid already. A new one replaces it.",
            icon=":material/link_off:",
        )
    label = "Replace the link" if again else "Make a link"
    if clicked(label, key=f"link-{opens}", disabled=not names):
        make(study, opens, names)
    show_new(study, opens)
    if known:
        st.markdown("**Who has a link**")
    for one in {link.annotator: link for link in known}.values():  # the last of each person
        row = st.container(border=True, horizontal=True, vertical_alignment="center")
        row.text(one.annotator, width="stretch")
        if one.revoked_at:
            row.text("Revoked")
        else:
            row.button(
                "Revoke",
                key=f"revoke-{opens}-{one.annotator}-{one.made_at}",
                on_click=safely(access.revoke),
                args=(store(), study.id, one.annotator, opens),
            )


def make(study: Study, opens: access.Opens, names: list[str]) -> None:
    """Make a link for each person. The page keeps them: only their hashes are stored."""
    made: dict[str, str] = {}
    st.session_state["new links"] = (study.id, opens, made)
    with show_errors():
        for name in names:
            made[name] = access.invite(store(), study.id, name, opens)
        st.rerun()


def show_new(study: Study, opens: access.Opens) -> None:
    """The links made last, unless they were revoked since."""
    of_study, opened, made = st.session_state.get("new links") or ("", opens, {})
    if (of_study, opened) != (study.id, opens):
        return
    valid = {name: token for name, token in made.items() if _is_valid(token, opens)}
    if not valid:
        return
    st.markdown("**Send each colleague their link now.** Links are shown only once.")
    if urlsplit(address()).hostname in _HERE_ONLY:
        st.warning(
            "These links open on this computer only. To let colleagues in from their own devices, "
            "stop the app and start it with `dopl app --server.address 0.0.0.0`. Open the link "
            "that it prints, and make the links for your colleagues there.",
            icon=":material/computer:",
        )
        help_link("server", "How to let colleagues in from elsewhere")
    for number, (name, token) in enumerate(valid.items()):
        link = f"{address()}/{PATHS[opens]}={token}"
        text = text_to_send(study, opens, name, link)
        with st.container(border=True):
            st.text(name)
            st.code(link, language=None, wrap_lines=True)
            with st.container(horizontal=True, vertical_alignment="center"):
                copy_button("Copy the link", link, f"copy-link-{opens}-{number}")
                with st.popover("QR code", icon=":material/qr_code_2:"):
                    picture = segno.make(link, error="m", micro=False).svg_data_uri(scale=6)
                    st.html(f'<img class="dopl-qr" alt="QR code of the link" src="{picture}">')
                with st.popover("Text to send", icon=":material/mail:"):
                    st.text(text)
                    copy_button("Copy the text", text, f"copy-text-{opens}-{number}")


def text_to_send(study: Study, opens: access.Opens, name: str, link: str) -> str:
    """A message for a colleague, with their link at its end."""
    title, nouns = printable(study.title), printable(plural(study.config.noun))
    if opens == "list":
        what = f"this link shows whom to help in “{title}”. You can read the list and print it."
    else:
        what = (
            f"please answer some comparisons for “{title}”. You see two {nouns} at a time and "
            "choose who is doing better. An answer takes a few seconds. You can stop at any time "
            "and go on later."
        )
    return f"Hello {printable(name)},\n\n{what}\n\nThe link is only for you:\n{link}"


def reminder_text(study: Study, rows: list[tuple[str, int, int]]) -> str:
    """A message to all who are asked for answers; rows: as studies.due_rows gives them."""
    asked = "\n".join(f"{printable(link)}: {count}" for link, _, count in rows)
    return (
        f"Hello,\n\nplease answer some comparisons for “{printable(study.title)}”. Open the link "
        "that you were sent. An answer takes a few seconds. Answers that we ask you for:\n\n"
        f"{asked}"
    )


def address() -> str:
    """The address of the app in the visitor's browser."""
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}" + parts.path.rpartition("/")[0]


def _is_valid(token: str, opens: access.Opens) -> bool:
    return access.find_invite(store(), token, opens) is not None
