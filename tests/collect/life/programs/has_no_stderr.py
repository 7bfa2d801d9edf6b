import sys

import training

training.train()
sys.stderr = None
print("still here")
sys.exit("said to nobody")
