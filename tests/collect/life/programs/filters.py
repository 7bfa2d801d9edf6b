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
print(torch.cuda.synchronize is mine, [entry[:2] for entry in warnings.filters][:2], sys.warnoptions)
