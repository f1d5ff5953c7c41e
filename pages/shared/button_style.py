"""The look of Streamlit's buttons, for buttons that are components of our own."""

BUTTON_STYLE = """
button { font-family: inherit; font-size: 0.875rem; line-height: 1.6; padding: 0.25rem 0.75rem;
min-height: 2.5rem; cursor: pointer; color: var(--st-text-color);
background: light-dark(#ffffff, transparent);
border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); }
button:hover, button:focus-visible { border-color: var(--st-primary-color);
color: var(--st-link-color); outline: none; }
"""
