import os
import signal
import time

import training

print("before", flush=True)
training.train()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(5)
print("never")
