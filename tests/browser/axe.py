"""What axe finds on a page that is drawn, for people who see little or use a keyboard."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

# A page that draws itself again fades what is old; axe would measure the contrast of that.
_NO_FADING = "[data-stale=true] { opacity: 1 !important; transition: none !important; }"
_RUNNING = "[data-testid=stStatusWidget]"  # Streamlit's own, while it is there


def serious_findings(page: Page) -> list[tuple[str, list[str]]]:
    """The serious and critical violations: each rule, and the first elements that break it."""
    expect(page.locator(_RUNNING)).to_have_count(0)
    page.add_style_tag(content=_NO_FADING)
    found = Axe().run(page, {"exclude": [[_RUNNING]]}).response["violations"]
    return [
        (one["id"], [node["html"][:160] for node in one["nodes"]][:3])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
