import os
import sys

import training

training.train(8)
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-c", "print('another'); raise SystemExit(4)"])
