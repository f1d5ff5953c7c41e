"""Simulated mode: learners played against worlds that are known, measured, and drawn."""
