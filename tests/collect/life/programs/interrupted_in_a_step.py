import os
import signal
import time

import training


def step(loss):
    step.count += 1
    if step.count == 12:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


step.count = 0
training.train(16, step)
