"""Look at single later steps with PyTorch's ops on, and no CUPTI, for the lines that wait and that no window recorded.

``wanted`` says which lines need it and in which steps they are expected, ``looks`` records such steps between windows,
and ``behind`` finds the op that waited at each line.
"""
