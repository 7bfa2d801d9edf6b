"""From trace files to one report: each rank read and studied, on one machine or many, and all of them merged."""
