"""Ranks compared by what their reports say: who comes late to a collective, and how far clocks are apart."""
