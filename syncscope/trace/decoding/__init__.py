"""The text of a trace → raw columns, piece by piece. Runs in worker processes too, so nothing here imports pandas."""
