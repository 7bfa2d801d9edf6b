import atexit
import os
import sys

import training

atexit.register(lambda: print("exit handler", flush=True))
training.train(6)
for status in (0, 5):
    child = os.fork()
    if child == 0:
        sys.exit(status)
    print("child ended with", os.waitpid(child, 0)[1] >> 8, flush=True)
ready, go = os.pipe()
child = os.fork()
if child == 0:
    os.read(ready, 1)  # what Python says of the fork in the parent is written by then
    raise ValueError("in the child")
os.write(go, b"!")
print("child ended with", os.waitpid(child, 0)[1] >> 8, flush=True)
training.train(16)
child = os.fork()
if child:
    print("child ended with", os.waitpid(child, 0)[1] >> 8, flush=True)
