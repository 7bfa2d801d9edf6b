import sys

import training

print("to stdout", flush=True)
print("to stderr", file=sys.stderr)
training.train()
sys.stdout.write("no newline at the end")
