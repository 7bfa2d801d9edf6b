"""From trace files to one report: read each rank and estimate its savings, on one machine or many, then merge all."""
