"""Around torch.profiler: windows of steps, the exact line of each wait, a user's script. The only import of torch.

Nothing here imports torch until the program under observation has done so itself.
"""
