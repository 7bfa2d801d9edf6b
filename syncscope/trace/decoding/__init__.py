"""The text of a trace → raw columns, piece by piece. Worker processes run it, so it imports no table."""
