import sys

import torch

net = torch.nn.Linear(8, 8)
with torch.no_grad():
    for _ in range(60):
        net(torch.ones(4, 8))
print("dynamo", sorted(name for name in sys.modules if name.startswith(("torch._dynamo", "torch._inductor"))))
