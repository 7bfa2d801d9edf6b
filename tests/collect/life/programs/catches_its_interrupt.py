import os
import signal

import training

training.train(10)
try:
    os.kill(os.getpid(), signal.SIGINT)
    training.train(1000)
except KeyboardInterrupt:
    print("saved")
training.train()
