"""What cards of a comparison show."""

from pages.shared import duel_cards


def test_a_long_text_is_cut_at_the_end_of_a_word():
    long = "seven letters " * 20
    cut = duel_cards.cut_at_word(long)
    assert long.startswith(f"{cut} ")
    assert duel_cards.LONG - 10 <= len(cut) <= duel_cards.LONG
    assert duel_cards.cut_at_word("x" * 300) == "x" * duel_cards.LONG
    assert duel_cards.cut_at_word(f"{'y' * 130}, {'x' * 300}") == "y" * 130
