"""From trace files to one report: each rank is read and estimated, on one machine or many, and all are merged."""
