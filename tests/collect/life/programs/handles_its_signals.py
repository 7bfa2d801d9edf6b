import os
import signal
import sys

import training


def leave(number, frame):
    print("handler", number, flush=True)
    sys.exit(9)


signal.signal(signal.SIGTERM, leave)
signal.signal(signal.SIGINT, lambda number, frame: print("interrupt", number, flush=True))
training.train(14)
os.kill(os.getpid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGTERM)
training.train(1000)
