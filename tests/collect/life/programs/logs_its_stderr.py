import sys

import training

sys.stderr = open("log.txt", "w")
training.train()
print("into the log", file=sys.stderr)
