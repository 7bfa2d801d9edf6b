import os
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(__file__)))
import training

from . import other

training.train()
print(other.VALUE, sys.argv, __package__, __spec__.name, __name__, __file__, __cached__, sorted(globals()))
