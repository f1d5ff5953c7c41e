"""Strengths of arm-states from counts of answers, and how reliable these answers are."""
