"""What two reports, or one report and a baseline, have in common."""
