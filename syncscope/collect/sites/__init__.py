"""At which line the program waits or copies.

``sync_debug`` hears PyTorch's own warnings of waits, ``wrappers`` wraps the entry points that wait or copy without one.
``recorder`` makes one list of events of both. ``stacks`` turns Python frames into files, lines and expressions,
``threads`` knows the threads' numbers.
"""
