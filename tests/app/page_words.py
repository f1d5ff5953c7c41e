"""The text of a page."""

from streamlit.testing.v1 import AppTest


def words(app: AppTest) -> str:
    """All text on a page."""
    places = (app.title, app.header, app.subheader, app.markdown, app.text, app.caption, app.error)
    places += (app.info,)
    return "\n".join(str(element.value) for place in places for element in place)


def simulated_form(visit):
    """The form of a new study, of a simulated world."""
    app = visit("studies")
    return app.segmented_control(key="world").set_value("A simulated world").run()
