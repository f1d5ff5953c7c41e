"""What a page says."""

from streamlit.testing.v1 import AppTest


def words(app: AppTest) -> str:
    """All that a page says."""
    places = (app.title, app.header, app.subheader, app.markdown, app.text, app.caption, app.error)
    places += (app.info,)
    return "\n".join(str(element.value) for place in places for element in place)
