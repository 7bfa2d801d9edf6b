"""Raw columns → the tables of a :class:`.Trace`."""
