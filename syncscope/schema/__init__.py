"""What is written and read: findings, reports, verdicts, and the collector's part of a trace file."""
