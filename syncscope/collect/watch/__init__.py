"""What is reported of a run while it goes on: its figures, lines that begin to wait, the line on the terminal."""
