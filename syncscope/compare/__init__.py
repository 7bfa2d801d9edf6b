"""Compare a report with an earlier one, or with a baseline, by how often a step each finding occurs."""
