import os

import training

training.train()
os._exit(6)
