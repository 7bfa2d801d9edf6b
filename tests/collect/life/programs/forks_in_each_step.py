import atexit
import os
import sys

import training


def fork(loss):
    loss.item()
    child = os.fork()
    if child == 0:
        log.write("in the child")
        sys.exit(7)
    ends.append(os.waitpid(child, 0)[1] >> 8)


ends = []
log = open("log.txt", "w")  # children write into it at their ends
atexit.register(lambda: print("exit handler", flush=True))
training.train(24, fork)
print(ends)
