import re
import sys
import warnings

import torch
import training

warnings.simplefilter("error", DeprecationWarning)
warnings.filterwarnings("ignore", message="quiet")
original = torch.cuda.synchronize
torch.cuda.synchronize = lambda *args: original(*args)
mine = torch.cuda.synchronize
training.train()
torch.cuda.synchronize()
warnings.warn("loud", UserWarning)
warnings.warn("Quiet", UserWarning)
try:
    warnings.warn("old", DeprecationWarning)
except DeprecationWarning as error:
    print("raised", error)
# While it is recorded there is one filter that listens, and one that always shows some warnings.
usual = [entry[:2] for entry in warnings.filters if isinstance(entry[1], (re.Pattern, type(None)))]
filters = [entry for entry in usual if entry[0] != "always"]
print(torch.cuda.synchronize is mine, filters[:2], sys.warnoptions)
