"""What ``torch.compile`` does while the program runs: compilations, graph breaks, CUDA graphs that are skipped.

``watch.py`` wraps the functions of Dynamo and Inductor that do it, ``reasons.py`` reads what they say, and ``log.py``
keeps it. All of it runs only where something is compiled or a CUDA graph is recorded.
"""
