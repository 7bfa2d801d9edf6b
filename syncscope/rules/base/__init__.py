"""What the rules are made of: the record of a rule, its occurrences, and the groups of them that become findings."""
