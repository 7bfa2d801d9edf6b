import sys
import time

import torch

net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")


def train(steps, seconds):
    for step in range(steps):
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        loss.tolist()
        if step % 10 == 0:
            net(x).tolist()
        time.sleep(seconds)
        optimizer.step()


print("to stdout", flush=True)
print("to stderr", file=sys.stderr, flush=True)
steps, seconds = sys.argv[1:] or ("40", "0")
train(int(steps), float(seconds))
print("the end")
