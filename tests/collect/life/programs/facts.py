import inspect
import os
import sys
import warnings

import training

training.train()
print(sys.path[0], sys.argv, __file__, __name__, __spec__, __package__, type(__loader__).__name__)
print(sorted(globals()), sys.modules["__main__"].__dict__ is globals(), sys.flags, os.getcwd())
print(inspect.getsource(sys.modules["__main__"])[:14], __loader__.get_data(__file__)[:6])
try:
    warnings.warn("shown or raised, as the options say")
except UserWarning as error:
    print("raised", error)
