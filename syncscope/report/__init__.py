"""One renderer a file; each is a function of the report."""
