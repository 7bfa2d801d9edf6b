"""The picture of a timeline: every event as a bar, in few bytes."""
