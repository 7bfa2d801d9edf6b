"""Report waits while the program runs, without a recording: ``guard`` for programs, ``record`` for tests."""
