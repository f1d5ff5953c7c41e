"""A button that copies a text to the clipboard."""

import streamlit as st

from pages.shared.button_style import BUTTON_STYLE

# Browsers give pages without https no clipboard; there a hidden field is copied.
_COPY = """export default ({data, parentElement}) => {
  const button = parentElement.querySelector("button")
  button.textContent = data.label
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.text)
    } catch {
      const field = Object.assign(document.createElement("textarea"), {value: data.text})
      document.body.append(field)
      field.select()
      document.execCommand("copy")
      field.remove()
      button.focus()
    }
    button.textContent = "Copied"
    setTimeout(() => { button.textContent = data.label }, 2000)
  }
}"""
_component = st.components.v2.component(
    "dopl_copy", html='<button aria-live="polite"></button>', css=BUTTON_STYLE, js=_COPY
)


def copy_button(label: str, text: str, key: str) -> None:
    """A button that copies a text, and says so for a moment."""
    _component(data={"label": label, "text": text}, key=key, width="content")
