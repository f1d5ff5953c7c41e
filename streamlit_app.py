"""The web app's entrance: which pages there are, and who is shown which."""

from pages import _shared as ui

ui.navigation().run()
