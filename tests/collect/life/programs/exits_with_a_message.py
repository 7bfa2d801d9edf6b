import sys

import training

training.train()
sys.exit("no data")
