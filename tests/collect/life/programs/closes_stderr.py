import sys

import training

training.train()
sys.stderr.close()
print("still here")
