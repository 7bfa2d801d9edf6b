import sys

import training

training.train()
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
